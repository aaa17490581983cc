import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// A message that was refused because of its session is not overtaken by the next one of a valid session.
@Suite(.timeLimit(.minutes(1))) struct NodeRefusedMessageTests {
    private func message(_ mode: MessageFrame.Mode, in session: SessionID, _ sequence: UInt64, id: MessageID = .random()) -> Frame {
        .message(
            MessageFrame(
                session: session, id: id, mode: mode, sequence: sequence, sentAtMilliseconds: 0, contentType: "text/plain",
                body: ByteBuffer(string: "\(sequence)")))
    }

    /// Sends a message, and returns the node's answer.
    private func outcome(_ raw: RawPeer, _ frame: Frame) async throws -> MessageReceipt.Outcome {
        try await raw.send(frame)
        return try await raw.next { if case .messageReceipts(let receipts) = $0 { receipts.first?.outcome } else { nil } }
    }

    @Test func anUnknownSessionStartsTheRefusal() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        let known = MessageID.random()
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 1, id: known)) == .delivered)
        #expect(try await self.outcome(raw, self.message(.reliable, in: .random(), 2)) == .refused)
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 3)) == .refused)
        // A known message is answered as before, and changes nothing.
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 4, id: known)) == .delivered)
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 5)) == .refused)
        #expect(try await self.outcome(raw, self.message(.resumed, in: session, 2)) == .delivered)
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 3)) == .delivered)
        // A resumed message of another session restarts the sequence, also in one read with its successor.
        try await raw.send(self.message(.resumed, in: .random(), 4), self.message(.reliable, in: session, 5))
        var outcomes: [MessageReceipt.Outcome] = []
        while outcomes.count < 2 {
            outcomes += try await raw.next { if case .messageReceipts(let receipts) = $0 { receipts.map(\.outcome) } else { nil } }
        }
        #expect(outcomes == [.refused, .refused])
        // A resumed message without an earlier refusal is handled like any other, and restarts the sequence.
        #expect(try await self.outcome(raw, self.message(.resumed, in: session, 1)) == .delivered)
        #expect(try await self.outcome(raw, self.message(.resumed, in: session, 1)) == .delivered)
        #expect(try await bob.inbox() == ["1", "2", "3", "1", "1"])
        await raw.close()
        await bob.stop()
    }

    /// In another session or on another connection, no message can be overtaken.
    @Test func anotherConnectionOrSessionBeginsWithoutARefusal() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        #expect(try await self.outcome(raw, self.message(.reliable, in: .random(), 1)) == .refused)
        let session = try await raw.join()
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 2)) == .delivered)
        #expect(try await self.outcome(raw, self.message(.reliable, in: .random(), 3)) == .refused)
        #expect(try await self.outcome(raw, self.message(.reliable, in: session, 4)) == .refused)
        let again = try await raw.attached(to: bob, in: session)
        #expect(try await self.outcome(again, self.message(.reliable, in: session, 4)) == .delivered)
        #expect(try await self.outcome(again, self.message(.reliable, in: .random(), 5)) == .refused)
        #expect(try await self.outcome(again, self.message(.reliable, in: session, 6)) == .refused)
        try await again.send(.sessionEnd(session))
        let next = try await again.join()
        #expect(try await self.outcome(again, self.message(.reliable, in: next, 7)) == .delivered)
        await again.close()
        await bob.stop()
    }
}
