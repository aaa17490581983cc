import EarshotWire
import NIOCore
import Testing

@Suite struct TransferStateMachineTests {
    private typealias Machine = ConnectionStateMachine
    private let fresh = Machine(localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2]))

    private func id(_ number: UInt64) -> ResourceID { ResourceID(high: 1, low: number) }

    private func offer(_ number: UInt64 = 0, size: UInt64 = 10) -> Frame {
        .resource(.offer(ResourceOffer(session: Fixtures.session, id: self.id(number), kind: .file, size: size, name: "a")))
    }

    private func accept(_ offset: UInt64, _ limit: UInt64, _ number: UInt64 = 0) -> Frame {
        .resource(.accept(ResourceAccept(id: self.id(number), offset: offset, limit: limit)))
    }

    private func chunk(_ offset: UInt64, _ count: Int, _ number: UInt64 = 0) -> Frame {
        .resource(.chunk(ResourceChunk(id: self.id(number), offset: offset, data: ByteBuffer(repeating: 1, count: count))))
    }

    private func refuse(_ number: UInt64 = 0) -> Frame {
        .resource(.refuse(ResourceRefuse(id: self.id(number), refusal: Refusal(code: .declined))))
    }

    private func cancel(_ number: UInt64 = 0) -> Frame {
        .resource(.cancel(ResourceRefuse(id: self.id(number), refusal: Refusal(code: .cancelled))))
    }

    private var end: Frame { .resource(.end(ResourceEnd(id: self.id(0), algorithm: .xxh3, digest: [1]))) }
    private var done: Frame { .resource(.done(self.id(0))) }

    private enum Event {
        case sent(Frame)
        case received(Frame)
    }

    /// A machine to which all of `events` happened, each of them in order.
    private func after(_ events: Event...) -> Machine {
        var machine = self.fresh
        for event in events {
            switch event {
            case .sent(let frame): #expect(machine.sent(frame) == .send)
            case .received(let frame): #expect(machine.received(frame) == .deliver)
            }
        }
        return machine
    }

    private func receives(_ frame: Frame, in machine: Machine) -> Machine.ReceivedAction {
        var machine = machine
        return machine.received(frame)
    }

    private func sends(_ frame: Frame, in machine: Machine) -> Machine.SentAction {
        var machine = machine
        return machine.sent(frame)
    }

    @Test func transfersAboveTheLimitAreRefused() throws {
        var machine = self.fresh
        for number in 0..<64 { #expect(machine.received(self.offer(UInt64(number))) == .deliver) }
        guard case .reply(.resource(.refuse(let refuse))) = machine.received(self.offer(64)) else {
            Issue.record("the one too many was taken")
            return
        }
        #expect(refuse.id == self.id(64) && refuse.refusal.code == .busy)
        // An ended transfer makes room and is no longer open. A refused transfer may not be offered again.
        #expect(machine.sent(self.refuse(0)) == .send)
        #expect(machine.received(self.offer(65)) == .deliver)
        guard case .reply = machine.received(self.offer(66)) else {
            Issue.record("the one too many was taken")
            return
        }
        self.refusesAsViolation(self.offer(64), in: machine)
    }

    private func refusesAsViolation(_ frame: Frame, in machine: Machine, sourceLocation: SourceLocation = #_sourceLocation) {
        var machine = machine
        guard case .violation(let error) = machine.received(frame) else {
            Issue.record("accepted", sourceLocation: sourceLocation)
            return
        }
        #expect(error.code == .protocolViolation, sourceLocation: sourceLocation)
        #expect(machine.received(.ping(1)) == .ignore, sourceLocation: sourceLocation)
    }

    // MARK: Their transfers

    @Test func aTransferFromOfferToDone() {
        let machine = self.after(
            .received(self.offer()), .sent(self.accept(0, 4)), .received(self.chunk(0, 3)), .received(self.chunk(3, 1)),
            .sent(self.accept(4, 10)), .received(self.chunk(4, 6)), .received(self.end), .sent(self.done))
        #expect(machine.openTransfers == (0, 0))
        self.refusesAsViolation(self.offer(), in: machine)
        self.refusesAsViolation(self.chunk(10, 1), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        // The sender gave up while our `done` was on its way.
        var cancelled = machine
        #expect(cancelled.received(self.cancel()) == .ignore)
        self.refusesAsViolation(self.cancel(), in: cancelled)
    }

    /// The middle is for who holds the beginning, and has asked whether it is still that.
    @Test func aFirstAcceptWithoutHaveIsForTheStart() {
        for accept in [self.accept(6, 10), self.accept(1, 1), self.accept(10, 10)] {
            #expect(self.sends(accept, in: self.after(.received(self.offer()))) == .drop)
            self.refusesAsViolation(accept, in: self.after(.sent(self.offer())))
        }
    }

    @Test func nothingEmptyNeedsAChunk() {
        _ = self.after(.received(self.offer(size: 0)), .sent(self.accept(0, 0)), .received(self.end), .sent(self.done))
    }

    @Test func dataBeforeOurAcceptIsAViolation() {
        let machine = self.after(.received(self.offer()))
        self.refusesAsViolation(self.chunk(0, 1), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        self.refusesAsViolation(self.chunk(0, 1), in: self.fresh)
        self.refusesAsViolation(self.end, in: self.fresh)
        self.refusesAsViolation(self.cancel(), in: self.fresh)
    }

    @Test func aRepeatedIdIsAViolation() {
        self.refusesAsViolation(self.offer(), in: self.after(.received(self.offer())))
        self.refusesAsViolation(self.offer(), in: self.after(.sent(self.offer())))
        self.refusesAsViolation(self.offer(), in: self.after(.received(self.offer()), .sent(self.refuse())))
        self.refusesAsViolation(self.offer(), in: self.after(.received(self.offer()), .received(self.cancel())))
        self.refusesAsViolation(self.offer(), in: self.after(.sent(self.offer()), .sent(self.cancel())))
        // An id is not offered again by either side, after any outcome.
        self.refusesAsViolation(self.offer(), in: self.after(.sent(self.offer()), .received(self.refuse())))
        self.refusesAsViolation(self.offer(), in: self.after(.sent(self.offer()), .received(self.done)))
        var late = self.after(.sent(self.offer()), .sent(self.cancel()))
        #expect(late.received(self.refuse()) == .ignore)
        self.refusesAsViolation(self.offer(), in: late)
    }

    @Test func dataOutOfPlaceIsAViolation() {
        let machine = self.after(.received(self.offer()), .sent(self.accept(0, 4)), .received(self.chunk(0, 2)))
        self.refusesAsViolation(self.chunk(0, 2), in: machine)
        self.refusesAsViolation(self.chunk(3, 1), in: machine)
        self.refusesAsViolation(self.chunk(2, 3), in: machine)
        self.refusesAsViolation(self.chunk(.max, 1), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        #expect(self.receives(self.chunk(2, 2), in: machine) == .deliver)
    }

    @Test func nothingFollowsTheEnd() {
        let machine = self.after(
            .received(self.offer()), .sent(self.accept(0, 10)), .received(self.chunk(0, 10)), .received(self.end))
        self.refusesAsViolation(self.chunk(10, 1), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        #expect(self.sends(self.accept(10, 10), in: machine) == .drop)
        #expect(self.sends(self.refuse(), in: machine) == .send)
        #expect(self.receives(self.cancel(), in: machine) == .deliver)
    }

    @Test func afterARefusalOfAnOfferNoDataComes() {
        let machine = self.after(.received(self.offer()), .sent(self.refuse()))
        #expect(machine.openTransfers == (0, 0))
        self.refusesAsViolation(self.chunk(0, 1), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        #expect(self.receives(self.cancel(), in: machine) == .ignore)
        #expect(self.sends(self.accept(0, 1), in: machine) == .drop)
        #expect(self.sends(self.refuse(), in: machine) == .drop)
    }

    @Test func dataUnderWayWhenWeCancelIsDropped() {
        var machine = self.after(.received(self.offer()), .sent(self.accept(0, 10)), .received(self.chunk(0, 2)), .sent(self.cancel()))
        #expect(machine.openTransfers == (0, 0))
        #expect(machine.received(self.chunk(2, 4)) == .ignore)
        self.refusesAsViolation(self.chunk(2, 1), in: machine)
        self.refusesAsViolation(self.chunk(6, 5), in: machine)
        self.refusesAsViolation(self.end, in: machine)
        var cancelled = machine
        #expect(cancelled.received(self.cancel()) == .ignore)
        self.refusesAsViolation(self.chunk(6, 1), in: cancelled)
        #expect(machine.received(self.chunk(6, 4)) == .ignore)
        #expect(machine.received(self.end) == .ignore)
        self.refusesAsViolation(self.end, in: machine)
    }

    @Test func theirCancelEndsIt() {
        for machine in [self.after(.received(self.offer())), self.after(.received(self.offer()), .sent(self.accept(0, 10)))] {
            var machine = machine
            #expect(machine.received(self.cancel()) == .deliver)
            #expect(machine.openTransfers == (0, 0))
            #expect(machine.sent(self.accept(0, 10)) == .drop)
            self.refusesAsViolation(self.chunk(0, 1), in: machine)
            self.refusesAsViolation(self.cancel(), in: machine)
        }
    }

    @Test func weAcceptOnlyWhatWasOffered() {
        let offered = self.after(.received(self.offer()))
        for accept in [self.accept(0, 11), self.accept(3, 2), self.accept(0, 1, 7)] {
            #expect(self.sends(accept, in: offered) == .drop)
        }
        let accepted = self.after(
            .received(self.offer()), .sent(self.accept(0, 6)), .received(self.chunk(0, 2)), .sent(self.accept(2, 6)))
        for accept in [self.accept(2, 5), self.accept(3, 6), self.accept(2, 11), self.accept(1, 6)] {
            #expect(self.sends(accept, in: accepted) == .drop)
        }
        #expect(self.sends(self.done, in: accepted) == .drop)
    }

    @Test func oneOfferTooManyIsBusy() {
        var machine = self.fresh
        for number in 0..<UInt64(64) { #expect(machine.received(self.offer(number)) == .deliver) }
        #expect(machine.openTransfers == (64, 0))
        guard case .reply(.resource(.refuse(let refuse))) = machine.received(self.offer(64)) else {
            Issue.record("accepted")
            return
        }
        #expect(refuse.id == self.id(64))
        #expect(refuse.refusal.code == .busy)
        #expect(machine.openTransfers == (64, 0))
        #expect(machine.received(self.cancel(64)) == .ignore)
        #expect(machine.sent(self.refuse(0)) == .send)
        #expect(machine.received(self.offer(65)) == .deliver)
        self.refusesAsViolation(self.chunk(0, 1, 64), in: machine)
    }

    @Test func whatIsOverIsForgottenInTheEnd() {
        var machine = self.fresh
        for number in 0..<UInt64(257) {
            #expect(machine.received(self.offer(number)) == .deliver)
            #expect(machine.sent(self.refuse(number)) == .send)
        }
        self.refusesAsViolation(self.cancel(0), in: machine)
        #expect(machine.received(self.cancel(1)) == .ignore)
        #expect(machine.openTransfers == (0, 0))
    }

    // MARK: Our transfers

    @Test func ourTransferFromOfferToDone() {
        let machine = self.after(
            .sent(self.offer()), .received(self.accept(0, 4)), .sent(self.chunk(0, 4)), .received(self.accept(2, 10)),
            .sent(self.chunk(4, 6)),
            .sent(self.end), .received(self.accept(10, 10)), .received(self.done))
        #expect(machine.openTransfers == (0, 0))
        self.refusesAsViolation(self.done, in: machine)
        self.refusesAsViolation(self.accept(0, 10), in: machine)
        self.refusesAsViolation(self.cancel(), in: machine)
    }

    @Test func answersToNoOfferAreViolations() {
        for frame in [self.accept(0, 1), self.refuse(), self.done, self.cancel()] {
            self.refusesAsViolation(frame, in: self.fresh)
        }
        // They may not answer their own offer either.
        for frame in [self.accept(0, 1), self.refuse(), self.done] {
            self.refusesAsViolation(frame, in: self.after(.received(self.offer())))
        }
    }

    @Test func anAcceptStaysWithinWhatWasOfferedAndSent() {
        self.refusesAsViolation(self.accept(0, 11), in: self.after(.sent(self.offer())))
        let sending = self.after(
            .sent(self.offer()), .received(self.accept(0, 6)), .sent(self.chunk(0, 4)), .received(self.accept(2, 6)))
        for accept in [self.accept(2, 5), self.accept(1, 6), self.accept(5, 6), self.accept(2, 11)] {
            self.refusesAsViolation(accept, in: sending)
        }
        #expect(self.receives(self.accept(4, 8), in: sending) == .deliver)
        let sent = self.after(
            .sent(self.offer()), .received(self.accept(0, 10)), .sent(self.chunk(0, 10)), .received(self.accept(2, 10)), .sent(self.end))
        self.refusesAsViolation(self.accept(1, 10), in: sent)
        self.refusesAsViolation(self.accept(5, 9), in: sent)
        #expect(self.receives(self.accept(5, 10), in: sent) == .deliver)
    }

    @Test func doneComesAfterTheEndOrInAnswerToTheOffer() {
        // Published on an earlier connection, with which its `done` was lost.
        let machine = self.after(.sent(self.offer()), .received(self.done))
        #expect(machine.openTransfers == (0, 0))
        #expect(self.after(.received(self.offer()), .sent(self.done)).openTransfers == (0, 0))
        self.refusesAsViolation(self.done, in: self.after(.sent(self.offer()), .received(self.accept(0, 10))))
    }

    @Test func weSendOnlyWhatWasAccepted() {
        #expect(self.sends(self.chunk(0, 1), in: self.after(.sent(self.offer()))) == .drop)
        let machine = self.after(.sent(self.offer()), .received(self.accept(0, 6)), .sent(self.chunk(0, 2)))
        for frame in [self.chunk(0, 1), self.chunk(3, 1), self.chunk(2, 5), self.chunk(.max, 1), self.end, self.offer()] {
            #expect(self.sends(frame, in: machine) == .drop)
        }
        #expect(self.sends(self.chunk(2, 4), in: machine) == .send)
    }

    @Test func theirRefusalEndsOurs() {
        for frame in [self.refuse(), self.cancel()] {
            var machine = self.after(.sent(self.offer()), .received(self.accept(0, 10)))
            #expect(machine.received(frame) == .deliver)
            #expect(machine.openTransfers == (0, 0))
            #expect(machine.sent(self.chunk(0, 1)) == .drop)
            #expect(machine.sent(self.cancel()) == .drop)
            self.refusesAsViolation(frame, in: machine)
        }
    }

    @Test func answersUnderWayWhenWeCancelAreIgnored() {
        var machine = self.after(.sent(self.offer()), .sent(self.cancel()))
        #expect(machine.openTransfers == (0, 0))
        #expect(machine.received(self.accept(0, 4)) == .ignore)
        #expect(machine.received(self.accept(0, 10)) == .ignore)
        #expect(machine.sent(self.chunk(0, 1)) == .drop)
        #expect(machine.received(self.refuse()) == .ignore)
        self.refusesAsViolation(self.refuse(), in: machine)
    }

    @Test func doneUnderWayWhenWeCancelIsIgnored() {
        var machine = self.after(
            .sent(self.offer(size: 0)), .received(self.accept(0, 0)), .sent(self.end), .sent(self.cancel()))
        #expect(machine.received(self.done) == .ignore)
        self.refusesAsViolation(self.done, in: machine)
    }
}
