import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// The acceptance of a device's offer with which the user also trusts the device. The offer comes first: if it fails, the trust is unchanged.
@Suite struct DeviceAlwaysTests {
    private let phone = deviceID(1)

    private func accepted(_ files: [DeviceFile] = [.photo()]) throws -> (bob: CoreBench, offer: CallID, accept: CallID) {
        var bob = CoreBench.forDevices()
        let offer = bob.offer(files)
        bob.call(.respond(try #require(bob.pending.first), .accept, always: true))
        return (bob, offer, bob.lastCall)
    }

    @Test func theTrustIsWrittenOnceTheOfferIsAccepted() throws {
        var (bob, offer, accept) = try self.accepted()
        #expect(bob.peersOnDisk.isEmpty && bob.answers[offer] == nil && bob.answers[accept] == nil)
        bob.isDiskHeld = true
        bob.reserve()
        #expect(bob.answers[offer]?.isUpload == true && bob.answers[accept] == nil)
        bob.releaseDisk()
        #expect(bob.answers[accept]?.invitation?.state == .accepted && bob.peersOnDisk[self.phone]?.trust == .trusted)
        #expect(try bob.peer(self.phone).trust == .trusted)
    }

    @Test func theFilesHaveTheShareOfATrustedDevice() throws {
        var (bob, offer, _) = try self.accepted()
        let trusted = QuotaShare(of: self.phone, isTrusted: true)
        guard case .reserve(_, _, trusted)? = bob.deviceEffects.last else {
            Issue.record("\(String(describing: bob.deviceEffects.last))")
            return
        }
        bob.isDiskHeld = true
        bob.reserve()
        guard case .deviceOffer(.upload(let session, let tokens))? = bob.answers[offer] else {
            Issue.record("\(String(describing: bob.answers[offer]))")
            return
        }
        // The upload may begin before the trust is on disk.
        _ = bob.upload(session, try #require(tokens.first))
        let share = bob.orders.values.joined().compactMap { if case .receiveBody(_, let share, _, _) = $0 { share } else { nil } }
        #expect(share == [trusted] && bob.peersOnDisk.isEmpty)
    }

    @Test(arguments: [true, false]) func anOfferThatFailsLeavesTheTrustUnchanged(isText: Bool) throws {
        var (bob, offer, accept) = try self.accepted(isText ? [.text("hello")] : [.photo()])
        if case .deliver(let id, _)? = bob.deviceEffects.last { bob.handle(.device(.delivered(id, .refused(.inboxFull)))) }
        bob.reserve(EarshotError(.noSpace, "full"))
        #expect(bob.refusal(of: offer) == .noSpace && bob.answers[accept]?.error == (isText ? .inboxFull : .noSpace))
        #expect(bob.commits.isEmpty && bob.core.undecidedCount == 0)
        #expect(try bob.peer(self.phone).trust == .unknown)
    }

    @Test(arguments: [true, false]) func ifTheDiskRefusesTheTrustTheCallerHearsThatTheOfferIsAccepted(isText: Bool) throws {
        var (bob, offer, accept) = try self.accepted(isText ? [.text("hello")] : [.photo()])
        bob.diskError = EarshotError(.noSpace, "the disk is full")
        if case .deliver(let id, _)? = bob.deviceEffects.last { bob.handle(.device(.delivered(id, .duplicate))) }
        bob.reserve()
        #expect(isText ? bob.answers[offer] == .deviceOffer(.nothingToSend) : bob.answers[offer]?.isUpload == true)
        let words = "the offer of Pixel was accepted, but the device is not trusted: the disk is full"
        #expect(bob.answers[accept]?.failure == EarshotError(.noSpace, words, remedy: .trust))
        #expect(try bob.peer(self.phone).trust == .unknown && bob.core.invitations(all: true).first?.state == .accepted)
    }

    /// The sender may go, cancel or be blocked while the space is being reserved.
    private static let ends: [@Sendable (inout CoreBench, CallID) -> Void] = [
        { $0.handle(.callerGone($1)) },
        { bob, _ in bob.call(.device(.cancel(nil, .phone))) },
        { bob, _ in bob.call(.setTrust(.blocked, deviceID(1).description, until: nil)) },
    ]

    @Test(arguments: Self.ends.indices) func anOfferThatEndsBeforeItIsAcceptedIsNotTrusted(end: Int) throws {
        var (bob, offer, accept) = try self.accepted()
        Self.ends[end](&bob, offer)
        #expect(bob.answers[accept]?.error != nil)
        bob.reserve()
        #expect(try bob.peer(self.phone).trust == (end == 2 ? .blocked : .unknown))
    }

    @Test func aBlockThatIsWrittenMeanwhileStays() throws {
        var (bob, _, accept) = try self.accepted()
        bob.isDiskHeld = true
        bob.call(.setTrust(.blocked, self.phone.description, until: nil))
        let block = bob.lastCall
        bob.reserve()
        bob.releaseDisk()
        #expect(bob.answers[block]?.peer?.trust == .blocked && bob.peersOnDisk[self.phone]?.trust == .blocked)
        #expect(bob.answers[accept]?.error == .forbidden && bob.answers[accept]?.failure?.remedy == .unblock)
    }

    @Test func aDeviceThatIsGoneMeanwhileIsTrustedUnderItsName() throws {
        var (bob, _, accept) = try self.accepted([.text("hello")])
        bob.core.deviceLost(self.phone)
        guard case .deliver(let id, _)? = bob.deviceEffects.last else {
            Issue.record("not delivered")
            return
        }
        bob.handle(.device(.delivered(id, .duplicate)))
        #expect(bob.answers[accept]?.invitation?.state == .accepted && bob.peersOnDisk[self.phone]?.name == "Pixel")
    }
}
