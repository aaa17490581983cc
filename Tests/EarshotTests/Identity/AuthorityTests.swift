import EarshotWire
import Foundation
import Logging
import NIOSSL
import SwiftASN1
import Testing

@testable import Earshot

/// Trust in peers whose certificates were signed by a configured authority: over TLS, and within the certificates' dates.
@Suite struct AuthorityTests {
    private func vouch(_ files: (certificate: String, privateKey: String), _ roots: [String]) throws -> Date? {
        try self.vouch(for: Identity.load(certificate: files.certificate, privateKey: files.privateKey, now: .distantPast), roots)
    }

    private func vouch(for identity: Identity, _ roots: [String]) throws -> Date? {
        let chain = try identity.chain.map { try $0.toDERBytes() }
        return try? CertificateAuthorities(paths: roots).vouch(for: chain, key: identity.publicKey, at: Date())
    }

    @Test(arguments: TestKey.allCases) func anAuthorityOfEachKindVouches(_ kind: TestKey) async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca", key: kind)
        let root = try authority.file(in: directory)
        #expect(try self.vouch(authority.issue("alice", in: directory), [root]) != nil)
        #expect(try self.vouch(authority.intermediate("between").issue("bob", key: .ed25519, in: directory), [root]) != nil)
    }

    @Test func nothingElseIsVouchedFor() async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let root = try authority.file(in: directory)
        // Another authority with the same name.
        #expect(try self.vouch(TestAuthority("ca").issue("mallory", in: directory), [root]) == nil)
        #expect(try self.vouch(authority.issue("old", days: -9 ... -1, in: directory), [root]) == nil)
        #expect(try self.vouch(authority.issue("young", days: 1...9, in: directory), [root]) == nil)
        #expect(try self.vouch(authority.intermediate("gone", days: -9 ... -1).issue("late", in: directory), [root]) == nil)
        let past = try TestAuthority("past", days: -9 ... -1)
        #expect(try self.vouch(past.issue("heir", in: directory), [past.file(in: directory)]) == nil)
        // The certificate that expires first determines the end of the chain.
        let soon = try self.vouch(authority.issue("soon", days: -1...2, in: directory), [root])
        #expect(try #require(soon).timeIntervalSinceNow < 2.1 * 86_400)
        let own = try Identity.load(from: directory.path)
        #expect(try self.vouch(for: own, [root]) == nil)
    }

    /// A peer may present any chain; a user is told if it is too long.
    @Test func aChainAboveTheLimitIsRefused() throws {
        let directory = try StateDirectory()
        var authority = try TestAuthority("ca")
        let root = try authority.file(in: directory)
        for level in 1..<EarshotLimits.chainCertificates { authority = try authority.intermediate("level\(level)") }
        let longest = try authority.issue("alice", in: directory)
        #expect(try Identity.load(certificate: longest.certificate, privateKey: longest.privateKey, now: .now).chain.count == 4)
        #expect(try self.vouch(longest, [root]) != nil)
        let long = try authority.intermediate("one more").issue("bob", in: directory)
        let error = #expect(throws: EarshotError.self) {
            try Identity.load(certificate: long.certificate, privateKey: long.privateKey, now: .now)
        }
        #expect(error?.message.contains("more than 4 certificates") == true)
    }

    @Test func aChainOfOnesOwnIsInOrder() throws {
        let directory = try StateDirectory()
        let files = try TestAuthority("ca").intermediate("one").intermediate("two").issue("alice", in: directory)
        let pem = try PEMDocument.parseMultiple(pemString: String(contentsOfFile: files.certificate, encoding: .utf8))
        #expect(pem.count == 3)
        try write([pem[0], pem[2], pem[1]].map(\.pemString).joined(separator: "\n"), to: files.certificate, mode: 0o644)
        let error = #expect(throws: EarshotError.self) {
            try Identity.load(certificate: files.certificate, privateKey: files.privateKey, now: .now)
        }
        #expect(error?.message.contains("number 2 is not that of the signer of number 1") == true)
    }

    @Test func whatIsNoAuthorityIsRefused() throws {
        let directory = try StateDirectory()
        let files = try TestAuthority("ca").issue("alice", in: directory)
        for path in [files.certificate, files.privateKey, directory.path, directory.path + "/nothing"] {
            let error = #expect(throws: EarshotError.self) { try CertificateAuthorities(paths: [path]) }
            #expect(error?.code == .invalidParameter)
        }
    }

    @Test func aNodeWithoutItsAuthorityLeavesNothing() async throws {
        let directory = try StateDirectory()
        let state = "\(directory.path)/state"
        var configuration = Node.Configuration(
            displayName: try DisplayName("x"), serviceType: try ServiceType("earshot"), stateDirectory: state)
        configuration.authorities = ["\(directory.path)/nothing"]
        let error = await #expect(throws: EarshotError.self) {
            _ = try await Node(configuration: configuration, discovery: nil, logger: Logger(label: "x"))
        }
        #expect(error?.code == .invalidParameter)
        #expect(!FileManager.default.fileExists(atPath: state))
    }

    private func trust(of alice: TestNode, at bob: TestNode) async throws -> Peer { try await bob.node.peer(alice.node.id.description) }

    @Test func aVouchedPeerIsTrustedWithoutAsking() async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let root = try authority.file(in: directory)
        let files = try authority.issue("alice", key: .rsa, in: directory)
        let (alice, bob) = try await pair(
            inSession: false, configureAlice: { ($0.certificate, $0.privateKey) = (files.certificate, files.privateKey) },
            configureBob: { $0.authorities = [root] })
        let invitation = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await alice.node.outcome(of: invitation.id).state == .accepted)
        let seen = try await self.trust(of: alice, at: bob)
        #expect(seen.trust == .trusted && seen.trustSource == .authority && seen.trustExpiresAt != nil)
        let policy = try await bob.node.explainPolicy("alice")
        #expect(policy.decisions.first { $0.action == .invite }?.reason.contains("identity.authorities") == true)
        // Without a decision, the trust is not persisted.
        #expect(try await self.trust(of: bob, at: alice).trust == .unknown)
        // A user's decision has precedence.
        _ = try await bob.node.setTrust(.blocked, for: alice.node.id.description)
        #expect(try await self.trust(of: alice, at: bob).trust == .blocked)
        await alice.stop()
        await bob.stop()
        let later = try await TestNode("bob", in: bob.state)
        _ = try await later.node.setTrust(.unknown, for: alice.node.id.description)
        #expect(try await self.trust(of: alice, at: later).trust == .unknown)
        await later.stop()
    }

    @Test func inPlaintextNobodyIsVouchedFor() async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let root = try authority.file(in: directory)
        let files = try authority.issue("alice", in: directory)
        let (alice, bob) = try await pair(
            inSession: false,
            configureAlice: {
                ($0.certificate, $0.privateKey) = (files.certificate, files.privateKey)
                $0.encryption = .none
            },
            configureBob: {
                $0.authorities = [root]
                $0.encryption = .optional
            })
        _ = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        let received = try await bob.invitation()
        #expect(received.state == .pending)
        #expect(try await self.trust(of: alice, at: bob).trust == .unknown)
        await alice.stop()
        await bob.stop()
    }

    /// The chain is valid, but another key presents it. TLS would refuse it, and the handshake checks the key.
    @Test func aStrangersCertificateEarnsNothing() async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let root = try authority.file(in: directory)
        let wrong = try TestAuthority("ca").issue("alice", in: directory)
        let (alice, bob) = try await pair(
            inSession: false, configureAlice: { ($0.certificate, $0.privateKey) = (wrong.certificate, wrong.privateKey) },
            configureBob: { $0.authorities = [root] })
        _ = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
        #expect(try await bob.invitation().state == .pending)
        #expect(try await self.trust(of: alice, at: bob).trust == .unknown)
        await alice.stop()
        await bob.stop()
    }
}
