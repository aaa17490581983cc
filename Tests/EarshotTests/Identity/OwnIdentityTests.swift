import EarshotWire
import Foundation
import NIOSSL
import Testing
import X509

@testable import Earshot

/// A user's own certificate and key, of each kind.
@Suite struct OwnIdentityTests {
    private func load(_ files: (certificate: String, privateKey: String), now: Date = Date()) throws -> Identity {
        try Identity.load(certificate: files.certificate, privateKey: files.privateKey, now: now)
    }

    @Test(arguments: TestKey.allCases) func eachKindSignsAndVerifies(_ kind: TestKey) throws {
        let directory = try StateDirectory()
        let identity = try self.load(TestAuthority("ca").issue("alice", key: kind, in: directory))
        #expect(identity.keyName == kind.rawValue)
        #expect(try identity.chain[0].extractPublicKey().toSPKIBytes() == identity.publicKey)
        let check = ProofCheck(
            scheme: identity.scheme, publicKey: identity.publicKey, input: [1, 2, 3], signature: try identity.sign([1, 2, 3]))
        #expect(ProofVerifier.isValid(check))
    }

    /// Every kind of key with every other, over TLS and the handshake.
    @Test(arguments: TestKey.allCases, TestKey.allCases) func eachKindTalksToEachOther(_ one: TestKey, _ other: TestKey) async throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let (ours, theirs) = (
            try authority.issue("alice", key: one, in: directory), try authority.issue("bob", key: other, in: directory)
        )
        let (alice, bob) = try await pair(
            configureAlice: { ($0.certificate, $0.privateKey) = (ours.certificate, ours.privateKey) },
            configureBob: { ($0.certificate, $0.privateKey) = (theirs.certificate, theirs.privateKey) })
        _ = try await alice.send("hello", to: bob)
        #expect(try await bob.inbox() == ["hello"])
        // Without authorities, a certificate does not establish trust.
        #expect(try await bob.node.peer("alice").trust == .unknown)
        await alice.stop()
        await bob.stop()
    }

    @Test func aPlaintextHandshakeTakesEachKindToo() async throws {
        let directory = try StateDirectory()
        let files = try TestAuthority("ca").issue("alice", key: .ed25519, in: directory)
        let (alice, bob) = try await pair(
            configureAlice: {
                ($0.certificate, $0.privateKey) = (files.certificate, files.privateKey)
                $0.encryption = .none
            }, configureBob: { $0.encryption = .none })
        _ = try await alice.send("hello", to: bob)
        #expect(try await bob.inbox() == ["hello"])
        await alice.stop()
        await bob.stop()
    }

    private func refusal(_ files: (certificate: String, privateKey: String)) throws -> String {
        let error = #expect(throws: EarshotError.self) { try self.load(files) }
        #expect(error?.code == .invalidParameter)
        return error?.message ?? ""
    }

    @Test func whatDoesNotFitIsSaid() throws {
        let directory = try StateDirectory()
        let authority = try TestAuthority("ca")
        let (alice, bob) = (try authority.issue("alice", in: directory), try authority.issue("bob", in: directory))
        #expect(try self.refusal((alice.certificate, bob.privateKey)).contains("belongs to another key"))
        #expect(try self.refusal(authority.issue("old", days: -9 ... -1, in: directory)).contains("has expired"))
        #expect(try self.refusal((directory.path + "/nothing", alice.privateKey)).contains("there is no certificate"))
        #expect(try self.refusal((alice.certificate, directory.path + "/nothing")).contains("there is no private key"))
        #expect(try self.refusal((alice.certificate, directory.path)).contains("not an ordinary small file"))
        #expect(try self.refusal((alice.privateKey, alice.privateKey)).contains("no certificate"))
        #expect(try self.refusal((alice.certificate, alice.certificate)).contains("others may read"))
        try write("garbage", to: directory.path + "/garbage", mode: 0o600)
        #expect(try self.refusal((alice.certificate, directory.path + "/garbage")).contains("makes no identity"))
        let reversed = directory.path + "/reversed"
        let chain = try [bob, alice].map { try String(contentsOfFile: $0.certificate, encoding: .utf8) }
        try write(chain.joined(separator: "\n"), to: reversed, mode: 0o644)
        #expect(try self.refusal((reversed, alice.privateKey)).contains("put it first"))
        let locked =
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"
        try write(locked, to: directory.path + "/locked", mode: 0o600)
        #expect(try self.refusal((alice.certificate, directory.path + "/locked")).contains("locked by a password"))
        for mode in [0o640, 0o604, 0o660, 0o644] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: alice.privateKey)
            #expect(try self.refusal(alice).contains("others may read the private key"))
        }
    }

    @Test func oneOfTheTwoIsNotEnough() async throws {
        let directory = try StateDirectory()
        let files = try TestAuthority("ca").issue("alice", in: directory)
        await #expect(throws: EarshotError.self) { try await TestNode("alice") { $0.certificate = files.certificate } }
        await #expect(throws: EarshotError.self) { try await TestNode("alice") { $0.privateKey = files.privateKey } }
    }

    @Test func rotationKeepsTheOldKey() throws {
        let directory = try StateDirectory()
        let old = try Identity.load(from: directory.path)
        let (new, kept) = try Identity.replace(in: directory.path, now: Date(timeIntervalSince1970: 1_700_000_000))
        #expect(new.id != old.id)
        #expect(try Identity.load(from: directory.path).id == new.id)
        let path = try #require(kept)
        #expect(path.hasSuffix("identity-20231114T221320Z.pem"))
        #expect(try directory.mode("identity-20231114T221320Z.pem") == 0o600 && directory.mode(Identity.fileName) == 0o600)
        #expect(try Identity.pem(certificate: path, privateKey: path).contains("PRIVATE KEY"))
        // An exported identity can be restored.
        let pem = try #require(try Identity.pem(in: directory.path))
        let other = try StateDirectory()
        try write(pem, to: other.path + "/" + Identity.fileName, mode: 0o600)
        #expect(try Identity.load(from: other.path).id == new.id)
    }

    /// Creating a new identity in a user's directory, for example by root, changes no other file of that user.
    @Test func rotationFollowsNoLink() throws {
        let (directory, elsewhere) = (try StateDirectory(), try StateDirectory())
        let (link, target) = (directory.path + "/" + Identity.fileName, elsewhere.path + "/other")
        try write("somebody's", to: target, mode: 0o644)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        let error = #expect(throws: EarshotError.self) { try Identity.replace(in: directory.path, now: Date()) }
        #expect(error?.message.contains("nothing was changed") == true)
        #expect(try elsewhere.mode("other") == 0o644)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == target)
        #expect(try directory.names("") == [Identity.fileName])
    }

    /// Rotations within one second, including concurrent ones, keep each old key under its own name.
    @Test func rotationsOfOneSecondLoseNoKey() async throws {
        let directory = try StateDirectory()
        let first = try Identity.load(from: directory.path).id
        let second = Date(timeIntervalSince1970: 1_700_000_000)
        let place = directory.path
        let made = try await withThrowingTaskGroup(of: PeerID.self) { group in
            for _ in 0..<8 { group.addTask { try Identity.replace(in: place, now: second).identity.id } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let kept = try directory.names("").filter { $0.hasPrefix("identity-") }.sorted()
        #expect(kept == (["identity-20231114T221320Z.pem"] + (2...8).map { "identity-20231114T221320Z-\($0).pem" }).sorted())
        let current = try Identity.load(from: place).id
        var all = [current]
        for name in kept {
            #expect(try directory.mode(name) == 0o600)
            let other = try StateDirectory()
            let pem = try String(contentsOfFile: "\(place)/\(name)", encoding: .utf8)
            try write(pem, to: other.path + "/" + Identity.fileName, mode: 0o600)
            all.append(try Identity.load(from: other.path).id)
        }
        #expect(Set(all) == Set(made + [first]) && all.count == 9)
    }
}
