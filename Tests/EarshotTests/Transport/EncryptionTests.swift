import EarshotWire
import Foundation
import NIOCore
import NIOPosix
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// The encryption preference between two nodes on loopback: the transport of their session, and that an attacker in the middle cannot
/// choose it.
@Suite(.serialized, .timeLimit(.minutes(1))) struct EncryptionTests {
    /// Returns the result of an invitation. Both nodes are stopped after `body`.
    private func invite(
        _ ours: EncryptionPreference, _ theirs: EncryptionPreference,
        _ body: (_ alice: TestNode, _ bob: TestNode, _ invitation: Invitation) async throws -> Void
    ) async throws {
        let (alice, bob) = try await pair(
            inSession: false, configureAlice: { $0.encryption = ours },
            configureBob: {
                $0.encryption = theirs
                $0.fromUnknown = .accept
            })
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(30))
        try await body(alice, bob, try await alice.node.outcome(of: sent.id))
        await alice.stop()
        await bob.stop()
    }

    @Test(arguments: EncryptionPreference.allCases, EncryptionPreference.allCases)
    func bothPreferencesDecide(_ ours: EncryptionPreference, _ theirs: EncryptionPreference) async throws {
        try await self.invite(ours, theirs) { alice, bob, invitation in
            guard let transport = TransportKind.agreed(ours, theirs) else {
                #expect(invitation.state == .failed)
                #expect(invitation.error == .encryptionMismatch)
                #expect(invitation.errorMessage?.contains("set encryption = optional in [peer]") == true)
                #expect(await bob.node.sessions().isEmpty)
                #expect(await bob.node.status().counts.connections == 0)
                return
            }
            #expect(invitation.state == .accepted)
            let protection: Protection = transport == .tls ? .encrypted : .unprotected
            try await bob.connected(to: alice)
            for (node, other) in [(alice, bob), (bob, alice)] {
                #expect(await node.node.sessions().first?.members.map(\.protection) == [protection])
                #expect(try await node.node.peer(other.node.id.description).protection == protection)
                #expect(await node.node.transportRemembers(other.node.id) == (transport == .tls))
            }
            #expect(try await alice.send("there", to: bob).recipients.map(\.status) == [.delivered])
            #expect(try await bob.send("back", to: alice).recipients.map(\.status) == [.delivered])
            let file = alice.directory + "/file"
            try Data(repeating: 7, count: 300_000).write(to: URL(fileURLWithPath: file))
            let rows = try await alice.node.sendResource(to: [bob.node.id.description], path: file)
            let id = try #require(rows.first).id
            try await bob.event {
                if case .resourceFinished(let row) = $0, row.id == id, row.state == .completed { () } else { nil }
            }
        }
    }

    @Test func aPeerThatHasSpokenTLSIsNotTakenInPlaintextUntilDistrusted() async throws {
        let (alice, first) = try await pair(
            configureAlice: {
                $0.encryption = .optional
                $0.fromUnknown = .accept
            }, configureBob: { $0.encryption = .optional })
        #expect(await alice.node.sessions().first?.members.first?.protection == .encrypted)
        await first.stop()

        // Bob dials and is refused. Alice dials and does not fall back to plaintext.
        let bob = try await TestNode("bob", in: first.state) { $0.encryption = .none }
        bob.sees(alice)
        alice.sees(bob)
        try await eventually("both have heard why not") {
            let errors = (await alice.node.lastDialError(of: bob.node.id), await bob.node.lastDialError(of: alice.node.id))
            return errors == (.downgradeDetected, .downgradeDetected)
        }
        #expect(await alice.node.lastDialMessage(of: bob.node.id)?.contains("revoke the trust in it") == true)
        #expect(await bob.node.lastDialMessage(of: alice.node.id)?.contains("does not accept plaintext") == true)
        #expect(await alice.node.status().counts.connections == 0)

        // The same after a restart.
        await alice.stop()
        let again = try await TestNode("alice", in: alice.state) {
            $0.encryption = .optional
            $0.fromUnknown = .accept
        }
        again.sees(bob)
        try await eventually("it is remembered") { await again.node.lastDialError(of: bob.node.id) == .downgradeDetected }

        _ = try await again.node.setTrust(.unknown, for: bob.node.id.description)
        let sent = try await again.node.invite(bob.node.id.description, context: [], timeout: .seconds(30))
        // Bob, who was absent when the session ended, still has it. His answer is that session.
        #expect(try await again.node.outcome(of: sent.id).state == .accepted)
        #expect(await again.node.sessions().first?.members.first?.protection == .unprotected)
        await again.stop()
        await bob.stop()
    }

    @Test func anUnblockedPeerIsStillRemembered() async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.encryption = .optional })
        _ = try await alice.node.setTrust(.blocked, for: bob.node.id.description)
        _ = try await alice.node.setTrust(.unknown, for: bob.node.id.description)
        #expect(await alice.node.transportRemembers(bob.node.id))
        _ = try await alice.node.setTrust(.unknown, for: bob.node.id.description)
        #expect(await !alice.node.transportRemembers(bob.node.id))
        await alice.stop()
        await bob.stop()
    }

    /// A stranger's use of TLS is remembered too, without a change of the store.
    @Test func aStrangerThatHasSpokenTLSIsRememberedInMemory() async throws {
        let bob = try await TestNode("bob") { $0.encryption = .optional }
        let before = bob.storeBytes()
        let first = try await RawPeer(to: bob)
        try await first.prove()
        try await first.roundTrip()
        await first.close()
        let plain = try await RawPeer(to: bob, as: first.identity, tls: false)
        var hello = try makeHello(first.identity, "mallory")
        hello.encryption = .none
        try await plain.send(.hello(hello), preamble: true)
        #expect(await plain.refusal() == .downgradeDetected)
        #expect(bob.storeBytes() == before)
        await bob.stop()
    }

    @Test func aPlaintextHelloThatWantsTLSIsADowngrade() async throws {
        let bob = try await TestNode("bob") { $0.encryption = .optional }
        for (preference, code) in [(EncryptionPreference.optional, WireErrorCode.downgradeDetected), (.required, .downgradeDetected)] {
            let raw = try await RawPeer(to: bob, tls: false)
            var hello = try makeHello(raw.identity, "x")
            hello.encryption = preference
            try await raw.send(.hello(hello), preamble: true)
            #expect(await raw.refusal() == code)
        }
        await bob.stop()
    }

    /// `optional` with `optional` or `required`, and an attacker in the middle who tries to enforce plaintext.
    @Test(arguments: [EncryptionPreference.optional, .required], StrippingProxy.Lie.allCases)
    func somebodyInBetweenIsFound(_ theirs: EncryptionPreference, _ lie: StrippingProxy.Lie) async throws {
        let alice = try await TestNode("alice") { $0.encryption = .optional }
        let bob = try await TestNode("bob") {
            $0.encryption = theirs
            $0.fromUnknown = .accept
        }
        let proxy = try await StrippingProxy(to: bob.port, lie)
        alice.discovery.tell(.found(.embedded, bob.sighting(port: proxy.port)))
        try await alice.found(bob)
        let sent = try await alice.node.invite(bob.node.id.description, context: Array("secret".utf8), timeout: .seconds(30))
        let decided = try await alice.node.outcome(of: sent.id)
        #expect(decided.state == .failed)
        #expect(decided.error == .downgradeDetected, "\(decided.errorMessage ?? "")")
        #expect(decided.errorMessage?.contains("man in the middle") == true)
        #expect(await bob.node.invitations(all: true).isEmpty)
        #expect(await bob.node.peers().isEmpty)
        #expect(!proxy.sawAnInvitation)
        // Without the proxy, the two still agree on TLS.
        alice.discovery.tell(.reset(.embedded))
        alice.sees(bob)
        try await eventually("only the way past the proxy is known") {
            try await alice.node.peer(bob.node.id.description).addresses == ["127.0.0.1:\(bob.port)"]
        }
        let again = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(30))
        #expect(try await alice.node.outcome(of: again.id).state == .accepted)
        #expect(await alice.node.sessions().first?.members.first?.protection == .encrypted)
        await alice.stop()
        await bob.stop()
        await proxy.stop()
    }

    /// A forged refusal has no effect on `required`.
    @Test func requiredNeverSpeaksPlaintext() async throws {
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob") { $0.encryption = .optional }
        let proxy = try await StrippingProxy(to: bob.port, .nothing)
        alice.discovery.tell(.found(.embedded, bob.sighting(port: proxy.port)))
        try await alice.found(bob)
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(30))
        let decided = try await alice.node.outcome(of: sent.id)
        #expect(decided.error == .encryptionMismatch)
        #expect(proxy.plaintextConnections == 0)
        await alice.stop()
        await bob.stop()
        await proxy.stop()
    }

    /// Both dial at once, one with TLS first and one with plaintext.
    @Test(arguments: [(EncryptionPreference.optional, EncryptionPreference.none), (.none, .optional), (.none, .none)])
    func crossingDialsConverge(_ ours: EncryptionPreference, _ theirs: EncryptionPreference) async throws {
        let (alice, bob) = try await pair(
            inSession: false, configureAlice: { $0.encryption = ours }, configureBob: { $0.encryption = theirs })
        async let one = alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(30))
        async let other = bob.node.invite(alice.node.id.description, context: [], timeout: .seconds(30))
        let (first, second) = (try await one, try await other)
        #expect(try await alice.node.outcome(of: first.id).state == .accepted)
        #expect(try await bob.node.outcome(of: second.id).state == .accepted)
        try await eventually("one session, and one connection under it") {
            let (mine, theirs) = (await alice.node.sessions(), await bob.node.sessions())
            return mine.count == 1 && theirs.map(\.id) == mine.map(\.id)
                && (mine + theirs).allSatisfy { $0.members.first?.state == .connected && $0.members.first?.protection == .unprotected }
        }
        #expect(try await alice.send("x", to: bob).recipients.map(\.status) == [.delivered])
        #expect(try await bob.send("y", to: alice).recipients.map(\.status) == [.delivered])
        await alice.stop()
        await bob.stop()
    }

    /// The peer returns with another preference, which results in TLS, and the session continues over TLS. Changing the preference back is
    /// a downgrade.
    @Test func aSessionFollowsThePreferences() async throws {
        let (alice, first) = try await pair(
            configureAlice: { $0.encryption = .optional }, configureBob: { $0.encryption = .none })
        #expect(await alice.node.sessions().first?.members.first?.protection == .unprotected)
        await first.stop()
        let bob = try await TestNode("bob", in: first.state) { $0.encryption = .required }
        bob.sees(alice)
        alice.sees(bob)
        try await eventually("the session stands again, encrypted") {
            await alice.node.sessions().first?.members.first?.protection == .encrypted
        }
        try await bob.connected(to: alice)
        #expect(try await alice.send("x", to: bob).recipients.map(\.status) == [.delivered])
        await bob.stop()
        await alice.stop()
    }

    /// The peer's preference changes, so that none is in common. A waiting message then fails with that reason, and not only with a
    /// timeout.
    @Test func aMessageToWhomNothingIsLeftInCommon() async throws {
        let (alice, first) = try await pair(
            configureAlice: { $0.encryption = .required }, configureBob: { $0.encryption = .optional })
        #expect(try await alice.send("x", to: first).recipients.map(\.status) == [.delivered])
        await first.stop()
        let bob = try await TestNode("bob", in: first.state) { $0.encryption = .none }
        alice.sees(bob)
        let sent = try await alice.send("y", to: bob)
        #expect(sent.recipients.map(\.status) == [.failed])
        #expect(sent.recipients.first?.error == .encryptionMismatch)
        #expect(sent.recipients.first?.errorMessage?.contains("set encryption = optional in [peer]") == true)
        await bob.stop()
        await alice.stop()
    }

    /// The same with a reload, which ends connections that the new preference excludes.
    @Test func aReloadedPreferenceCountsForWhatStands() async throws {
        let (alice, bob) = try await pair(configureAlice: { $0.encryption = .none }, configureBob: { $0.encryption = .optional })
        try await bob.connected(to: alice)
        try await alice.reconfigure { $0.encryption = .optional }
        try await eventually("the session stands again, encrypted") {
            let members = await alice.node.sessions().first?.members.first
            return members?.protection == .encrypted && members?.state == .connected
        }
        #expect(try await alice.send("x", to: bob).recipients.map(\.status) == [.delivered])
        #expect(await bob.node.sessions().first?.members.first?.protection == .encrypted)
        #expect(await alice.node.status().encryption == .optional)
        // The next preference permits the existing connection.
        let standing = await alice.node.connection(to: bob.node.id)
        try await alice.reconfigure { $0.encryption = .required }
        #expect(try await alice.send("y", to: bob).recipients.map(\.status) == [.delivered])
        #expect(await alice.node.connection(to: bob.node.id) === standing)
        await alice.stop()
        await bob.stop()
    }

    /// Frames of a plaintext connection are exchanged however the bytes are split, and its last frame arrives.
    @Test func aPlaintextPeerByHand() async throws {
        let bob = try await TestNode("bob") {
            $0.encryption = .none
            $0.fromUnknown = .accept
        }
        let raw = try await RawPeer(to: bob, tls: false)
        var hello = try makeHello(raw.identity, "x")
        hello.encryption = .none
        var bytes = ByteBuffer(bytes: WireLimits.preamble)
        try FrameEncoder.encode(.hello(hello), into: &bytes)
        for length in [1, 9, 30, bytes.readableBytes - 40] { try await raw.send(bytes: try #require(bytes.readBytes(length: length))) }
        let theirs = try await raw.next { if case .hello(let hello) = $0 { hello } else { nil } }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs), transport: .plaintext
        )
        try await raw.send(.proof(Proof(signature: try raw.identity.sign(transcript.proofInput(of: .initiator)))))
        let session = try await raw.join()
        try await raw.send(raw.message("hello", in: session))
        try await eventually("it is in the inbox") { try await bob.inbox() == ["hello"] }
        // Bytes after a violation do not prevent the refusal from arriving.
        try? await raw.send(bytes: [0, 0, 0, 0, 0x7F] + [UInt8](repeating: 0xAA, count: 100_000))
        #expect(await raw.refusal() == .protocolViolation)
        await bob.stop()
    }

    /// The node's own proof and hello, sent back in plaintext.
    @Test func reflectionInPlaintext() async throws {
        let bob = try await TestNode("bob") { $0.encryption = .none }
        let raw = try await RawPeer(to: bob, tls: false)
        var hello = try makeHello(raw.identity, "x")
        hello.encryption = .none
        try await raw.send(.hello(hello), preamble: true)
        let own = try await raw.next { if case .hello(let hello) = $0 { hello } else { nil } }
        let proof = try await raw.next { if case .proof(let proof) = $0 { proof } else { nil } }
        try await raw.send(.proof(proof))
        #expect(await raw.refusal() == .identityMismatch)
        let second = try await RawPeer(to: bob, tls: false)
        try await second.send(.hello(own), preamble: true)
        #expect(await second.refusal() == .identityMismatch)
        await bob.stop()
    }

    @Test func strangersThatSpokeTLSAreBounded() {
        let memory = TLSPins()
        let kept = PeerID(subjectPublicKeyInfo: [0])
        memory.apply(.keep, to: kept)
        let ids = (0...EarshotLimits.rememberedTLSStrangers).map { PeerID(subjectPublicKeyInfo: [1, UInt8($0 & 0xFF), UInt8($0 >> 8)]) }
        for id in ids.dropLast() { memory.insert(id) }
        #expect(memory.contains(ids[0]))
        // A repeated id becomes the most recent one.
        memory.insert(ids[0])
        memory.insert(ids[ids.count - 1])
        #expect(memory.contains(ids[0]) && !memory.contains(ids[1]) && memory.contains(ids[2]))
        #expect(memory.contains(kept))
        memory.apply(.forget, to: kept)
        memory.apply(.forget, to: ids[2])
        #expect(!memory.contains(kept) && !memory.contains(ids[2]))
    }
}

extension Node {
    func transportRemembers(_ id: PeerID) -> Bool { self.transport.tlsPins.contains(id) }
    func lastDialError(of id: PeerID) -> EarshotError.Code? { self.record(id)?.reach.lastError?.code }
    func lastDialMessage(of id: PeerID) -> String? { self.record(id)?.reach.lastError?.message }
}
