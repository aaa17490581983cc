import Crypto
import EarshotWire
import Foundation
import NIOCore
import NIOPosix
import SwiftASN1
import Testing
import X509

@testable import Earshot

/// Certificates that peers present to a whole node. They are validated when the key is proven, in parallel with other work.
@Suite struct NodeChainTests {
    /// Returns the identity's key in the form of certificates.
    private func key(_ identity: Identity) throws -> Certificate.PublicKey {
        .init(try P256.Signing.PublicKey(derRepresentation: identity.publicKey))
    }

    /// The peer's invitation arrives in one piece with its proof. The rules already know that an authority vouches for the peer.
    @Test func anInvitationRightBehindTheProofIsTheAuthoritys() async throws {
        let directory = try StateDirectory()
        let root = try TestHolder("root")
        let file = try root.file(in: directory)
        let node = try await TestNode("bob") {
            $0.authorities = [file]
            $0.fromUnknown = .reject
        }
        let between = try TestHolder("between")
        let identity = try RawPeer.makeIdentity()
        let own = try between.signs(
            TestHolder("alice"), as: Certificate.Extensions(), key: self.key(identity))
        let peer = try await RawPeer(to: node, as: identity, showing: [own, root.signs(between)])
        let hello = try peer.hello()
        try await peer.send(.hello(hello), preamble: true)
        let theirs = try await peer.next { if case .hello(let hello) = $0 { hello } else { nil } }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs), transport: .tls)
        let invitation = InvitationID.random()
        try await peer.send(
            .proof(Proof(signature: try identity.sign(transcript.proofInput(of: .initiator)))),
            .invite(Invite(id: invitation, timeoutMilliseconds: 60_000, context: [])))
        let decision = try await peer.next { frame -> InviteAnswer? in
            if case .inviteAnswer(let answer) = frame, answer.id == invitation { answer } else { nil }
        }.decision
        guard case .accepted = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(try await node.node.peer(peer.id.description).trustSource == .authority)
        await node.stop()
    }

    /// The chains that made two handshakes take 111 s of processor time, and the most expensive chain that is followed, from many
    /// connections. Meanwhile the node's event loop must get its turns. Half of the time is sufficient, because the machine may do other
    /// work. The loop itself measures, because the test may be suspended.
    @Test func pathsThatExplode() async throws {
        let directory = try StateDirectory()
        let root = try TestHolder("root", .init(P521.Signing.PrivateKey()))
        let file = try root.file(in: directory)
        let node = try await TestNode("bob") { $0.authorities = [file] }
        let many = try TestHolder("many", .init(P521.Signing.PrivateKey()))
        let sevenOfOne = try (0..<7).map { try many.signs(many, days: -1...Double($0 + 1)) }
        let levels = try (0..<3).map { try TestHolder("level \($0)", .init(P521.Signing.PrivateKey())) }
        let dear = [try levels[1].signs(levels[0]), try levels[2].signs(levels[1]), try TestHolder("root").signs(levels[2])]

        let turns = Box<[NIODeadline]>([])
        let loop = await node.node.transport.group.next()
        let turn = loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(5)) { _ in
            turns.withLock { $0.append(.now()) }
        }
        try await withThrowingTaskGroup { group in
            // The number of unproven connections at a time is the limit of one address.
            for lane in 0..<EarshotLimits.unprovenConnectionsPerAddress {
                group.addTask {
                    for round in 0..<6 {
                        let identity = try RawPeer.makeIdentity()
                        let key = try self.key(identity)
                        let chain =
                            switch (lane + round) % 3 {
                            case 0: [try many.signs(TestHolder("alice"), key: key)] + sevenOfOne
                            case 1: [try many.signs(TestHolder("alice"), key: key)] + sevenOfOne.prefix(3)
                            default: [try levels[0].signs(TestHolder("alice"), key: key)] + dear
                            }
                        let peer = try await RawPeer(to: node, as: identity, showing: chain)
                        try await peer.prove()
                        try await peer.roundTrip()
                        await peer.close()
                    }
                }
            }
            try await group.waitForAll()
        }
        turn.cancel()
        let times = turns.value
        let gaps = zip(times.dropFirst(), times).map(-)
        let (all, long) = (gaps.reduce(.zero, +), gaps.filter { $0 > .milliseconds(250) }.reduce(.zero, +))
        #expect(all > .zero && long.nanoseconds < all.nanoseconds / 2, "\(long) of \(all) without a turn")
        await node.stop()
    }

    /// One more certificate than a peer may present. TLS would keep all of them, even without authorities.
    @Test func moreThanAnyoneHasAreNotTaken() async throws {
        let node = try await TestNode("bob")
        let signer = try TestHolder("signer")
        let small = try signer.signs(signer)
        let large = try signer.signs(
            signer,
            as: Certificate.Extensions([
                Certificate.Extension(oid: [1, 3, 9900, 1], critical: false, value: [UInt8](repeating: 0, count: 12_000)[...])
            ]))
        for (others, isTaken) in [
            ([[UInt8]](repeating: small, count: EarshotLimits.shownCertificates - 1), true),
            ([[UInt8]](repeating: small, count: EarshotLimits.shownCertificates), false), ([large], true), ([large, large], false),
        ] {
            let identity = try RawPeer.makeIdentity()
            let own = try signer.signs(TestHolder("alice"), key: self.key(identity))
            let peer = try await RawPeer(to: node, as: identity, showing: [own] + others)
            if isTaken {
                try await peer.prove()
                try await peer.roundTrip()
            } else {
                await #expect(throws: (any Error).self) { try await peer.prove() }
            }
            await peer.close()
        }
        await node.stop()
    }
}
