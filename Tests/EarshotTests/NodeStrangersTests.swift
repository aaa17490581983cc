import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Many strangers ask at once: who waits, who gives way, and who is never held up by them.
@Suite(.timeLimit(.minutes(2))) struct NodeStrangersTests {
    private func proven(_ node: TestNode, as identity: Identity? = nil, from source: String = "127.0.0.1") async throws -> RawPeer {
        let raw = try await RawPeer(to: node, as: identity, from: source)
        try await raw.prove()
        return raw
    }

    /// Proven, and has invited; what the node has to say about that it has said.
    private func inviting(_ node: TestNode, as identity: Identity? = nil, from source: String) async throws -> (RawPeer, InvitationID) {
        let raw = try await self.proven(node, as: identity, from: source)
        let id = try await self.invite(raw)
        try await raw.roundTrip()
        return (raw, id)
    }

    @discardableResult private func invite(_ raw: RawPeer, _ id: InvitationID = .random()) async throws -> InvitationID {
        try await raw.send(.invite(Invite(id: id, timeoutMilliseconds: 86_400_000, context: [])))
        return id
    }

    private func answer(_ raw: RawPeer) async throws -> InviteAnswer {
        try await raw.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
    }

    private func pending(_ bob: TestNode) async -> [InvitationID] { await bob.node.invitations(all: false).map(\.id) }

    /// So many places, four an address, the first address ".1".
    private func fill(_ bob: TestNode) async throws -> [(raw: RawPeer, id: InvitationID)] {
        var all: [(RawPeer, InvitationID)] = []
        for number in 0..<EarshotLimits.pendingInvitations {
            all.append(try await self.inviting(bob, from: "127.0.3.\(1 + number / EarshotLimits.pendingInvitationsPerAddress)"))
        }
        #expect(await self.pending(bob) == all.map(\.1))
        return all
    }

    @Test func aTrustedPeerIsNeverBusyForStrangers() async throws {
        let bob = try await TestNode("bob")
        let strangers = try await self.fill(bob)
        // Trusted peers are accepted by themselves, from whichever address, as often as they ask.
        let friend = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.trusted, for: friend.id.description)
        let raw = try await self.proven(bob, as: friend, from: "127.0.3.1")
        for _ in 0..<2 * EarshotLimits.askingBurst {
            try await raw.send(.sessionEnd(try await raw.join()))
        }
        #expect(await self.pending(bob) == strangers.map(\.id), "and no stranger gave way for it")
        for stranger in strangers { await stranger.raw.close() }
        await raw.close()
        await bob.stop()
    }

    @Test func aTrustedPeerThatAPersonIsAskedAboutTakesNoPlace() async throws {
        let bob = try await TestNode("bob") { $0.fromTrusted = .ask }
        let strangers = try await self.fill(bob)
        let friend = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.trusted, for: friend.id.description)
        let (raw, id) = try await self.inviting(bob, as: friend, from: "127.0.3.1")
        #expect(await self.pending(bob) == strangers.map(\.id) + [id])
        // Nor does one keep a stranger's place that is trusted meanwhile: no newcomer pushes it out.
        _ = try await bob.node.setTrust(.trusted, for: strangers[0].raw.id.description)
        let (newcomer, theirs) = try await self.inviting(bob, from: "127.0.3.99")
        #expect(await self.pending(bob) == strangers.map(\.id) + [id, theirs])
        for stranger in strangers { await stranger.raw.close() }
        await raw.close()
        await newcomer.close()
        await bob.stop()
    }

    @Test func pendingInvitationsPerAddress() async throws {
        let bob = try await TestNode("bob")
        var strangers: [(RawPeer, InvitationID)] = []
        for _ in 0..<EarshotLimits.pendingInvitationsPerAddress { strangers.append(try await self.inviting(bob, from: "127.0.3.1")) }
        let late = try await self.proven(bob, from: "127.0.3.1")
        let id = try await self.invite(late)
        #expect(try await self.answer(late) == InviteAnswer(id: id, decision: .busy))
        let (elsewhere, theirs) = try await self.inviting(bob, from: "127.0.3.2")
        #expect(await self.pending(bob) == strangers.map(\.1) + [theirs])
        for stranger in strangers { await stranger.0.close() }
        await late.close()
        await elsewhere.close()
        await bob.stop()
    }

    @Test func whoHasGoneGivesWayAtOnce() async throws {
        let bob = try await TestNode("bob")
        let strangers = try await self.fill(bob)
        for number in [9, 5] {
            await strangers[number].raw.close()
            try await eventually("it is gone") { await bob.node.connection(to: strangers[number].raw.id) == nil }
        }
        let (newcomer, id) = try await self.inviting(bob, from: "127.0.3.99")
        // The oldest of those.
        let gone = try await bob.node.invitation(strangers[5].id)
        #expect(gone.state == .cancelled && gone.error == .notConnected)
        #expect(await self.pending(bob) == strangers.map(\.id).filter { $0 != strangers[5].id } + [id])
        // When it comes back it is a newcomer: the other one that has gone gives way.
        let (back, again) = try await self.inviting(bob, as: strangers[5].raw.identity, from: "127.0.3.2")
        #expect(await self.pending(bob).contains(again))
        #expect(try await bob.node.invitation(strangers[9].id).state == .cancelled)
        for stranger in strangers { await stranger.raw.close() }
        await newcomer.close()
        await back.close()
        await bob.stop()
    }

    @Test func theOldestOfTheFullestAddressIsToldThatItHasToGo() async throws {
        let bob = try await TestNode("bob")
        let strangers = try await self.fill(bob)
        // One address holds fewer than the others.
        _ = try await bob.node.respond(to: strangers[0].id, .reject, always: false)
        let (first, one) = try await self.inviting(bob, from: "127.0.3.98")
        let (second, other) = try await self.inviting(bob, from: "127.0.3.99")
        #expect(try await self.answer(strangers[4].raw) == InviteAnswer(id: strangers[4].id, decision: .busy))
        let displaced = try await bob.node.invitation(strangers[4].id)
        #expect(displaced.state == .failed && displaced.error == .busy)
        #expect(await self.pending(bob) == strangers.map(\.id).filter { $0 != strangers[0].id && $0 != strangers[4].id } + [one, other])
        for raw in strangers.map(\.raw) + [first, second] { await raw.close() }
        await bob.stop()
    }

    @Test func anInviterThatStaysAwayIsWithdrawn() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let (raw, id) = try await self.inviting(bob, from: "127.0.3.1")
        let (staying, other) = try await self.inviting(bob, from: "127.0.3.2")
        func leave(_ raw: RawPeer) async throws {
            await raw.close()
            try await eventually("it is gone") { await bob.node.core.invitations[id]?.isInviterAbsent == true }
        }
        try await leave(raw)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.absentInviterTime) - .seconds(1))
        #expect(await self.pending(bob) == [id, other])
        // Back in time: nothing has happened.
        let back = try await self.proven(bob, as: raw.identity)
        try await self.invite(back, id)
        try await back.roundTrip()
        await loop.advanceTime(by: .seconds(1))
        try await back.roundTrip()
        #expect(await self.pending(bob) == [id, other])
        try await leave(back)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.absentInviterTime))
        let resolved = try await bob.event { kind -> Invitation? in
            if case .invitationResolved(let invitation) = kind, invitation.id == id { invitation } else { nil }
        }
        #expect(resolved.state == .cancelled && resolved.errorMessage?.contains("30 s") == true)
        #expect(await self.pending(bob) == [other])
        #expect(await bob.node.invitations(all: true).map(\.state) == [.cancelled, .pending])
        try await eventually("its row is gone too") { await bob.node.record(raw.id) == nil }
        // Back too late: it asks anew, and is not told that it was declined.
        let late = try await self.proven(bob, as: raw.identity)
        try await self.invite(late, id)
        try await late.roundTrip()
        #expect(await self.pending(bob) == [other, id])
        let accepted = try await bob.node.respond(to: id, .accept, always: false)
        #expect(try await self.answer(late).decision == accepted.sessionID.map { .accepted($0) })
        await late.close()
        await staying.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    /// Beyond its allowance a stranger hears `busy`, and no person here hears of it.
    @Test(arguments: [InvitationPolicy.reject, .ask]) func askingTooOften(policy: InvitationPolicy) async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") {
            $0.timers = Timers(on: loop)
            $0.fromUnknown = policy
        }
        let raw = try await self.proven(bob)
        func ask() async throws -> InviteAnswer.Decision? {
            let id = try await self.invite(raw)
            if policy == .reject { return try await self.answer(raw).decision }
            try await raw.send(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)))
            try await raw.roundTrip()
            return await bob.node.core.invitations[id] == nil ? .busy : .declined
        }
        for _ in 0..<EarshotLimits.askingBurst { #expect(try await ask() == .declined) }
        let told = try await bob.told().count
        for _ in 0..<20 { #expect(try await ask() == .busy) }
        #expect(try await bob.told().count == told)
        #expect(await bob.node.invitations(all: true).count == EarshotLimits.askingBurst)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.askingInterval))
        #expect(try await ask() == .declined)
        #expect(try await ask() == .busy)
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func freshKeysOfOneAddressAskAsOne() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") {
            $0.timers = Timers(on: loop)
            $0.fromUnknown = .reject
        }
        var decisions: [InviteAnswer.Decision] = []
        for _ in 0..<EarshotLimits.askingBurstPerAddress + 4 {
            let raw = try await self.proven(bob, from: "127.0.3.1")
            try await self.invite(raw)
            decisions.append(try await self.answer(raw).decision)
            await raw.close()
        }
        #expect(decisions.filter { $0 == .declined }.count == EarshotLimits.askingBurstPerAddress)
        #expect(decisions.suffix(4) == [.busy, .busy, .busy, .busy])
        // Another address, and a trusted peer at this one, are not held up.
        let other = try await self.proven(bob, from: "127.0.3.2")
        try await self.invite(other)
        #expect(try await self.answer(other).decision == .declined)
        let friend = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.trusted, for: friend.id.description)
        let raw = try await self.proven(bob, as: friend, from: "127.0.3.1")
        _ = try await raw.join()
        await raw.close()
        await other.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    /// Blocked peers are told the same at the same time, and cost no timer beyond.
    @Test func aBlockedPeerThatAsksTooOften() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") { $0.timers = Timers(on: loop) }
        let identity = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.blocked, for: identity.id.description)
        let raw = try await self.proven(bob, as: identity)
        for number in 0..<EarshotLimits.askingBurst + 1 {
            let id = try await self.invite(raw)
            if number < EarshotLimits.askingBurst {
                try await raw.roundTrip()
                await loop.advanceTime(by: .milliseconds(EarshotLimits.blockedAnswerMilliseconds.lowerBound - 1))
            }
            try await raw.send(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)))
        }
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }
}
