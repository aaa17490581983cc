import NIOCore
import Testing

@testable import EarshotCore

@Suite struct BodyFeedStateMachineTests {
    private typealias Machine = BodyFeedStateMachine
    private let piece = ByteBuffer(string: "abc")

    @Test func onePieceLiesBetweenTheTwo() {
        var machine = Machine()
        #expect(machine.isEmpty && !machine.isFull)
        #expect(machine.put(self.piece) == .taken)
        #expect(machine.isFull && !machine.isEmpty)
        #expect(machine.put(self.piece) == .wait)
        guard case .piece(self.piece) = machine.take() else {
            Issue.record("the piece was not there")
            return
        }
        guard case .wait = machine.take() else {
            Issue.record("there was another piece")
            return
        }
        #expect(machine.put(self.piece) == .taken)
    }

    @Test func theLastPieceIsTakenBeforeTheEnd() {
        for error in [nil, EarshotError(.cancelled, "x")] {
            var machine = Machine()
            _ = machine.put(self.piece)
            machine.finish(error)
            machine.finish(EarshotError(.storage, "the first word counts"))
            #expect(machine.put(self.piece) == .stop)
            guard case .piece = machine.take() else {
                Issue.record("the last piece was lost")
                return
            }
            switch (machine.take(), error) {
            case (.end, nil): break
            case (.fail(let told), let error?): #expect(told.code == error.code)
            default: Issue.record("another end than was said")
            }
            #expect(!machine.isEmpty && !machine.isFull, "nobody waits for what has ended")
        }
    }

    @Test func nothingIsWantedAfterTheTransfersEnd() {
        for hasEnded in [false, true] {
            var machine = Machine()
            _ = machine.put(self.piece)
            if hasEnded { machine.finish(nil) }
            machine.close()
            #expect(machine.put(self.piece) == .stop)
            guard case .fail(let error) = machine.take() else {
                Issue.record("something was taken")
                return
            }
            #expect(error.code == .cancelled)
            #expect(!machine.isEmpty && !machine.isFull)
        }
    }
}
