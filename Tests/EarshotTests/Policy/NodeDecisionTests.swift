import Dispatch
import EarshotWire
import Foundation
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension Store {
    /// Keeps the disk busy until it is released.
    fileprivate func hold(_ held: DispatchSemaphore, until released: DispatchSemaphore) {
        held.signal()
        released.wait()
    }
}

extension Node {
    /// The number of waiting decisions behind the one that is being written.
    fileprivate var waiting: Int? { self.isStoreBusy ? self.core.decisions.count - 1 : nil }
}

/// Two decisions about one peer while the disk is busy. The result is as if one had been taken after the other.
@Suite(.timeLimit(.minutes(1))) struct NodeDecisionTests {
    /// Takes decisions in order, each when the previous one waits for the disk. Returns when all of them are taken.
    private func together(_ node: Node, _ decisions: [@Sendable () async -> Void]) async throws {
        let (held, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let holding: Void = node.store.hold(held, until: released)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                held.wait()
                continuation.resume()
            }
        }
        // Releases the disk in every case.
        defer { released.signal() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, decision) in decisions.enumerated() {
                group.addTask { await decision() }
                // The first one is being written, and the others wait.
                try await eventually("decision \(index) waits") { await node.waiting == index }
            }
            released.signal()
            try await group.waitForAll()
        }
        await holding
    }

    /// Checks the final state in memory and on disk.
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

    /// The inviter withdraws while the acceptance is being written. An answer `conflict` has changed nothing.
    @Test(arguments: [true, false]) func whatWasWithdrawnMeanwhileLeavesNothing(always: Bool) async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
        let invitation = try await bob.invitation().id
        let node = bob.node
        let accept: @Sendable () async -> Void = {
            let error = await #expect(throws: EarshotError.self) { try await node.respond(to: invitation, .accept, always: always) }
            #expect(error?.code == .conflict)
        }
        let (held, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let holding: Void = node.store.hold(held, until: released)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                held.wait()
                continuation.resume()
            }
        }
        async let accepting: Void = accept()
        do {
            defer { released.signal() }
            try await eventually("the acceptance waits for the disk") { await node.waiting == 0 }
            _ = try await alice.node.withdraw(sent.id)
            try await bob.event {
                if case .invitationResolved(let resolved) = $0, resolved.id == invitation { () } else { nil }
            }
        }
        await accepting
        await holding
        #expect(await node.sessions().isEmpty)
        #expect(try await node.peer(alice.node.id.description).trust == .unknown)
        await bob.stop()
        let state = try await Store(directory: bob.directory).load()
        #expect(state.peers.isEmpty && state.sessions.isEmpty, "\(state)")
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
}
