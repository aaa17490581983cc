import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore

/// The offers of LocalSend devices: who decides about them, and how they end.
@Suite struct DeviceOfferTests {
    private let phone = deviceID(1)

    @Test func aUserAcceptsAnOfferAndItsSpaceIsReservedBeforeTheAnswer() throws {
        var bob = CoreBench.forDevices()
        let offer = bob.offer([.photo("a", size: 10), .photo("b", named: "trip/photo.jpg", size: 20)])
        let id = try #require(bob.pending.first)
        let invitation = try bob.invitation(id)
        #expect(invitation.peerID == self.phone && invitation.peerName == "Pixel" && invitation.end - invitation.created == .seconds(300))
        #expect(invitation.offer?.map(\.name) == ["photo.jpg", "trip/photo.jpg"] && invitation.offer?.map(\.size) == [10, 20])
        #expect(bob.events.contains(.invitationReceived(invitation)))
        bob.call(.respond(id, .accept, always: false))
        let accept = bob.lastCall
        #expect(bob.answers[offer] == nil && bob.answers[accept] == nil)
        guard case .reserve(id, let files, let share)? = bob.deviceEffects.last else {
            Issue.record("nothing is reserved")
            return
        }
        #expect(files.map(\.size) == [10, 20] && share == QuotaShare(of: self.phone, isTrusted: false))
        bob.reserve()
        guard case .deviceOffer(.upload(let session, let tokens))? = bob.answers[offer] else {
            Issue.record("\(String(describing: bob.answers[offer]))")
            return
        }
        #expect(tokens.map(\.file) == ["a", "b"] && Set(tokens.map(\.token) + [session]).count == 3)
        #expect(bob.answers[accept]?.invitation?.state == .accepted)
        #expect(try bob.invitation(id).sessionID == nil && bob.core.sessions.isEmpty && bob.peersOnDisk.isEmpty)
    }

    @Test func theStopAnswersTheUserWhoHasAcceptedAnOffer() throws {
        var bob = CoreBench.forDevices()
        let offer = bob.offer()
        bob.call(.respond(try #require(bob.pending.first), .accept, always: false))
        let accept = bob.lastCall
        bob.handle(.stop)
        bob.handle(.stopped)
        #expect(bob.refusal(of: offer) == .failed && bob.answers[accept] == .failure(.stopping))
    }

    @Test func withoutSpaceAnOfferFailsForBothSides() throws {
        var bob = CoreBench.forDevices()
        let offer = bob.offer()
        let id = try #require(bob.pending.first)
        bob.call(.respond(id, .accept, always: false))
        let accept = bob.lastCall
        bob.reserve(EarshotError(.noSpace, "full"))
        #expect(bob.refusal(of: offer) == .noSpace && bob.answers[accept]?.error == .noSpace)
        #expect(try bob.invitation(id).state == .failed)
    }

    private static let policies: [(InvitationPolicy, isTrusted: Bool)] = [
        (.ask, false), (.accept, false), (.reject, false), (.ask, true), (.accept, true), (.reject, true),
    ]

    @Test(arguments: Self.policies) func theSettingsDecideAsForInvitations(policy: InvitationPolicy, isTrusted: Bool) throws {
        let opposite: InvitationPolicy = policy == .accept ? .reject : .accept
        var bob = CoreBench.forDevices {
            $0.policy.fromUnknown = isTrusted ? opposite : policy
            $0.policy.fromTrusted = isTrusted ? policy : opposite
        }
        if isTrusted { bob.call(.setTrust(.trusted, self.phone.description, until: nil)) }
        let offer = bob.offer()
        switch policy {
        case .ask: #expect(bob.pending.count == 1 && bob.answers[offer] == nil)
        case .reject: #expect(bob.pending.isEmpty && bob.refusal(of: offer) == .declined)
        case .accept:
            bob.reserve()
            #expect(bob.answers[offer]?.isUpload == true)
        }
    }

    @Test func aBlockedOrHiddenDeviceIsRefusedAfterAWhileAndWithoutAnEvent() throws {
        for isBlocked in [true, false] {
            var bob = CoreBench.forDevices { $0.policy.pairedOnly = !isBlocked }
            if isBlocked { bob.call(.setTrust(.blocked, self.phone.description, until: nil)) }
            let events = bob.events.count
            let offer = bob.offer()
            bob.advance(.milliseconds(499))
            #expect(bob.answers[offer] == nil)
            bob.advance(.milliseconds(2502))
            #expect(bob.refusal(of: offer) == .declined && bob.core.invitations(all: true).isEmpty)
            if isBlocked { #expect(bob.events.count == events) }
        }
    }

    @Test func fourSendersWaitForTheirRefusals() throws {
        var bob = CoreBench.forDevices { $0.policy.pairedOnly = true }
        for number in 1...UInt8(EarshotLimits.lateDeviceRefusals) {
            let waits = bob.offerWaits(by: .device(number), from: [10, 77, 0, number])
            #expect(waits)
        }
        let late = bob.offer(by: .device(9), from: [10, 77, 0, 9])
        #expect(bob.refusal(of: late) == .declined)
        bob.advance(.milliseconds(3000))
        let waits = bob.offerWaits(by: .device(10), from: [10, 77, 0, 10])
        #expect(waits)
    }

    @Test func aRejectionIsForOneOfferAndABlockForAll() throws {
        var bob = CoreBench.forDevices()
        let first = bob.offer()
        bob.call(.respond(try #require(bob.pending.first), .reject, always: false))
        #expect(bob.refusal(of: first) == .declined && bob.peersOnDisk.isEmpty)
        let second = bob.offer()
        let id = try #require(bob.pending.first)
        bob.call(.respond(id, .block, always: false))
        #expect(bob.refusal(of: second) == .declined && bob.peersOnDisk[self.phone]?.trust == .blocked)
        #expect(bob.answers[bob.lastCall]?.invitation?.state == .declined)
        bob.offer()
        #expect(bob.pending.isEmpty)
    }

    @Test func aSenderWithoutACertificateHasNoRowAndOnlyThisOfferIsDecided() throws {
        var bob = CoreBench.forDevices()
        let offer = bob.offer(by: .nobody)
        let id = try #require(bob.pending.first)
        #expect(try bob.invitation(id).peerID == .unprovenDevice && bob.core.peers.isEmpty)
        #expect(bob.call(.respond(id, .accept, always: true))?.error == .invalidParameter)
        #expect(bob.call(.respond(id, .block, always: false))?.error == .invalidParameter)
        let name = PeerID.unprovenDevice.description
        #expect(bob.call(.setTrust(.trusted, name, until: nil))?.error == .invalidParameter)
        bob.call(.respond(id, .accept, always: false))
        bob.reserve()
        #expect(bob.answers[offer]?.isUpload == true && bob.peersOnDisk.isEmpty)
    }

    // MARK: Limits

    @Test func aDeviceHasOneOfferThatWaits() throws {
        var bob = CoreBench.forDevices()
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        bob.handle(.settings(with(bob) { $0.policy.fromTrusted = .ask }))
        bob.offer()
        #expect(bob.refusedOffer() == .busy)
        bob.call(.respond(try #require(bob.pending.first), .reject, always: false))
        #expect(bob.offerWaits() == true)
    }

    private func with(_ bench: CoreBench, _ change: (inout CoreSettings) -> Void) -> CoreSettings {
        var settings = CoreSettings()
        settings.devices.isOn = true
        change(&settings)
        return settings
    }

    @Test func fourStrangersAtAnAddressMayWait() throws {
        var bob = CoreBench.forDevices()
        for _ in 0..<4 { #expect(bob.offerWaits(by: .nobody, from: [10, 77, 0, 9]) == true) }
        #expect(bob.refusedOffer(by: .nobody, from: [10, 77, 0, 9]) == .busy)
        #expect(bob.offerWaits(by: .nobody, from: [10, 77, 0, 8]) == true)
        // A place is free again when an offer ends.
        bob.call(.respond(try #require(bob.pending.first), .reject, always: false))
        #expect(bob.offerWaits(by: .nobody, from: [10, 77, 0, 9]) == true)
    }

    @Test func thirtyTwoStrangersMayWaitAndATrustedDeviceBeside() throws {
        var bob = CoreBench.forDevices { $0.policy.fromTrusted = .ask }
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        for host in 0..<32 { bob.offer(by: .nobody, from: [10, 77, 1, UInt8(host)]) }
        #expect(bob.pending.count == 32)
        #expect(bob.refusedOffer(by: .nobody, from: [10, 77, 2, 1]) == .busy)
        #expect(bob.offerWaits() == true)
        #expect(bob.pending.count == 33)
        // Peers and devices share the places.
        let link = try bob.prove(peerID(9), from: [10, 77, 3, 1])
        bob.invite(on: link)
        #expect(bob.inviteAnswer(on: link)?.decision == .busy)
    }

    @Test func anInvitationEvictsAnOfferOfTheAddressThatHoldsMost() throws {
        var bob = CoreBench.forDevices()
        for host in 0..<31 { bob.offer(by: .nobody, from: [10, 77, 1, UInt8(host)]) }
        let second = bob.offer(by: .nobody, from: [10, 77, 1, 0])
        #expect(bob.answers[second] == nil && bob.pending.count == 32)
        let link = try bob.prove(peerID(9), from: [10, 77, 3, 1])
        let id = bob.invite(on: link)
        #expect(bob.pending.last == id && bob.pending.count == 32)
        #expect(bob.core.invitations(all: true).count { $0.state == .failed } == 1)
    }

    @Test func theNamesInPendingOffersAreLimited() throws {
        var bob = CoreBench.forDevices()
        let name = String(repeating: "x", count: 255)
        let file = DeviceFile.photo("a", named: name)
        let many = (0..<5000).map { DeviceFile.photo("\($0)", named: name) }
        let cost = many.reduce(0) { $0 + $1.cost }
        let whole = EarshotLimits.pendingDeviceOfferBytes / cost
        for host in 0..<whole { #expect(bob.offerWaits(many, by: .nobody, from: [10, 77, 1, UInt8(host)]) == true) }
        #expect(bob.refusedOffer(many, by: .nobody, from: [10, 77, 2, 1]) == .busy)
        #expect(bob.offerWaits([file], by: .nobody, from: [10, 77, 2, 2]) == true)
    }

    @Test func anOfferHasUpTo5000FilesWithDifferentIds() {
        var bob = CoreBench.forDevices()
        let files = (0...5000).map { DeviceFile.photo("\($0)", named: "a") }
        #expect(bob.refusedOffer(files) == .tooLarge)
        #expect(bob.offerWaits(Array(files.dropLast())) == true)
        #expect(bob.refusedOffer([]) == .invalid)
        #expect(bob.refusedOffer([.photo("a"), .photo("a")], by: .device(2)) == .invalid)
        #expect(bob.refusedOffer([.photo("")], by: .device(2)) == .invalid)
        #expect(bob.refusedOffer([.photo(String(repeating: "a", count: 257))], by: .device(2)) == .invalid)
        #expect(bob.offerWaits([.photo(String(repeating: "a", count: 256))], by: .device(2)) == true)
    }

    @Test(arguments: [
        "", ".", "..", "/etc/passwd", "../../.ssh/authorized_keys", "a/../b", "a//b", "a/", "/", "a\0b", "a\nb", "a/./b",
        String(repeating: "x", count: 256), String(repeating: "a/", count: 64) + "a",
    ])
    func aNameThatIsNoPathBelowTheDirectoryIsRefused(name: String) {
        var bob = CoreBench.forDevices()
        #expect(bob.refusedOffer([.photo(), .photo("b", named: name)]) == .invalid)
        #expect(bob.core.invitations(all: true).isEmpty)
    }

    @Test func sizesAreAddedWithoutOverflow() {
        var bob = CoreBench.forDevices { $0.maximumResourceSize = 100 }
        #expect(bob.refusedOffer([.photo(size: 101)]) == .tooLarge)
        #expect(bob.offerWaits([.photo(size: 100)]) == true)
        var carol = CoreBench.forDevices()
        #expect(carol.refusedOffer([.photo("a", size: .max), .photo("b", size: 1)]) == .tooLarge)
        #expect(carol.refusedOffer([.photo("a", size: WireLimits.resourceSize), .photo("b", size: 1)]) == .tooLarge)
    }

    // MARK: Ends

    @Test func anOfferIsWithdrawnWhenItsSenderGoesCancelsOrWaitsForTooLong() throws {
        var bob = CoreBench.forDevices()
        let gone = bob.offer()
        let first = try #require(bob.pending.first)
        bob.handle(.callerGone(gone))
        #expect(try bob.invitation(first).state == .cancelled)
        let cancelled = bob.offer()
        let second = try #require(bob.pending.first)
        // Another address or certificate cancels nothing.
        bob.call(.device(.cancel(nil, .device(1, at: "10.77.0.3"))))
        bob.call(.device(.cancel(nil, .device(2))))
        #expect(bob.pending == [second])
        #expect(bob.call(.device(.cancel(nil, .device(1, port: 40_001)))) == .done)
        #expect(try bob.invitation(second).state == .cancelled && bob.refusal(of: cancelled) == .declined)
        let late = bob.offer()
        let third = try #require(bob.pending.first)
        bob.advance(.seconds(300) - .nanoseconds(1))
        #expect(bob.answers[late] == nil)
        bob.advance(.nanoseconds(1))
        #expect(try bob.invitation(third).state == .timedOut && bob.refusal(of: late) == .declined)
    }

    @Test func spaceThatIsReservedAfterTheSenderHasGoneIsReleased() throws {
        var bob = CoreBench.forDevices()
        let gone = bob.offer()
        bob.call(.respond(try #require(bob.pending.first), .accept, always: false))
        let accept = bob.lastCall
        bob.handle(.callerGone(gone))
        #expect(bob.answers[accept]?.error != nil)
        bob.reserve()
        guard case .release(let ids)? = bob.deviceEffects.last else {
            Issue.record("the space stays reserved")
            return
        }
        #expect(ids.count == 1)
    }

    // MARK: Texts

    @Test func aTextIsAMessageAndAnsweredOnceItIsOnDisk() throws {
        var bob = CoreBench.forDevices { $0.policy.fromUnknown = .accept }
        let offer = bob.offer([.text("hello")])
        guard case .deliver(let id, let message)? = bob.deviceEffects.last else {
            Issue.record("not delivered")
            return
        }
        #expect(message.senderID == self.phone && message.senderName == "Pixel" && String(buffer: message.body) == "hello")
        #expect(message.contentType == "text/plain; charset=utf-8" && bob.answers[offer] == nil)
        bob.handle(.device(.delivered(id, .stored(Message(message, at: bob.now.wall)))))
        #expect(bob.answers[offer] == .deviceOffer(.nothingToSend) && bob.received.map(\.id) == [message.id])
        #expect(try bob.invitation(id).state == .accepted)
    }

    private static let outcomes: [(DeliveryOutcome?, DeviceRefusal)] = [
        (.refused(.inboxFull), .noSpace), (.refused(.storage), .failed), (nil, .failed),
    ]

    @Test(arguments: Self.outcomes) func aTextThatIsNotStoredIsRefused(outcome: DeliveryOutcome?, refusal: DeviceRefusal) throws {
        var bob = CoreBench.forDevices { $0.policy.fromUnknown = .accept }
        let offer = bob.offer([.text("hello")])
        guard case .deliver(let id, _)? = bob.deviceEffects.last else {
            Issue.record("not delivered")
            return
        }
        bob.handle(.device(.delivered(id, outcome)))
        #expect(bob.refusal(of: offer) == refusal)
        #expect(try bob.invitation(id).state == .failed)
    }

    @Test func aTextHasTheLimitOfMessagesAndOneAmongFilesIsAFile() throws {
        var bob = CoreBench.forDevices()
        let most = String(repeating: "x", count: EarshotLimits.devicePreviewBytes)
        #expect(bob.refusedOffer([.text(most + "x")]) == .tooLarge)
        #expect(bob.offerWaits([.text(most)]) == true)
        bob.offer([.text("a"), .photo()], by: .device(2))
        bob.call(.respond(try #require(bob.pending.last), .accept, always: false))
        guard case .reserve(_, let files, _)? = bob.deviceEffects.last else {
            Issue.record("nothing is reserved")
            return
        }
        #expect(files.count == 2)
    }

    // MARK: PIN

    @Test func aPINIsAskedOfAllButTrustedDevices() {
        var bob = CoreBench.forDevices { $0.devices.pin = "123456" }
        #expect(bob.pin(nil) == .pinRequired)
        #expect(bob.pin("123456") == nil)
        #expect(bob.pin("12345") == .pinRequired)
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        #expect(bob.pin(nil) == nil)
        #expect(bob.pin("wrong") == nil)
        #expect(bob.pin(nil, by: .nobody) == .pinRequired)
        var carol = CoreBench.forDevices()
        #expect(carol.pin(nil) == nil)
    }

    @Test func anAddressMayErrThreeTimesInAnHour() {
        var bob = CoreBench.forDevices { $0.devices.pin = "123456" }
        for _ in 0..<3 { #expect(bob.pin("x") == .pinRequired) }
        // Not even the right PIN is accepted now, and other addresses may try.
        #expect(bob.pin("123456") == .tooManyPINs)
        #expect(bob.pin("123456", from: [10, 77, 0, 3]) == nil)
        bob.advance(EarshotLimits.devicePINPeriod - .nanoseconds(1))
        #expect(bob.pin("123456") == .tooManyPINs)
        bob.advance(.nanoseconds(1))
        #expect(bob.pin("123456") == nil)
    }

    @Test func aRightPINForgivesTheAddress() {
        var bob = CoreBench.forDevices { $0.devices.pin = "123456" }
        for _ in 0..<2 { #expect(bob.pin("x") == .pinRequired) }
        #expect(bob.pin("123456") == nil)
        for _ in 0..<2 { #expect(bob.pin("x") == .pinRequired) }
        #expect(bob.pin("123456") == nil)
    }

    @Test func allAddressesTogetherMayErrTwentyTimes() {
        var bob = CoreBench.forDevices { $0.devices.pin = "123456" }
        for host in 0..<19 { #expect(bob.pin("x", from: [10, 77, 1, UInt8(host)]) == .pinRequired) }
        #expect(bob.pin("123456", from: [10, 77, 2, 1]) == nil)
        #expect(bob.pin("x", from: [10, 77, 2, 1]) == .pinRequired)
        #expect(bob.pin("123456", from: [10, 77, 2, 2]) == .tooManyPINs)
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        #expect(bob.pin(nil) == nil)
    }

    @Test func secretsAreComparedAsAWhole() {
        #expect(areEqual(secret: "abc", "abc") && !areEqual(secret: "abc", "abd") && !areEqual(secret: "abc", "ab"))
        #expect(!areEqual(secret: "abc", "abcabc") && !areEqual(secret: "abc", "") && areEqual(secret: "", ""))
    }
}

extension CoreBench {
    /// Gives a PIN. Returns the refusal.
    fileprivate mutating func pin(_ pin: String?, by sender: DeviceSender = .phone, from origin: [UInt8] = [10, 77, 0, 2]) -> DeviceRefusal?
    {
        self.call(.device(.checkPIN(pin, sender, origin: origin)))
        return self.refusal(of: self.lastCall)
    }
}

extension Message {
    /// Creates the stored form of a message.
    init(_ message: InboxMessage, at now: WallTime) {
        self.init(
            id: message.id, direction: .incoming, senderID: message.senderID, senderName: message.senderName,
            contentType: message.contentType, body: message.body, mode: .reliable, sent: message.sent, received: now, readState: .unread,
            recipients: [])
    }
}
