import EarshotWire
import Foundation
import NIOCore
import NIOSSL
import Testing

@testable import Earshot

extension TestNode {
    /// The bytes of the store on disk: the database and its write-ahead log.
    func storeBytes() -> [Data?] {
        ["", "-wal"].map { FileManager.default.contents(atPath: self.directory + "/" + Store.fileName + $0) }
    }

    /// The names of all files in the spool.
    func spoolNames() throws -> [String] { try self.state.names("spool/partial") + self.state.names("spool/complete") }
}

/// Attacks by a stranger have no effect: the store is unchanged, and an existing session still works.
@Suite(.timeLimit(.minutes(1))) struct HostilePeerTests {
    private func attack(_ body: (_ bob: TestNode, _ session: SessionID) async throws -> Void) async throws {
        let (alice, bob) = try await pair()
        _ = try await alice.send("before", to: bob)
        let session = try #require(await bob.node.sessions().first).id
        let before = bob.storeBytes()
        try await body(bob, session)
        #expect(bob.storeBytes() == before, "the store changes only by a decision")
        #expect(try bob.spoolNames() == [])
        #expect(try await alice.send("after", to: bob).recipients.map(\.status) == [.delivered])
        #expect(try await bob.inbox() == ["before", "after"])
        await alice.stop()
        await bob.stop()
    }

    @Test func anothersKeyInTheHello() async throws {
        try await self.attack { bob, _ in
            let raw = try await RawPeer(to: bob)
            let victim = try RawPeer.makeIdentity()
            try await raw.send(.hello(try makeHello(victim, "victim")), preamble: true)
            #expect(await raw.refusal() == .identityMismatch)
        }
    }

    /// A hello with an invalid scheme is not answered with a hello.
    @Test func aSchemeThatDoesNotFitItsKey() async throws {
        try await self.attack { bob, _ in
            for scheme in [SignatureScheme.ecdsaSecp384r1SHA384, .rsaPSSSHA256, .ed25519] {
                let raw = try await RawPeer(to: bob)
                var hello = try raw.hello()
                hello.signatureScheme = scheme
                try await raw.send(.hello(hello), preamble: true)
                let answer = try #require(await raw.next())
                guard case .refusal(let refusal) = answer else {
                    Issue.record("answered with a \(answer.type)")
                    continue
                }
                #expect(refusal.code == .unsupported)
                await raw.close()
            }
        }
    }

    @Test func aProofByAnotherKey() async throws {
        try await self.attack { bob, _ in
            let raw = try await RawPeer(to: bob)
            let other = try RawPeer.makeIdentity()
            try await raw.prove(signing: other.sign)
            #expect(await raw.refusal() == .identityMismatch)
        }
    }

    @Test func aReplayedHandshake() async throws {
        try await self.attack { bob, _ in
            let first = try await RawPeer(to: bob)
            let recorded = try await first.prove()
            try await first.roundTrip()
            let second = try await RawPeer(to: bob, as: first.identity)
            try await second.send(.hello(recorded.hello), .proof(recorded.proof), preamble: true)
            #expect(await second.refusal() == .identityMismatch, "the node's nonce is fresh")
            await first.close()
        }
    }

    @Test func ourOwnHelloSentBack() async throws {
        try await self.attack { bob, _ in
            let first = try await RawPeer(to: bob)
            try await first.send(.hello(try makeHello(first.identity, "mallory")), preamble: true)
            let own = try await first.next { if case .hello(let hello) = $0 { hello } else { nil } }
            let second = try await RawPeer(to: bob)
            try await second.send(.hello(own), preamble: true)
            #expect(await second.refusal() == .identityMismatch)
            await first.close()
        }
    }

    @Test func anotherServiceType() async throws {
        try await self.attack { bob, _ in
            let raw = try await RawPeer(to: bob)
            try await raw.send(.hello(try makeHello(raw.identity, "x", service: "other")), preamble: true)
            #expect(await raw.refusal() == .serviceMismatch)
        }
    }

    @Test func framesBeforeTheProof() async throws {
        try await self.attack { bob, session in
            let raw = try await RawPeer(to: bob)
            try await raw.send(.hello(try makeHello(raw.identity, "x")), raw.message("early", in: session), preamble: true)
            #expect(await raw.refusal() == .protocolViolation)
        }
    }

    @Test func messagesWithoutASessionOrInAnothers() async throws {
        try await self.attack { bob, session in
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            for (sequence, name) in [SessionID.random(), session].enumerated() {
                let id = MessageID.random()
                try await raw.send(raw.message("x", in: name, sequence: UInt64(sequence + 1), id: id))
                let receipts = try await raw.next { if case .messageReceipts(let receipts) = $0 { receipts } else { nil } }
                #expect(receipts == [MessageReceipt(id: id, outcome: .refused)])
            }
            try await raw.send(.sessionResume(session))
            #expect(try await raw.next { if case .sessionEnd(let session) = $0 { session } else { nil } } == session)
            #expect(await bob.node.sessions().count == 1, "ending it for a stranger ends nothing")
            try await raw.send(.sessionEnd(session))
            try await raw.roundTrip()
            #expect(await bob.node.sessions().count == 1)
            await raw.close()
        }
    }

    @Test func filesWithoutASession() async throws {
        try await self.attack { bob, session in
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            try await raw.send(raw.offer("x", size: 10, in: session))
            let refusal = try await raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal } else { nil } }
            #expect(refusal.code == .notConnected)
            #expect(await bob.node.resources().isEmpty)
            await raw.close()
        }
    }

    @Test func chunksThatNobodyAccepted() async throws {
        try await self.attack { bob, session in
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            let id = ResourceID.random()
            try await raw.send(.resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(string: "x")))))
            #expect(await raw.refusal() == .protocolViolation)
            let other = try await RawPeer(to: bob)
            try await other.prove()
            try await other.send(
                other.offer("x", size: 1, in: session, id: id),
                .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(string: "x")))))
            #expect(await other.refusal() == .protocolViolation)
        }
    }

    @Test func plaintextIsToldWhyNotAndGarbageNothing() async throws {
        try await self.attack { bob, _ in
            let plain = try await RawPeer(to: bob, tls: false)
            try await plain.send(.hello(try makeHello(plain.identity, "x")), preamble: true)
            #expect(await plain.refusal() == .encryptionMismatch)
            let garbage = try await RawPeer(to: bob, tls: false)
            try await garbage.send(bytes: Array("GET / HTTP/1.1\r\n\r\n".utf8))
            #expect(await garbage.next() == nil)
            let half = try await RawPeer(to: bob, tls: false)
            try await half.send(bytes: [0x16, 0x03, 0x01, 0xFF, 0xFF] + [UInt8](repeating: 0xAA, count: 4096))
            #expect(await half.next() == nil)
        }
    }

    @Test func unknownFramesAreIgnoredFrom0x80AndCloseBelow() async throws {
        try await self.attack { bob, _ in
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            for type in [0x80, 0xC0, 0xFF] as [UInt8] { try await raw.send(bytes: [0, 0, 0, 3, type, 1, 2, 3]) }
            try await raw.roundTrip()
            try await raw.send(bytes: [0, 0, 0, 0, 0x7F])
            #expect(await raw.refusal() == .protocolViolation)
        }
    }

    @Test(arguments: [UInt32(WireLimits.framePayload + 1), 1 << 31 - 1, 1 << 31, .max]) func lengthsBeyondTheLimit(length: UInt32)
        async throws
    {
        try await self.attack { bob, _ in
            let raw = try await RawPeer(to: bob)
            try await raw.prove()
            let header = withUnsafeBytes(of: length.bigEndian) { Array($0) }
            try await raw.send(bytes: header + [FrameType.message.rawValue])
            #expect(await raw.refusal() == .protocolViolation)
        }
    }

    @Test func squattersGiveWay() async throws {
        try await self.attack { bob, _ in
            var squatters: [RawPeer] = []
            for _ in 0...EarshotLimits.unprovenConnectionsPerAddress { squatters.append(try await RawPeer(to: bob, tls: false)) }
            #expect(await squatters[0].next() == nil, "the oldest gives way")
            let honest = try await RawPeer(to: bob)
            try await honest.prove()
            try await honest.roundTrip()
            await honest.close()
            for squatter in squatters { await squatter.close() }
        }
    }

    /// Also with TLS, whose close notification would wait for an answer while the uncounted connection stays open.
    @Test func whatGivesWayIsGoneAtOnce() async throws {
        try await self.attack { bob, _ in
            var squatters: [RawPeer] = []
            for _ in 0...EarshotLimits.unprovenConnectionsPerAddress {
                let raw = try await RawPeer(to: bob)
                // Written after the TLS handshake.
                try await raw.send(bytes: [WireLimits.preamble[0]])
                squatters.append(raw)
            }
            while await squatters[0].next() != nil {}
            #expect(squatters[0].errors.value.contains { $0 is NIOSSLError }, "without TLS's goodbye")
            for squatter in squatters { await squatter.close() }
        }
    }

    @Test func freshKeysLeaveNoTrace() async throws {
        try await self.attack { bob, _ in
            for _ in 0..<20 {
                let raw = try await RawPeer(to: bob)
                try await raw.prove()
                try await raw.roundTrip()
                await raw.close()
            }
            try await eventually("strangers that left are forgotten") { await bob.node.peers().count == 1 }
        }
    }

    /// A blocked key may reconnect any number of times, and gets the same answer as a rejected one.
    @Test func aBlockedKey() async throws {
        let bob = try await TestNode("bob")
        let identity = try RawPeer.makeIdentity()
        _ = try await bob.node.setTrust(.blocked, for: identity.id.description)
        let first = try await RawPeer(to: bob, as: identity)
        try await first.prove()
        let second = try await RawPeer(to: bob, as: identity, name: "somebody else")
        try await second.prove()
        // There is one connection per peer, so this returns after the first one is closed.
        _ = await first.refusal()
        let id = InvitationID.random()
        try await second.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
        let answer = try await second.next { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
        #expect(answer == InviteAnswer(id: id, decision: .declined))
        #expect(await bob.node.invitations(all: true).isEmpty)
        await second.close()
        await bob.stop()
    }

    /// Closing a connection does not wait for a silent peer. TLS alone would wait for 5 s.
    @Test func stoppingDoesNotWaitForASilentPeer() async throws {
        let bob = try await TestNode("bob")
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        try await raw.roundTrip()
        try await raw.channel.setOption(.autoRead, value: false).get()
        // Compares two timers on the connection's own event loop, because this test itself may be suspended for longer.
        let channel = try #require(await bob.node.links.values.first?.channel)
        let isUp = Box(false)
        let patience = channel.eventLoop.scheduleTask(in: .seconds(5)) { isUp.withLock { $0 = true } }
        channel.closeFuture.whenComplete { _ in patience.cancel() }
        bob.cancel()
        await bob.ended()
        #expect(!isUp.value, "it was closed before TLS would have given up")
        await raw.close()
    }

    @Test func nobodyWaitsForAStoppedNode() async throws {
        let (alice, bob) = try await pair()
        await alice.stop()
        await #expect(throws: EarshotError.self) { try await alice.send("x", to: bob) }
        await #expect(throws: EarshotError.self) { try await alice.node.invite("bob", context: [], timeout: nil) }
        await #expect(throws: EarshotError.self) { _ = try await alice.node.setTrust(.trusted, for: bob.node.id.description) }
        await bob.stop()
    }
}
