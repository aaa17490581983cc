import EarshotWire
import NIOCore
import Testing

/// The streams of a connection: what is legal when, from both sides.
@Suite struct StreamStateMachineTests: StreamMachineSuite {
    var machine = Self.newMachine

    // MARK: Receiving

    @Test mutating func incomingFromOpenToDone() throws {
        self.receive(try self.open())
        #expect(self.machine.openStreams == (1, 0))
        self.send(self.accept(4))
        self.receive(self.data(3))
        self.receive(self.data(1))
        self.send(self.accept(6))
        self.receive(self.data(2))
        self.send(self.done, .drop)
        self.receive(self.end(6))
        self.send(self.accept(9), .drop)
        self.send(self.done)
        #expect(self.machine.openStreams == (0, 0))
        self.receive(self.abort, .ignore)
        self.violates(self.abort)
    }

    @Test mutating func dataBeforeAccept() throws {
        self.receive(try self.open())
        self.violates(self.data(1))
    }

    @Test mutating func dataBeyondTheWindow() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.receive(self.data(4))
        self.violates(self.data(1))
    }

    @Test mutating func dataAfterTheEnd() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.receive(self.end(0))
        self.violates(self.data(1))
    }

    @Test mutating func endOfAnotherSize() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.receive(self.data(2))
        self.violates(self.end(3))
    }

    @Test mutating func anIDOpenedTwiceIsAViolation() throws {
        self.receive(try self.open())
        self.violates(try self.open())
    }

    @Test mutating func idOfAClosedStream() throws {
        self.receive(try self.open())
        self.send(self.refuse)
        self.violates(try self.open())
    }

    @Test mutating func idOfAStreamOfThisSides() throws {
        self.send(try self.open())
        self.receive(self.refuse)
        self.violates(try self.open())
    }

    @Test mutating func endlessOpensAreBusy() throws {
        for number in 0..<64 as Range<UInt64> { self.receive(try self.open(StreamID(high: 1, low: number))) }
        #expect(self.machine.openStreams.incoming == 64)
        for number in 64..<2000 as Range<UInt64> {
            guard case .reply(.stream(.refuse(let refuse))) = self.machine.received(try self.open(StreamID(high: 1, low: number))) else {
                Issue.record("the stream \(number) was taken")
                return
            }
            #expect(refuse.refusal.code == .busy)
        }
        self.send(.stream(.abort(StreamRefuse(id: StreamID(high: 1, low: 0), refusal: Refusal(code: .cancelled)))))
        self.receive(try self.open(StreamID(high: 2, low: 0)))
    }

    @Test mutating func refuseIsForWhatWasNotAccepted() throws {
        self.receive(try self.open())
        self.send(self.accept(1))
        self.send(self.refuse, .drop)
        self.send(self.abort)
    }

    @Test mutating func lateFramesAfterOurAbort() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.receive(self.data(1))
        self.send(self.abort)
        self.receive(self.data(3), .ignore)
        self.receive(self.end(4), .ignore)
        self.violates(self.data(1))
    }

    @Test mutating func lateDataIsHeldToTheWindow() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.send(self.abort)
        self.violates(self.data(5))
    }

    @Test mutating func abortsThatCross() throws {
        self.receive(try self.open())
        self.send(self.abort)
        self.receive(self.abort, .ignore)
        self.violates(self.abort)
    }

    @Test mutating func anAcceptNeverLowersTheLimit() throws {
        self.receive(try self.open())
        self.send(self.accept(4))
        self.send(self.accept(3), .drop)
        self.send(self.accept(4))
    }

    // MARK: Sending

    @Test mutating func outgoingFromOpenToDone() throws {
        self.send(try self.open())
        self.send(self.data(1), .drop)
        self.send(self.end(0), .drop)
        self.receive(self.accept(4))
        self.send(self.data(4))
        self.send(self.data(1), .drop)
        self.receive(self.accept(5))
        self.send(self.data(1))
        self.send(self.end(4), .drop)
        self.send(self.end(5))
        self.receive(self.accept(9))
        self.receive(self.done)
        self.violates(self.done)
    }

    @Test mutating func acceptOfNothing() { self.violates(self.accept(1)) }

    @Test mutating func acceptBelowTheOneBefore() throws {
        self.send(try self.open())
        self.receive(self.accept(4))
        self.violates(self.accept(3))
    }

    @Test mutating func doneBeforeTheEnd() throws {
        self.send(try self.open())
        self.receive(self.accept(4))
        self.violates(self.done)
    }

    @Test mutating func refuseAfterAccept() throws {
        self.send(try self.open())
        self.receive(self.accept(4))
        self.violates(self.refuse)
    }

    @Test mutating func aRefusedStreamIsClosed() throws {
        self.send(try self.open())
        self.receive(self.refuse)
        #expect(self.machine.openStreams == (0, 0))
        self.send(self.data(1), .drop)
    }

    @Test mutating func lateFramesAfterAbortingOurOwn() throws {
        self.send(try self.open())
        self.send(self.abort)
        self.receive(self.accept(4), .ignore)
        self.receive(self.accept(8), .ignore)
        self.receive(self.refuse, .ignore)
        self.violates(self.refuse)
    }

    @Test mutating func abortOfNothing() { self.violates(self.abort) }

    @Test mutating func theLimitMayBeAnyNumber() throws {
        self.send(try self.open())
        self.receive(self.accept(.max))
        self.send(self.data(4))
        self.send(self.end(4))
    }
}
