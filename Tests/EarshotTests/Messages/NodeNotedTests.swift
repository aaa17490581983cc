import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// Repeated read receipts.
@Suite(.timeLimit(.minutes(1))) struct NodeNotedTests {
    /// One receipt was acknowledged just before the connection was lost. On the next connection, only the other one is sent again.
    @Test func readIsNotToldAgainAfterNoted() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        let ids = [MessageID.random(), .random(), .random()]
        for (sequence, id) in ids.enumerated() {
            try await raw.send(raw.message("x", in: session, sequence: UInt64(sequence + 1), id: id))
            try await raw.next { $0 == .messageReceipts([MessageReceipt(id: id, outcome: .delivered)]) ? () : nil }
        }
        for id in ids {
            _ = try await bob.node.markRead(id, from: nil)
            try await raw.next { $0 == .messageReceipts([MessageReceipt(id: id, outcome: .read)]) ? () : nil }
        }
        try await raw.send(.messageReceipts([ids[0], ids[2]].map { MessageReceipt(id: $0, outcome: .noted) }))
        try await raw.roundTrip()
        let again = try await raw.back(to: bob, in: session)
        let told = try await again.next { if case .messageReceipts(let receipts) = $0 { receipts } else { nil } }
        #expect(told == [MessageReceipt(id: ids[1], outcome: .read)])
        // Nor after an orderly restart.
        await bob.stop()
        let bob2 = try await TestNode("bob", in: bob.state)
        #expect(try await bob2.node.store.receipts(for: raw.id) == [ids[1]])
        await bob2.stop()
    }
}
