import EarshotWire
import Foundation
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension Node {
    /// Sessions with so many peers that are not trusted.
    fileprivate func fill(strangers count: Int) {
        for number in 0..<count {
            let id = PeerID(subjectPublicKeyInfo: [1, UInt8(number >> 8), UInt8(number & 0xFF)])
            self.core.load([], [StoredSession(id: .random(), members: [self.id, id], createdAt: self.now)])
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct NodeInvitationLimitTests {
    private func invite(_ raw: RawPeer, _ id: InvitationID = .random(), context: [UInt8] = []) async throws -> InvitationID {
        try await raw.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: context)))
        return id
    }

    private func answer(_ raw: RawPeer) async throws -> InviteAnswer {
        try await raw.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
    }

    private func proven(_ node: TestNode, as identity: Identity? = nil, from source: String = "127.0.0.1") async throws -> RawPeer {
        let raw = try await RawPeer(to: node, as: identity, from: source)
        try await raw.prove()
        return raw
    }

    @Test func pendingInvitations() async throws {
        let bob = try await TestNode("bob")
        var raws: [RawPeer] = []
        // As many addresses as places: of those with more, one would give way.
        for number in 0..<EarshotLimits.pendingInvitations {
            let raw = try await self.proven(bob, from: "127.0.1.\(number + 1)")
            _ = try await self.invite(raw)
            try await raw.roundTrip()
            raws.append(raw)
        }
        try await eventually("all wait") { await bob.node.invitations(all: false).count == EarshotLimits.pendingInvitations }
        let late = try await self.proven(bob)
        let id = try await self.invite(late)
        #expect(try await self.answer(late) == InviteAnswer(id: id, decision: .busy))
        #expect(await bob.node.invitations(all: false).count == EarshotLimits.pendingInvitations)
        // One that is decided makes room.
        let first = try #require(await bob.node.invitations(all: false).first)
        _ = try await bob.node.respond(to: first.id, .reject, always: false)
        let again = try await self.invite(late)
        try await eventually("there is room") { await bob.node.invitations(all: false).contains { $0.id == again } }
        for raw in raws + [late] { await raw.close() }
        await bob.stop()
    }

    @Test func onePendingAPeer() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        let first = try await self.invite(raw)
        let second = try await self.invite(raw)
        #expect(try await self.answer(raw) == InviteAnswer(id: second, decision: .busy))
        // Nor by coming back on another connection.
        let again = try await self.proven(bob, as: raw.identity)
        let third = try await self.invite(again)
        #expect(try await self.answer(again) == InviteAnswer(id: third, decision: .busy))
        #expect(await bob.node.invitations(all: false).map(\.id) == [first])
        await raw.close()
        await again.close()
        await bob.stop()
    }

    @Test func invitationContext() async throws {
        let (alice, bob) = try await pair(inSession: false)
        await #expect(throws: EarshotError.self) {
            try await alice.node.invite("bob", context: [UInt8](repeating: 1, count: WireLimits.invitationContext + 1), timeout: nil)
        }
        let context = [UInt8](repeating: 1, count: WireLimits.invitationContext)
        _ = try await alice.node.invite("bob", context: context, timeout: nil)
        #expect(try await bob.invitation().context == context)
        await alice.stop()
        await bob.stop()
    }

    @Test func invitationTimeout() async throws {
        let alice = try await TestNode("alice")
        let most = EarshotLimits.invitationTimeout
        for (asked, given) in [
            (Duration?.none, .seconds(30)), (.zero, .seconds(30)), (.seconds(-1), .seconds(30)), (.seconds(7), .seconds(7)),
            (most - .seconds(1), most - .seconds(1)), (most, most), (most + .seconds(1), most), (.seconds(Int64.max / 2), most),
        ] as [(Duration?, Duration)] {
            let id = PeerID(subjectPublicKeyInfo: [UInt8.random(in: .min ... .max), UInt8.random(in: .min ... .max)])
            let name = id.description
            alice.discovery.tell(.found(.embedded, alice.sighting(id: id, name: name, port: 1)))
            _ = try await alice.event { if case .peerFound(let peer) = $0, peer.id == id { peer } else { nil } }
            let invitation = try await alice.node.invite(name, context: [], timeout: asked)
            let time = invitation.expiresAt.timeIntervalSince(invitation.createdAt)
            #expect(abs(time - given / .seconds(1)) < 0.001, "\(String(describing: asked))")
        }
        await alice.stop()
    }

    @Test(arguments: [InvitationPolicy.accept, .reject, .ask]) func policies(policy: InvitationPolicy) async throws {
        // The other policy is the opposite, so that the one at hand is seen to count.
        let opposite: InvitationPolicy = policy == .accept ? .ask : .accept
        for isTrusted in [false, true] {
            let bob = try await TestNode("bob") {
                $0.fromUnknown = isTrusted ? opposite : policy
                $0.fromTrusted = isTrusted ? policy : opposite
            }
            let identity = try RawPeer.makeIdentity()
            if isTrusted { _ = try await bob.node.setTrust(.trusted, for: identity.id.description) }
            let raw = try await self.proven(bob, as: identity)
            let id = try await self.invite(raw)
            switch policy {
            case .ask:
                #expect(try await bob.invitation().id == id)
                try await raw.roundTrip()
                #expect(await bob.node.invitations(all: false).map(\.id) == [id])
            case .reject:
                #expect(try await self.answer(raw) == InviteAnswer(id: id, decision: .declined))
                #expect(await bob.node.sessions().isEmpty)
            case .accept:
                let answer = try await self.answer(raw)
                #expect(answer.decision == (await bob.node.sessions().first.map { .accepted($0.id) }))
            }
            await raw.close()
            await bob.stop()
        }
    }

    /// Settings let so many strangers in; then a person is asked. A trusted peer comes in all the same.
    @Test(arguments: [false, true]) func strangersSessions(isTrusted: Bool) async throws {
        for count in [EarshotLimits.strangersSessions - 1, EarshotLimits.strangersSessions] {
            let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
            await bob.node.fill(strangers: count)
            let identity = try RawPeer.makeIdentity()
            if isTrusted { _ = try await bob.node.setTrust(.trusted, for: identity.id.description) }
            let raw = try await self.proven(bob, as: identity)
            let id = try await self.invite(raw)
            if isTrusted || count < EarshotLimits.strangersSessions {
                guard case .accepted = try await self.answer(raw).decision else {
                    Issue.record("not accepted with \(count) strangers")
                    return
                }
            } else {
                #expect(try await bob.invitation().id == id)
                try await raw.roundTrip()
                #expect(await bob.node.invitations(all: false).map(\.id) == [id])
            }
            await raw.close()
            await bob.stop()
        }
    }

    @Test func blockingWhileItsPromptIsOpen() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        let id = try await self.invite(raw)
        _ = try await bob.invitation()
        _ = try await bob.node.setTrust(.blocked, for: raw.id.description)
        #expect(try await self.answer(raw) == InviteAnswer(id: id, decision: .declined))
        #expect(await bob.node.invitations(all: false).isEmpty)
        await #expect(throws: EarshotError.self) { try await bob.node.respond(to: id, .accept, always: false) }
        #expect(await bob.node.sessions().isEmpty)
        await raw.close()
        await bob.stop()
    }

    @Test func aLateAcceptanceEndsTheSessionOnTheOtherSide() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        try await raw.roundTrip()
        let sent = try await bob.node.invite(raw.id.description, context: [], timeout: .milliseconds(50))
        _ = try await raw.next { if case .invite(let invite) = $0 { invite } else { nil } }
        let withdrawn = try await raw.next { if case .inviteWithdraw(let withdraw) = $0 { withdraw } else { nil } }
        #expect(withdrawn == InviteWithdraw(id: sent.id, reason: .timedOut))
        let session = SessionID.random()
        try await raw.send(.inviteAnswer(InviteAnswer(id: sent.id, decision: .accepted(session))))
        #expect(try await raw.next { if case .sessionEnd(let session) = $0 { session } else { nil } } == session)
        #expect(await bob.node.sessions().isEmpty)
        #expect(try await bob.node.invitation(sent.id).state == .timedOut)
        await raw.close()
        await bob.stop()
    }

    @Test func theInviterComesBackForItsAnswer() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        let id = try await self.invite(raw)
        _ = try await bob.invitation()
        await raw.close()
        let accepted = try await bob.node.respond(to: id, .accept, always: false)
        let again = try await self.proven(bob, as: raw.identity)
        #expect(try await again.next { if case .sessionResume(let session) = $0 { session } else { nil } } == accepted.sessionID)
        _ = try await self.invite(again, id)
        #expect(try await self.answer(again).decision == accepted.sessionID.map { .accepted($0) })
        await again.close()
        await bob.stop()
    }

    @Test func holdingTheSessionIsTheInviteesAnswer() async throws {
        let bob = try await TestNode("bob")
        let raw = try await self.proven(bob)
        try await raw.roundTrip()
        let sent = try await bob.node.invite(raw.id.description, context: [], timeout: .seconds(60))
        _ = try await raw.next { if case .invite(let invite) = $0 { invite } else { nil } }
        await raw.close()
        let again = try await self.proven(bob, as: raw.identity)
        let session = SessionID.random()
        try await again.send(.sessionResume(session))
        let decided = try await bob.node.decided(sent.id)
        #expect(decided.state == .accepted)
        #expect(decided.sessionID == session)
        #expect(await bob.node.sessions().map(\.id) == [session])
        await again.close()
        await bob.stop()
    }
}
