import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// The files of accepted offers: tokens, receipt, and ends.
@Suite struct DeviceUploadTests {
    private let phone = deviceID(1)

    /// A core that accepts every offer.
    private static func accepting(_ change: (inout CoreSettings) -> Void = { _ in }) -> CoreBench {
        .forDevices {
            $0.policy.fromUnknown = .accept
            change(&$0)
        }
    }

    @Test func aFileIsReceivedIntoTheListAndAnsweredOnceItIsOnDisk() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo(named: "trip/rome/photo.jpg", size: 10)])
        #expect(bob.uploads.isEmpty)
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        #expect(row.name == "photo.jpg" && row.folder == "trip/rome" && row.peerID == self.phone && row.size == 10)
        #expect(bob.events.contains(.resourceOffered(row)))
        guard case .receiveBody(_, _, _, call)? = bob.orders[row.id]?.first else {
            Issue.record("\(String(describing: bob.orders[row.id]))")
            return
        }
        bob.handle(.transfer(row.id, .began))
        bob.handle(.transfer(row.id, .written(to: 10)))
        bob.handle(.transfer(row.id, .bodyEnded))
        #expect(bob.orders[row.id]?.last == .settle(nil))
        bob.isDiskHeld = true
        bob.handle(.transfer(row.id, .settled("xxh3:00")))
        #expect(bob.answers[call] == nil)
        bob.releaseDisk()
        #expect(bob.answers[call] == .done)
        let end = try bob.core.resource(row.id, at: bob.now.monotonic)
        #expect(end.state == .completed && end.inSpool && end.transferred == 10)
        #expect(bob.events.contains(.resourceFinished(end)))
        // The session has ended with its last file.
        #expect(bob.refusedUpload(session, tokens[0]) == .declined)
        #expect(bob.core.devices.sessions.isEmpty)
    }

    @Test func anUploadNeedsTheTokenTheAddressAndTheCertificateOfItsOffer() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo("a"), .photo("b")])
        let other = try bob.session([.photo("a"), .photo("b")], by: .device(2))
        let wrong = [
            bob.upload(session, DeviceToken(file: "a", token: tokens[1].token)),
            bob.upload(session, DeviceToken(file: "c", token: tokens[0].token)),
            bob.upload(other.id, tokens[0]), bob.upload("x", tokens[0]), bob.upload(session, tokens[0], by: .device(1, at: "10.77.0.3")),
            bob.upload(session, tokens[0], by: .device(2)), bob.upload(session, DeviceToken(file: "a", token: "")),
            bob.upload(session, tokens[0], by: DeviceSender(id: nil, address: DeviceSender.phone.address)),
        ]
        for call in wrong { #expect(bob.refusal(of: call) == .declined) }
        // Another connection of the same sender is welcome, once.
        let right = bob.upload(session, tokens[0], by: .device(1, port: 50_000))
        #expect(bob.answers[right] == nil)
        #expect(bob.refusedUpload(session, tokens[0]) == .declined)
    }

    @Test func aFileWithADigestIsUploadedUpToThreeTimes() throws {
        var bob = Self.accepting()
        let digest = [UInt8](repeating: 7, count: 32)
        let (session, tokens) = try bob.session([.photo(sha256: digest), .photo("b")])
        for attempt in 1...3 {
            let call = bob.upload(session, tokens[0])
            let row = try #require(bob.uploads.first)
            bob.handle(.transfer(row.id, .written(to: 10)))
            bob.handle(.transfer(row.id, .bodyEnded))
            #expect(bob.orders[row.id]?.last == .settle(ResourceDigest(.sha256, digest)))
            let error = EarshotError(.digestMismatch, "the received bytes differ")
            bob.handle(.transfer(row.id, .failed(TransferFailure(error, told: Refusal(code: .digestMismatch)))))
            bob.handle(.transfer(row.id, .stopped))
            #expect(bob.refusal(of: call) == .digestMismatch, "attempt \(attempt)")
            #expect(try bob.core.resource(row.id, at: bob.now.monotonic).error == .digestMismatch)
        }
        #expect(bob.refusedUpload(session, tokens[0]) == .declined)
        // The other file is not affected.
        #expect(bob.uploadBegins(session, tokens[1]) == true)
    }

    private static let failures: [(EarshotError.Code, DeviceRefusal)] = [
        (.tooLarge, .tooLarge), (.noSpace, .noSpace), (.storage, .failed), (.protocolViolation, .failed),
    ]

    @Test(arguments: Self.failures) func anUploadThatFailsIsNotRepeated(code: EarshotError.Code, refusal: DeviceRefusal) throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo(), .photo("b")])
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        let error = EarshotError(code, "x")
        bob.handle(.transfer(row.id, .failed(TransferFailure(error, told: Refusal(code: .cancelled)))))
        #expect(bob.refusal(of: call) == refusal && bob.orders[row.id]?.last == .stop(isKept: false))
        #expect(bob.refusedUpload(session, tokens[0]) == .declined)
    }

    @Test func aLostConnectionFailsItsUploadAndRemovesTheContent() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session()
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        bob.handle(.transfer(row.id, .written(to: 5)))
        bob.handle(.callerGone(call))
        let end = try bob.core.resource(row.id, at: bob.now.monotonic)
        #expect(end.state == .failed && bob.orders[row.id]?.last == .stop(isKept: false))
        #expect(bob.refusedUpload(session, tokens[0]) == .declined)
    }

    // MARK: Sessions

    @Test func theTokensOfASessionExpireAfterAMinuteWithoutAByte() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo("a", size: 100), .photo("b")])
        bob.advance(.seconds(59))
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        bob.advance(.seconds(59))
        bob.handle(.transfer(row.id, .written(to: 1)))
        bob.advance(EarshotLimits.deviceTokenTime - .nanoseconds(1))
        #expect(bob.answers[call] == nil)
        bob.advance(.nanoseconds(1))
        #expect(bob.refusal(of: call) == .failed)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).error == .timedOut)
        #expect(bob.refusedUpload(session, tokens[1]) == .declined)
        guard case .release(let ids)? = bob.deviceEffects.last else {
            Issue.record("the space of the other file stays reserved")
            return
        }
        #expect(ids.count == 1)
    }

    @Test func aFileThatIsBeingVerifiedKeepsItsSession() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo("a"), .photo("b")])
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        bob.handle(.transfer(row.id, .written(to: 10)))
        bob.handle(.transfer(row.id, .bodyEnded))
        bob.advance(.seconds(200))
        #expect(bob.answers[call] == nil)
        bob.handle(.transfer(row.id, .settled("sha256:00")))
        #expect(bob.answers[call] == .done)
        #expect(bob.uploadBegins(session, tokens[1]) == true)
    }

    @Test func aUserWhoCancelsAFileEndsItsSessionAndTheSenderIsTold() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo("a"), .photo("b"), .photo("c")])
        let calls = [bob.upload(session, tokens[0]), bob.upload(session, tokens[1])]
        let rows = bob.uploads
        #expect(bob.call(.resource(.remove(rows[0].id)))?.resource?.state == .cancelled)
        for call in calls { #expect(bob.refusal(of: call) == .declined) }
        #expect(try bob.core.resource(rows[1].id, at: bob.now.monotonic).state == .cancelled)
        let target = DeviceTarget(id: self.phone, address: PeerAddress(host: "10.77.0.2", zone: nil, port: 53317))
        #expect(bob.deviceEffects.contains(.cancel(session: session, target)))
        #expect(bob.refusedUpload(session, tokens[2]) == .declined)
    }

    @Test func aSenderThatListensOnALowPortIsNotTold() throws {
        var bob = Self.accepting()
        let offer = DeviceOffer(info: .of(self.phone, port: 1023), files: [.photo()])
        bob.call(.device(.offer(offer, .phone, origin: [10, 77, 0, 2])))
        let call = bob.lastCall
        bob.reserve()
        guard case .deviceOffer(.upload(let session, let tokens))? = bob.answers[call] else {
            throw EarshotError(.conflict, "not accepted")
        }
        _ = bob.upload(session, tokens[0])
        #expect(bob.call(.resource(.remove(bob.uploads[0].id)))?.resource?.state == .cancelled)
        #expect(!bob.deviceEffects.contains { if case .cancel = $0 { true } else { false } })
    }

    @Test func theSenderCancelsItsSession() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session()
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        bob.call(.device(.cancel(session, .device(2))))
        bob.call(.device(.cancel(session, .device(1, at: "10.77.0.3"))))
        #expect(bob.answers[call] == nil)
        bob.call(.device(.cancel(session, .phone)))
        #expect(bob.refusal(of: call) == .declined)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .cancelled)
        #expect(!bob.deviceEffects.contains { if case .cancel = $0 { true } else { false } })
    }

    @Test func aBlockEndsTheSessionsOfTheDevice() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session([.photo("a"), .photo("b")])
        let call = bob.upload(session, tokens[0])
        bob.call(.setTrust(.blocked, self.phone.description, until: nil))
        #expect(bob.refusal(of: call) == .declined && bob.core.devices.sessions.isEmpty)
        #expect(bob.refusedUpload(session, tokens[1]) == .declined)
    }

    @Test func aDeviceHasFourSessionsAndAllTogether32() throws {
        var bob = Self.accepting { $0.invitationBurst = 100 }
        for _ in 0..<4 { _ = try bob.session() }
        #expect(bob.refusedOffer() == .busy)
        for number in 2...8 { for _ in 0..<4 { _ = try bob.session(by: .device(UInt8(number))) } }
        #expect(bob.core.devices.sessions.count == 32)
        #expect(bob.refusedOffer(by: .device(9), from: [10, 77, 9, 9]) == .busy)
        bob.call(.setTrust(.trusted, deviceID(9).description, until: nil))
        _ = try bob.session(by: .device(9))
    }

    @Test func eightFilesOfASessionMoveAtATime() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session((0..<9).map { .photo("\($0)") })
        for token in tokens.dropLast() { #expect(bob.uploadBegins(session, token) == true) }
        #expect(bob.refusedUpload(session, tokens[8]) == .busy)
        try bob.receiveAll(bob.uploads[0].id)
        #expect(bob.uploadBegins(session, tokens[8]) == true)
    }

    @Test func aStopEndsUploadsAndARestartListsThemAsFailed() throws {
        var bob = Self.accepting()
        let (session, tokens) = try bob.session()
        let call = bob.upload(session, tokens[0])
        let row = try #require(bob.uploads.first)
        bob.handle(.transfer(row.id, .written(to: 5)))
        bob.handle(.stop)
        bob.handle(.streamsOver)
        #expect(bob.answers[call] != nil)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .cancelled)
        // If the process is killed instead, the next start finds the row as it was written.
        var again = Self.accepting()
        var killed = row
        killed.state = .transferring
        let stored = StoredTransfer(id: row.id, source: .none, isTaken: true, expiry: again.now.running)
        again.handle(.transfers([LoadedTransfer(row: killed, stored: stored, held: 5)], []))
        #expect(try again.core.resource(row.id, at: again.now.monotonic).state == .failed)
        #expect(again.core.spooled.unfinished.isEmpty)
    }
}
