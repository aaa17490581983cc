import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore

/// Messages and resources for LocalSend devices: their order, retries, and outcomes.
@Suite struct DeviceSendingTests {
    private let phone = deviceID(1)

    @Test func aTextIsDeliveredOnceTheDeviceHasAnswered() throws {
        var bob = CoreBench.meetingPhone()
        let outcome = bob.send("hello", to: self.phone)
        #expect(outcome == nil)
        let call = bob.lastCall
        let (id, shipment, target) = try #require(bob.shipment)
        guard case .message(_, "a/b", let body) = shipment else {
            Issue.record("\(shipment)")
            return
        }
        #expect(body == ByteBuffer(string: "hello") && target.address.description == "10.77.0.2:53317")
        bob.report(id, .delivered)
        #expect(try bob.outcome(of: call)?.get().recipients.map(\.status) == [.delivered])
    }

    /// Every id begins with these letters.
    @Test func aNameThatBeginsLikeAnIDIsNoID() throws {
        var bob = CoreBench.forDevices()
        bob.register(1, named: "LS-")
        let answer = bob.call(.send([.init(to: .peers(["LS-"]), contentType: "a/b", body: ByteBuffer(string: "x"))], room: [:]))
        let error = #expect(throws: EarshotError.self) { try answer?.sent?.first?.get() }
        #expect(error?.code == .forbidden)
    }

    @Test func aStreamToADeviceIsUnsupported() {
        var bob = CoreBench.forDevices()
        bob.register(1)
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        #expect(bob.call(.stream(.open(to: "Pixel", name: "x")))?.error == .unsupported)
    }

    @Test func aDeviceThatIsNotTrustedIsNamedByItsID() throws {
        var bob = CoreBench.forDevices()
        bob.register(1)
        let byName = bob.call(.send([.init(to: .peers(["Pixel"]), contentType: "a/b", body: ByteBuffer(string: "x"))], room: [:]))
        let error = #expect(throws: EarshotError.self) { try byName?.sent?.first?.get() }
        #expect(error?.code == .forbidden && error?.message.contains(self.phone.description) == true)
        let prefix = String(self.phone.description.prefix(11)).lowercased()
        bob.call(.send([.init(to: .peers([prefix]), contentType: "a/b", body: ByteBuffer(string: "x"))], room: [:]))
        #expect(bob.shipment != nil)
        bob.call(.setTrust(.blocked, self.phone.description, until: nil))
        bob.send("y", to: self.phone)
        let blocked = #expect(throws: EarshotError.self) { try bob.outcome(of: bob.lastCall)?.get() }
        #expect(blocked?.code == .forbidden)
    }

    @Test func oneThingAtATimeInTheOrderOfTheRequests() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("1", to: self.phone)
        bob.send("2", to: self.phone)
        #expect(bob.shipments.count == 1)
        bob.report(try #require(bob.shipment).id, .delivered)
        #expect(bob.shipments.count == 2)
        guard case .message(_, _, let body)? = bob.shipment?.content else { return }
        #expect(body == ByteBuffer(string: "2"))
    }

    private static let retried: [DeviceFailure] = [.unreachable("x"), .refused(status: 409)]

    @Test(arguments: Self.retried) func aBusyOrUnreachableDeviceIsTriedUntilTheDeadline(failure: DeviceFailure) throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone, timeout: .seconds(10))
        let call = bob.lastCall
        bob.report(try #require(bob.shipment).id, .failed(failure))
        #expect(bob.shipments.count == 1)
        bob.advance(.seconds(1))
        #expect(bob.shipments.count == 2)
        bob.report(try #require(bob.shipment).id, .failed(failure))
        bob.advance(.seconds(2))
        #expect(bob.shipments.count == 3)
        bob.report(try #require(bob.shipment).id, .failed(failure))
        bob.advance(.seconds(5))
        bob.report(try #require(bob.shipment).id, .failed(failure))
        bob.advance(.seconds(3))
        let recipient = try #require(try bob.outcome(of: call)?.get().recipients.first)
        #expect(recipient.status == .failed && recipient.error == .notSent)
    }

    private static let final: [(DeviceFailure, EarshotError.Code, Message.Status)] = [
        (.refused(status: 401), .forbidden, .failed), (.refused(status: 403), .declined, .failed),
        (.refused(status: 429), .forbidden, .failed), (.refused(status: 507), .noSpace, .failed),
        (.refused(status: 500), .unavailable, .failed), (.lost("x"), .unconfirmed, .unconfirmed),
        (.identityMismatch, .identityMismatch, .failed), (.invalid("x"), .protocolViolation, .failed),
    ]

    @Test(arguments: Self.final)
    func otherFailuresAreFinal(failure: DeviceFailure, code: EarshotError.Code, status: Message.Status) throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone)
        let call = bob.lastCall
        bob.report(try #require(bob.shipment).id, .failed(failure))
        let recipient = try #require(try bob.outcome(of: call)?.get().recipients.first)
        #expect(recipient.status == status && recipient.error == code)
        bob.advance(.seconds(60))
        #expect(bob.shipments.count == 1)
        #expect(try bob.peer(self.phone).presence == (failure == .identityMismatch ? .away : .nearby))
    }

    @Test func aMessageUnderWayAtItsDeadlineIsUnconfirmedAndStopped() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone)
        let (call, id) = (bob.lastCall, try #require(bob.shipment).id)
        bob.advance(EarshotLimits.deviceMessageTimeout - .seconds(1))
        #expect(bob.outcome(of: call) == nil)
        bob.advance(.seconds(2))
        #expect(try bob.outcome(of: call)?.get().recipients.map(\.status) == [.unconfirmed])
        #expect(bob.deviceEffects.contains(.stopShipment(id)))
    }

    @Test func aQueuedMessageWaitsUntilTheDeviceIsSeenAlsoAfterARestart() throws {
        var bob = CoreBench.forDevices()
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        bob.send("x", to: self.phone, queue: true)
        #expect(bob.shipments.isEmpty)
        bob.advance(.seconds(125))
        // At the start, at the request, and once a minute.
        #expect(bob.deviceEffects.count { $0 == .announce } >= 9)
        var again = bob.restarted { $0.devices.isOn = true }
        #expect(again.shipments.isEmpty)
        again.register(1)
        let (id, content, _) = try #require(again.shipment)
        guard case .message(_, _, nil) = content else {
            Issue.record("\(content)")
            return
        }
        again.report(id, .delivered)
        #expect(again.core.outbox.isEmpty)
    }

    @Test func aCancelledMessageIsNotSent() throws {
        var bob = CoreBench.forDevices()
        bob.call(.setTrust(.trusted, self.phone.description, until: nil))
        bob.send("x", to: self.phone, queue: true)
        let id = try #require(bob.core.outbox.first?.id)
        #expect(bob.call(.cancelQueued(id))?.sent != nil)
        bob.register(1)
        #expect(bob.shipments.isEmpty)
    }

    // MARK: Resources

    @Test func aResourceMovesAndCompletes() throws {
        var bob = CoreBench.meetingPhone()
        let row = try #require(bob.call(.resource(.send([.forPhone()])))?.resources?.first)
        #expect(row.peerName == "Pixel" && row.queued == nil)
        let id = try #require(bob.shipment).id
        bob.report(id, .accepted(session: "s"))
        bob.report(id, .moved(to: 5))
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .transferring)
        bob.report(id, .delivered)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .completed)
        #expect(!bob.deviceEffects.contains(.stopShipment(id)))
    }

    @Test func aUserWhoCancelsAResourceCancelsItsSessionThere() throws {
        var bob = CoreBench.meetingPhone()
        let row = try #require(bob.call(.resource(.send([.forPhone()])))?.resources?.first)
        let (id, _, target) = try #require(bob.shipment)
        bob.report(id, .accepted(session: "s"))
        #expect(bob.call(.resource(.remove(row.id)))?.resource?.state == .cancelled)
        #expect(bob.deviceEffects.suffix(2) == [.stopShipment(id), .cancel(session: "s", target)])
        bob.report(id, .delivered)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .cancelled)
    }

    @Test func theDeviceCancelsWhatItReceives() throws {
        var bob = CoreBench.meetingPhone()
        let row = try #require(bob.call(.resource(.send([.forPhone()])))?.resources?.first)
        bob.report(try #require(bob.shipment).id, .accepted(session: "s"))
        bob.call(.device(.cancel("s", .device(1, at: "10.77.0.3"))))
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state != .cancelled)
        bob.call(.device(.cancel("s", .device(1))))
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .cancelled)
    }

    @Test func withoutTheDeviceAResourceTimesOutUnlessItIsQueued() throws {
        for isQueued in [false, true] {
            var bob = CoreBench.forDevices()
            bob.call(.setTrust(.trusted, self.phone.description, until: nil))
            let row = try #require(bob.call(.resource(.send([.forPhone(queue: isQueued)])))?.resources?.first)
            #expect(row.queued == true)
            bob.advance(EarshotLimits.resourceReachTime + .seconds(1))
            let now = try bob.core.resource(row.id, at: bob.now.monotonic)
            #expect(now.state == (isQueued ? .offered : .failed) && now.error == (isQueued ? nil : .notSent))
            bob.register(1)
            #expect((bob.shipment != nil) == isQueued)
        }
    }

    @Test func aStopEndsAResourceUnderWayAndAQueuedOneWaits() throws {
        var bob = CoreBench.meetingPhone()
        let row = try #require(bob.call(.resource(.send([.forPhone()])))?.resources?.first)
        bob.report(try #require(bob.shipment).id, .accepted(session: "s"))
        bob.handle(.stop)
        bob.handle(.streamsOver)
        #expect(try bob.core.resource(row.id, at: bob.now.monotonic).state == .cancelled)
        var again = CoreBench.forDevices()
        let stored = StoredTransfer(
            id: row.id, source: .path, isQueued: true, expiry: again.now.running + .seconds(1000))
        again.handle(.transfers([LoadedTransfer(row: row, stored: stored)], []))
        again.handle(.start)
        again.register(1)
        #expect(again.shipment != nil)
    }
}
