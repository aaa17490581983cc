import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore

/// The ends of attempts to send something to a device: deadlines, restarts, and settings. Nothing that a device may have is sent again.
@Suite struct DeviceShipmentTests {
    private let phone = deviceID(1)

    private func recipient(_ bob: CoreBench, _ call: CallID) throws -> Message.Recipient {
        try #require(try bob.outcome(of: call)?.get().recipients.first)
    }

    private func row(_ bob: CoreBench) throws -> Resource {
        try bob.core.resource(ResourceID(high: 1, low: 1), at: bob.now.monotonic)
    }

    // MARK: Deadlines

    @Test func aMessageIsNotSentAtItsDeadlineWhenAnotherEndsThen() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("1", to: self.phone, timeout: .seconds(1))
        let first = bob.lastCall
        bob.send("2", to: self.phone, timeout: .seconds(1))
        let second = bob.lastCall
        bob.advance(.seconds(1))
        #expect(bob.shipments.count == 1)
        #expect(try self.recipient(bob, first).status == .unconfirmed && self.recipient(bob, second).error == .notSent)
    }

    @Test func nothingIsSentAfterItsDeadlineWhenTheMachineWasSuspended() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone, timeout: .seconds(2))
        let call = bob.lastCall
        bob.report(try #require(bob.shipment).id, .failed(.unreachable("x")))
        bob.call(.resource(.send([.forPhone()])))
        bob.sleep(EarshotLimits.resourceReachTime)
        bob.handle(.deadline)
        #expect(bob.shipments.count == 1)
        #expect(try self.recipient(bob, call).error == .notSent && self.row(bob).error == .notSent)
    }

    @Test func aResourceDoesNotWaitForABusyDeviceBeyondItsTime() throws {
        var bob = CoreBench.meetingPhone()
        bob.call(.resource(.send([.forPhone()])))
        var attempts = 0
        while try self.row(bob).state == .offered, attempts < 100 {
            let id = try #require(bob.shipment).id
            bob.report(id, .failed(.refused(status: 409)))
            attempts = bob.shipments.count
            while bob.shipments.count == attempts, try self.row(bob).state == .offered { bob.advance(.seconds(1)) }
        }
        // After 1, 2 and then every 5 s.
        #expect(attempts == 14)
        #expect(try self.row(bob).error == .notSent)
    }

    /// A caller has sent the message before under its id, and the outcome was unknown.
    @Test(arguments: [true, false]) func aMessageThatAnEarlierAttemptMayHaveDeliveredIsNeverNotSent(isCancelled: Bool) throws {
        var bob = CoreBench.meetingPhone()
        let id = MessageID(high: 1, low: 1)
        bob.send("x", to: self.phone, id: id)
        bob.report(try #require(bob.shipment).id, .failed(.lost("x")))
        bob.core.deviceLost(self.phone)
        bob.send("x", to: self.phone, id: id, queue: isCancelled, timeout: .seconds(5))
        let call = bob.lastCall
        if isCancelled {
            bob.call(.cancelQueued(id))
            #expect(try self.recipient(bob, bob.lastCall).status == .unconfirmed)
        } else {
            bob.advance(.seconds(5))
            #expect(try self.recipient(bob, call).status == .unconfirmed)
        }
        #expect(bob.shipments.count == 1)
    }

    // MARK: PINs

    @Test func everyDeviceOfAMessageIsGivenThePIN() throws {
        var bob = CoreBench.meetingPhone()
        bob.register(2, named: "Tablet", at: "10.77.0.3")
        var draft = MessageDraft(
            to: .peers([self.phone.description, deviceID(2).description]), contentType: "a/b", body: ByteBuffer(string: "x"))
        draft.pin = "123456"
        bob.call(.send([draft], room: [:]))
        let (first, second) = (try #require(bob.shipments.first).id, try #require(bob.shipments.last).id)
        bob.report(first, .delivered)
        bob.report(second, .failed(.unreachable("x")), of: deviceID(2))
        bob.advance(.seconds(1))
        #expect(bob.shipmentPINs == ["123456", "123456", "123456"])
        bob.call(.resource(.send([.forPhone(pin: "654321")])))
        #expect(bob.shipmentPINs.last == "654321")
    }

    // MARK: Restarts

    @Test func aQueuedMessageThatWasBeingSentIsUnconfirmedAfterARestart() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone, queue: true)
        #expect(bob.shipments.count == 1)
        var again = bob.restarted { $0.devices.isOn = true }
        again.register(1)
        #expect(again.shipments.isEmpty && again.core.outbox.isEmpty)
        let statuses = again.statusesOnDisk.values.joined().map(\.status)
        #expect(statuses.last == .unconfirmed)
    }

    @Test func aQueuedMessageForWhichTheDeviceWasBusyIsSentAfterARestart() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone, queue: true)
        bob.report(try #require(bob.shipment).id, .failed(.refused(status: 409)))
        var again = bob.restarted { $0.devices.isOn = true }
        again.register(1)
        #expect(again.shipments.count == 1)
    }

    @Test func anAcceptedResourceIsOnDiskAtOnce() throws {
        var bob = CoreBench.meetingPhone()
        bob.call(.resource(.send([.forPhone(queue: true)])))
        bob.report(try #require(bob.shipment).id, .accepted(session: "s"))
        let states = bob.keptTransfers.compactMap { if case .put(let row, _) = $0 { row.state } else { nil } }
        #expect(states.last == .transferring)
    }

    @Test func theStopStopsWhatIsBeingSentAndStillHearsOfItsEnd() throws {
        var bob = CoreBench.meetingPhone()
        bob.register(2, named: "Tablet", at: "10.77.0.3")
        bob.call(.resource(.send([.forPhone(queue: true)])))
        let file = try #require(bob.shipment).id
        bob.send("x", to: deviceID(2), queue: true)
        let message = try #require(bob.shipment).id
        bob.handle(.stop)
        bob.report(message, .delivered, of: deviceID(2))
        #expect(bob.statusesOnDisk.values.joined().map(\.status).last == .delivered)
        bob.handle(.streamsOver)
        #expect(bob.deviceEffects.last == .stopShipment(file))
        bob.report(file, .accepted(session: "s"))
        #expect(try self.row(bob).state == .offered)
    }

    // MARK: Settings

    @Test func whatIsBeingSentIsStoppedWhenLocalSendIsSwitchedOff() throws {
        var bob = CoreBench.meetingPhone()
        bob.register(2, named: "Tablet", at: "10.77.0.3")
        bob.send("x", to: deviceID(2))
        let (call, message) = (bob.lastCall, try #require(bob.shipment).id)
        bob.call(.resource(.send([.forPhone(queue: true)])))
        let file = try #require(bob.shipment).id
        bob.handle(.settings(CoreSettings()))
        #expect(bob.deviceEffects.contains(.stopShipment(message)) && bob.deviceEffects.contains(.stopShipment(file)))
        #expect(try self.recipient(bob, call).status == .unconfirmed && self.row(bob).state == .offered)
        var settings = CoreSettings()
        settings.devices.isOn = true
        bob.handle(.settings(settings))
        bob.advance(.seconds(2))
        bob.register(1)
        #expect(bob.shipments.count == 3)
        bob.report(try #require(bob.shipment).id, .accepted(session: "s"))
        bob.handle(.settings(CoreSettings()))
        #expect(try self.row(bob).error == .unavailable)
    }

    // MARK: Searching

    @Test func aDeviceThatIsLostIsSoughtWhileSomethingWaits() throws {
        var bob = CoreBench.meetingPhone()
        bob.send("x", to: self.phone, queue: true)
        bob.report(try #require(bob.shipment).id, .failed(.unreachable("x")))
        bob.core.deviceLost(self.phone)
        let before = bob.announcements
        bob.advance(.seconds(125))
        #expect(bob.announcements - before >= 6)
        // Also after a restart.
        var again = bob.restarted { $0.devices.isOn = true }
        again.advance(.seconds(65))
        #expect(again.announcements >= 6)
    }
}

extension CoreBench {
    fileprivate var announcements: Int { self.deviceEffects.count { $0 == .announce } }
}
