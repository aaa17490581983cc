import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// Replies between two nodes.
@Suite(.timeLimit(.minutes(2))) struct NodeReplyTests {
    private static let question = MessageID(high: 1, low: 2)

    private func reply(
        _ text: String, of node: TestNode, to other: PeerID, mode: Message.Mode = .reliable, queue: Bool = false
    ) async throws -> MessageID {
        try await node.node.send(
            to: .peers([other]), contentType: "text/plain", body: ByteBuffer(string: text), mode: mode, queue: queue,
            inReplyTo: Self.question
        ).id
    }

    @Test func aReplyNamesItsQuestionEverywhere() async throws {
        let (alice, bob) = try await pair()
        var events = bob.node.events.subscribe()
        _ = try await self.reply("live", of: alice, to: bob.node.id, mode: .unreliable)
        let id = try await self.reply("kept", of: alice, to: bob.node.id)
        var seen: [String: MessageID?] = [:]
        while seen.count < 2, let event = await events.next() {
            if case .messageReceived(let message) = event.kind { seen[String(buffer: message.body)] = message.inReplyTo }
        }
        #expect(seen == ["live": Self.question, "kept": Self.question])
        #expect(try await alice.node.message(id, from: nil).inReplyTo == Self.question)
        #expect(try await bob.node.message(id, from: nil).inReplyTo == Self.question)
        #expect(try await bob.node.markRead(id).inReplyTo == Self.question)
        await alice.stop()
        await bob.stop()
    }

    @Test func aQueuedReplySurvivesBoth() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let id = try await self.reply("later", of: alice, to: bob.node.id, queue: true)
        await alice.stop()
        let alice2 = try await TestNode("alice", in: alice.state)
        #expect(try await alice2.node.message(id, from: nil).inReplyTo == Self.question)
        #expect(await alice2.node.outbox().map(\.inReplyTo) == [Self.question])
        let bob2 = try await TestNode("bob", in: bob.state)
        alice2.sees(bob2)
        try await eventually("the reply is delivered") { try await bob2.node.messages().map(\.inReplyTo) == [Self.question] }
        await alice2.stop()
        await bob2.stop()
    }
}
