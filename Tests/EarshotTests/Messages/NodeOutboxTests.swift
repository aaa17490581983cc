import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Waiting messages in the outbox: listing, counting, cancelling, and restarts.
@Suite(.timeLimit(.minutes(1))) struct NodeOutboxTests {
    private func queue(_ text: String, from node: Node, to peer: TestNode) async throws -> SentMessage {
        try await node.send(
            to: .peers([peer.node.id.description]), contentType: "text/plain", body: ByteBuffer(string: text), queue: true, timeout: nil)
    }

    @Test func whatWaitsIsListedAndTakenBack() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        try await alice.event { kind -> Void? in
            if case .sessionChanged(let session, false) = kind, session.members.first?.state == .notConnected { () } else { nil }
        }
        let first = try await self.queue("one", from: alice.node, to: bob)
        let second = try await self.queue("second", from: alice.node, to: bob)
        let waiting = await alice.node.outbox()
        #expect(waiting.map(\.id) == [first.id, second.id] && waiting.map(\.size) == [3, 6])
        #expect(waiting.allSatisfy { $0.recipients.map(\.status) == [.queued] && $0.expiresAt > Date() })
        #expect(await alice.node.status().counts.waitingMessages == 2)
        let cancelled = try await alice.node.cancelQueued(first.id)
        #expect(cancelled.recipients.map(\.status) == [.failed] && cancelled.recipients.map(\.error) == [.cancelled])
        #expect(await alice.node.outbox().map(\.id) == [second.id])
        await #expect { try await alice.node.cancelQueued(first.id) } throws: { ($0 as? EarshotError)?.code == .conflict }
        await #expect { try await alice.node.cancelQueued(.random()) } throws: { ($0 as? EarshotError)?.code == .notFound }
        // The results remain after a restart, and bob receives the messages that were not cancelled.
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state)
        #expect(await again.node.outbox().map(\.id) == [second.id])
        let back = try await TestNode("bob", in: bob.state)
        again.sees(back)
        back.sees(again)
        try await back.event { kind -> Void? in if case .messageReceived = kind { () } else { nil } }
        #expect(try await back.inbox() == ["second"])
    }
}
