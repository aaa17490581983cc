import Dispatch
import EarshotWire
import Foundation
import Testing

@testable import Earshot

extension Store {
    /// Keeps the disk busy until it is let go of.
    fileprivate func hold(_ held: DispatchSemaphore, until released: DispatchSemaphore) {
        held.signal()
        released.wait()
    }
}

extension Node {
    /// How many decisions wait, behind the one that the disk has.
    fileprivate var waiting: Int? { self.isStorePumpRunning ? self.storeQueue.count : nil }
}

/// Two decisions about one peer while the disk is busy: each one stands as if it had been taken after the other.
@Suite(.timeLimit(.minutes(1))) struct NodeDecisionTests {
    /// Takes decisions in their order, each once the one before waits for the disk, and returns when all are taken.
    private func together(_ node: Node, _ decisions: [@Sendable () async -> Void]) async throws {
        let (held, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let holding: Void = node.store.hold(held, until: released)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                held.wait()
                continuation.resume()
            }
        }
        // Whatever happens, the disk is let go of.
        defer { released.signal() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, decision) in decisions.enumerated() {
                group.addTask { await decision() }
                // The first one is under way, the others queue.
                try await eventually("decision \(index) waits") { await node.waiting == index }
            }
            released.signal()
            try await group.waitForAll()
        }
        await holding
    }

    /// What stands at the end, in memory and on disk.
    private func expect(_ trust: Trust, inSession: Bool, of peer: TestNode, by node: TestNode, _ comment: Comment) async throws {
        let id = peer.node.id.description
        #expect(try await node.node.peer(id).trust == trust, comment)
        #expect(await node.node.sessions().isEmpty != inSession, comment)
        await node.stop()
        let again = try await TestNode(node.name, in: node.state)
        #expect(try await again.node.peer(id).trust == trust, comment)
        #expect(await again.node.sessions().isEmpty != inSession, comment)
        await again.stop()
    }

    @Test(arguments: [true, false]) func blockingStandsAgainstAccepting(acceptsFirst: Bool) async throws {
        let (alice, bob) = try await pair(inSession: false)
        let id = alice.node.id.description
        _ = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
        let invitation = try await bob.invitation().id
        let node = bob.node
        let accept: @Sendable () async -> Void = {
            do throws(EarshotError) {
                let state = try await node.respond(to: invitation, .accept, always: true).state
                #expect(acceptsFirst && state == .accepted)
            } catch {
                #expect(!acceptsFirst && error.code == .conflict)
            }
        }
        let block: @Sendable () async -> Void = {
            await #expect(throws: Never.self) { _ = try await node.setTrust(.blocked, for: id) }
        }
        try await self.together(node, acceptsFirst ? [accept, block] : [block, accept])
        try await self.expect(.blocked, inSession: false, of: alice, by: bob, "\(acceptsFirst)")
        await alice.stop()
    }

    @Test func theLaterOfTwoWordsAboutTrustStands() async throws {
        let (alice, bob) = try await pair()
        let id = alice.node.id.description
        let node = bob.node
        let decide = { (trust: Trust) -> @Sendable () async -> Void in
            { await #expect(throws: Never.self) { _ = try await node.setTrust(trust, for: id) } }
        }
        try await self.together(node, [decide(.blocked), decide(.unknown), decide(.trusted)])
        try await self.expect(.trusted, inSession: false, of: alice, by: bob, "trusted")
        await alice.stop()
    }

    /// What is noted in passing, while a decision waits for the disk, does not undo it.
    @Test func whatIsNotedMeanwhileUndoesNothing() async throws {
        let (alice, bob) = try await pair()
        let id = alice.node.id
        let node = bob.node
        try await self.together(
            node,
            [
                { await #expect(throws: Never.self) { _ = try await node.setTrust(.blocked, for: id.description) } },
                { await node.keepPeer(id) },
            ])
        try await self.expect(.blocked, inSession: false, of: alice, by: bob, "blocked")
        await alice.stop()
    }
}
