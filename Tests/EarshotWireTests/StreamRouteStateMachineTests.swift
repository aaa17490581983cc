import EarshotWire
import NIOCore
import Testing

/// A stream that moves to a data connection, and back: what is legal when, from both sides.
@Suite struct StreamRouteStateMachineTests: StreamMachineSuite {
    var machine = Self.newMachine

    private func reroute(_ offset: UInt64) -> Frame { .stream(.reroute(StreamReroute(id: self.id, offset: offset))) }
    private func rerouted(_ offset: UInt64) -> Frame { .stream(.rerouted(StreamReroute(id: self.id, offset: offset))) }

    // MARK: Receiving

    /// Four bytes have come, and the next ones are to come over a data connection.
    private mutating func receiveOnData() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.receive(self.data(3))
        self.receive(self.reroute(3))
        self.receive(self.data(1))
        self.receive(self.rerouted(4))
    }

    @Test mutating func incomingToItsEndOnData() throws {
        try self.receiveOnData()
        self.send(self.accept(12))
        self.receive(self.end(12))
        self.send(self.done)
        self.receive(self.abort, .ignore)
    }

    @Test(arguments: [3, 13]) mutating func anEndThatCannotBe(_ size: UInt64) throws {
        try self.receiveOnData()
        self.send(self.accept(12))
        self.violates(self.end(size))
    }

    @Test mutating func dataWhileOnData() throws {
        try self.receiveOnData()
        self.violates(self.data(1))
    }

    @Test mutating func askedForOnceOnly() throws {
        try self.receiveOnData()
        self.violates(self.reroute(4))
    }

    @Test mutating func askedForSomewhereElse() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.violates(self.reroute(1))
    }

    @Test mutating func askedForBeforeAccept() throws {
        self.receive(try self.open())
        self.violates(self.reroute(0))
    }

    @Test mutating func movingUnaskedIsAViolation() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.violates(self.rerouted(0))
    }

    @Test mutating func movingToAnotherOffsetIsAViolation() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.receive(self.reroute(0))
        self.violates(self.rerouted(1))
    }

    @Test mutating func movingTwiceIsAViolation() throws {
        try self.receiveOnData()
        self.violates(self.rerouted(4))
    }

    @Test mutating func incomingThatNeverMoves() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.receive(self.reroute(0))
        self.receive(self.data(2))
        self.receive(self.end(2))
        self.send(self.done)
    }

    @Test mutating func incomingCalledBack() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.send(self.reroute(6), .drop)
        self.receive(self.rerouted(6))
        self.receive(self.data(2))
        self.violates(self.data(1))
    }

    @Test mutating func incomingCalledBackWithAnEndUnderWay() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.receive(self.end(8), .ignore)
        self.receive(self.rerouted(6))
        self.receive(self.data(2))
        self.receive(self.end(8))
        self.send(self.done)
    }

    @Test mutating func incomingCalledBackAfterItsEnd() throws {
        try self.receiveOnData()
        self.receive(self.end(8))
        self.send(self.reroute(8))
        self.send(self.done, .drop)
        self.receive(self.rerouted(8))
        self.receive(self.end(8))
        self.send(self.done)
    }

    @Test mutating func endsTwiceWhileCalledBack() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.receive(self.end(8), .ignore)
        self.violates(self.end(8))
    }

    @Test mutating func dataBeforeTheSenderKnows() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.violates(self.data(1))
    }

    @Test mutating func calledBackToAnotherByte() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.violates(self.rerouted(5))
    }

    @Test mutating func whatWasTakenOrNeverPermittedIsNotCalledBack() throws {
        try self.receiveOnData()
        self.send(self.accept(14))
        self.send(self.reroute(5), .drop)
        self.send(self.reroute(15), .drop)
        self.send(self.reroute(14))
    }

    @Test mutating func onlyOnceThereAndBack() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.receive(self.rerouted(6))
        self.send(self.reroute(6), .drop)
        self.violates(self.reroute(6))
    }

    @Test mutating func lateFramesAfterOurAbort() throws {
        self.receive(try self.open())
        self.send(self.accept(8))
        self.send(self.abort)
        self.receive(self.reroute(0), .ignore)
        self.receive(self.rerouted(0), .ignore)
        self.receive(self.end(8), .ignore)
        self.violates(self.end(8))
    }

    @Test mutating func lateFramesAfterOurAbortOfWhatWasCalledBack() throws {
        try self.receiveOnData()
        self.send(self.reroute(6))
        self.send(self.abort)
        self.receive(self.end(8), .ignore)
        self.receive(self.rerouted(6), .ignore)
        self.receive(self.data(2), .ignore)
        self.receive(self.end(8), .ignore)
        self.violates(self.data(1))
    }

    // MARK: Sending

    private mutating func sendOnData() throws {
        self.send(try self.open())
        self.send(self.reroute(0), .drop)
        self.receive(self.accept(8))
        self.send(self.rerouted(0), .drop)
        self.send(self.data(3))
        self.send(self.reroute(2), .drop)
        self.send(self.reroute(3))
        self.send(self.reroute(3), .drop)
        self.send(self.data(1))
        self.send(self.rerouted(3), .drop)
        self.send(self.rerouted(4))
        self.send(self.data(1), .drop)
    }

    @Test mutating func outgoingToItsEndOnData() throws {
        try self.sendOnData()
        self.send(self.end(3), .drop)
        self.send(self.end(9), .drop)
        self.send(self.end(8))
        self.send(self.reroute(8), .drop)
        self.receive(self.accept(12))
        self.receive(self.done)
    }

    @Test mutating func outgoingCalledBack() throws {
        try self.sendOnData()
        self.receive(self.reroute(6))
        self.send(self.end(8), .drop)
        self.send(self.data(1), .drop)
        self.send(self.rerouted(5), .drop)
        self.send(self.rerouted(6))
        self.send(self.data(2))
        self.send(self.reroute(8), .drop)
        self.send(self.end(8))
        self.receive(self.done)
    }

    @Test mutating func outgoingCalledBackAfterItsEnd() throws {
        try self.sendOnData()
        self.send(self.end(8))
        self.receive(self.reroute(6))
        self.violates(self.done)
    }

    @Test mutating func outgoingCalledBackAfterItsEndGoesOn() throws {
        try self.sendOnData()
        self.send(self.end(8))
        self.receive(self.reroute(6))
        self.send(self.rerouted(6))
        self.send(self.data(2))
        self.send(self.end(8))
        self.receive(self.done)
    }

    /// Not from a data connection, before where it began, behind what was said to be taken, beyond what was permitted, twice.
    @Test(arguments: ["control", "before", "taken", "beyond", "twice"]) mutating func calledBackWrongly(_ how: String) throws {
        if how == "control" {
            self.send(try self.open())
            self.receive(self.accept(8))
            self.send(self.data(4))
            return self.violates(self.reroute(4))
        }
        try self.sendOnData()
        switch how {
        case "before": self.violates(self.reroute(3))
        case "taken":
            self.receive(self.accept(14))
            self.violates(self.reroute(5))
        case "beyond": self.violates(self.reroute(9))
        default:
            self.receive(self.reroute(6))
            self.violates(self.reroute(6))
        }
    }

    @Test mutating func calledBackAfterAbortingOurOwn() throws {
        try self.sendOnData()
        self.send(self.abort)
        self.receive(self.reroute(6), .ignore)
        self.receive(self.abort, .ignore)
        self.violates(self.reroute(6))
    }

    @Test mutating func rerouteOfNothing() { self.violates(self.reroute(0)) }

    @Test mutating func reroutedOfNothing() { self.violates(self.rerouted(0)) }
}
