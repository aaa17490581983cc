import Dispatch
import EarshotWire
import Foundation
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension Store {
    /// Keeps the disk busy until it is let go of.
    fileprivate func hold(_ held: DispatchSemaphore, until released: DispatchSemaphore) {
        held.signal()
        released.wait()
    }
}

extension Node {
    /// How many decisions wait, behind the one that the disk has.
    fileprivate var waiting: Int? { self.isStorePumpRunning ? self.core.decisions.count - 1 : nil }
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

    /// The inviter takes it back while the acceptance is on its way to the disk: what answers `conflict` has changed nothing.
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

    /// One that the settings were about to accept, and whose peer is not trusted any more when its turn comes, waits for a person.
    @Test func settingsAcceptByWhatIsThereWhenItsTurnComes() async throws {
        // Connected, so that nothing else is noted of alice meanwhile.
        let (alice, bob) = try await pair()
        let id = alice.node.id.description
        let node = bob.node
        try await node.leave(try #require(await node.sessions().first).id)
        try await eventually("alice has heard of it") { await alice.node.sessions().isEmpty }
        _ = try await node.setTrust(.trusted, for: id)
        try await self.together(
            node,
            [
                { await #expect(throws: Never.self) { _ = try await node.setTrust(.unknown, for: id) } },
                {
                    await #expect(throws: Never.self) {
                        _ = try await alice.node.invite(node.id.description, context: [], timeout: .seconds(60))
                    }
                },
            ])
        try await eventually("it waits") {
            let pending = await node.invitations(all: false).first?.id
            guard let pending else { return false }
            return await node.core.invitations[pending]?.isDeciding == false
        }
        #expect(await node.sessions().isEmpty)
        await alice.stop()
        await bob.stop()
    }

    /// However often a trusted peer invites and withdraws while the disk is busy, one decision about it waits; the last word counts.
    @Test func invitingAndWithdrawingCostsOneTurn() async throws {
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        _ = try await bob.node.setTrust(.trusted, for: raw.id.description)
        try await raw.prove()
        try await raw.roundTrip()
        let node = bob.node
        // What is noted of a peer that is here for the first time is on disk.
        try await eventually("nothing waits") { await node.waiting == nil }
        let (held, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let holding: Void = node.store.hold(held, until: released)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                held.wait()
                continuation.resume()
            }
        }
        let last = InvitationID.random()
        do {
            defer { released.signal() }
            for _ in 0..<500 {
                let id = InvitationID.random()
                try await raw.send(
                    .invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])),
                    .inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)))
            }
            try await raw.send(.invite(Invite(id: last, timeoutMilliseconds: 60_000, context: [])))
            try await raw.roundTrip()
            // The one that the disk has, and one behind it.
            let waiting = await node.waiting
            #expect((0...1).contains(waiting ?? -1))
        }
        await holding
        let answer = try await raw.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
        #expect(answer.id == last)
        #expect(answer.decision == (await node.sessions().first.map { .accepted($0.id) }))
        await raw.close()
        await bob.stop()
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
                { await node.noteInPassing(id) },
            ])
        try await self.expect(.blocked, inSession: false, of: alice, by: bob, "blocked")
        await alice.stop()
    }
}

extension Node {
    /// As when something of a peer is noted that only has to be kept.
    fileprivate func noteInPassing(_ peer: PeerID) {
        self.core.keepPeer(peer)
        self.handle(Input.deadline)
    }
}
