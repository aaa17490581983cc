import EarshotWire
import Testing

@testable import Earshot

/// Peers that impersonate another peer while a user decides about that one, or that return with another name or key.
@Suite(.timeLimit(.minutes(1))) struct HostileIdentityTests {
    private func invite(_ raw: RawPeer) async throws -> InvitationID {
        let id = InvitationID.random()
        try await raw.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
        return id
    }

    /// Bob decides about the victim. The answer goes only to the victim's key, however many others claim its id meanwhile.
    @Test(arguments: [true, false]) func anothersKeyWhileItsPromptIsOpen(tls: Bool) async throws {
        let bob = try await TestNode("bob") { $0.encryption = .optional }
        let victim = try await RawPeer(to: bob, name: "victim", tls: tls)
        try await victim.prove()
        let invitation = try await self.invite(victim)
        _ = try await bob.invitation()
        let before = bob.storeBytes()
        for _ in 0..<3 {
            let mallory = try await RawPeer(to: bob, name: "victim", tls: tls)
            var hello = try mallory.hello()
            hello.publicKey = victim.identity.publicKey
            if tls {
                // With TLS, the hello is sufficient, because the certificate has another key.
                try await mallory.send(.hello(hello), preamble: true)
            } else {
                try await mallory.prove(hello: hello)
            }
            #expect(await mallory.refusal() == .identityMismatch)
        }
        #expect(await bob.node.invitations(all: false).map(\.id) == [invitation], "it still waits")
        #expect(bob.storeBytes() == before, "the store changes only by a decision")
        _ = try await bob.node.respond(to: invitation, .accept, always: true)
        let answer = try await victim.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
        let session = try #require(await bob.node.sessions().first)
        #expect(answer == InviteAnswer(id: invitation, decision: .accepted(session.id)))
        #expect(session.members.map(\.peerID) == [victim.id])
        await victim.close()
        await bob.stop()
    }

    /// A block applies to the key. Another name or connection changes nothing, and causes no event.
    @Test func aBlockedKeyUnderAnotherNameIsNoEvent() async throws {
        let bob = try await TestNode("bob")
        let identity = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.blocked, for: identity.id.description)
        // With its own name and its victim's. Each answer is delayed, as for a rejected peer.
        for name in ["alice", "bob"] {
            let raw = try await RawPeer(to: bob, as: identity, name: name)
            try await raw.prove()
            let id = try await self.invite(raw)
            let answer = try await raw.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
            #expect(answer == InviteAnswer(id: id, decision: .declined))
            await raw.close()
        }
        // The next peer has an event, so all events of the earlier ones would have been published.
        let stranger = try await RawPeer(to: bob, name: "stranger")
        try await stranger.prove()
        _ = try await self.invite(stranger)
        try await bob.event { kind -> Void? in
            if case .invitationReceived(let invitation) = kind {
                #expect(invitation.peerID == stranger.id, "a blocked peer asks nobody")
                return ()
            }
            if case .sessionChanged = kind { Issue.record("a blocked peer has no session") }
            return nil
        }
        #expect(try await bob.node.peer(identity.id.description).trust == .blocked)
        await stranger.close()
        await bob.stop()
    }

    /// The same name from the same address with a new key is a stranger, without the block or the trust of the old key.
    @Test(arguments: [Trust.blocked, .trusted]) func aNewKeyInheritsNothing(of trust: Trust) async throws {
        let bob = try await TestNode("bob")
        let old = try await RawPeer(to: bob, name: "mallory")
        try await old.prove()
        try await old.roundTrip()
        _ = try await bob.node.setTrust(trust, for: old.id.description)
        await old.close()
        let new = try await RawPeer(to: bob, name: "mallory")
        try await new.prove()
        let id = try await self.invite(new)
        #expect(try await bob.invitation().id == id, "a person is asked, though the old one is \(trust)")
        #expect(try await bob.node.peer(new.id.description).trust == .unknown)
        #expect(try await bob.node.peer(old.id.description).trust == trust)
        #expect(await bob.node.sessions().isEmpty)
        await new.close()
        await bob.stop()
    }
}
