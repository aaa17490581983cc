import EarshotWire
import Foundation
import NIOSSL
import Testing

@testable import Earshot

@Suite struct IdentityTests {
    private func path(_ directory: StateDirectory) -> String { directory.path + "/" + Identity.fileName }

    private func write(_ text: String, to directory: StateDirectory, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.path(directory)))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self.path(directory))
    }

    private func expectRefused(_ directory: StateDirectory) throws {
        let before = FileManager.default.contents(atPath: self.path(directory))
        let error = #expect(throws: EarshotError.self) { try Identity.load(from: directory.path) }
        #expect(error?.code == .storage)
        #expect(FileManager.default.contents(atPath: self.path(directory)) == before, "a refused identity is never replaced")
    }

    @Test func isMadeOnceAndKept0600() throws {
        let directory = try StateDirectory()
        let identity = try Identity.load(from: directory.path)
        #expect(try directory.mode(Identity.fileName) == 0o600)
        #expect(try Identity.load(from: directory.path).id == identity.id)
        #expect(identity.id == PeerID(subjectPublicKeyInfo: identity.publicKey))
        #expect(try identity.chain[0].extractPublicKey().toSPKIBytes() == identity.publicKey)
        #expect(try directory.names("") == [Identity.fileName])
        let other = try StateDirectory()
        #expect(try Identity.load(from: other.path).id != identity.id)
    }

    @Test func itsSignaturesVerify() throws {
        let directory = try StateDirectory()
        let identity = try Identity.load(from: directory.path)
        let signature = try identity.sign([1, 2, 3])
        let check = ProofCheck(scheme: .ecdsaSecp256r1SHA256, publicKey: identity.publicKey, input: [1, 2, 3], signature: signature)
        #expect(ProofVerifier.isValid(check))
        var other = check
        other.input = [1, 2]
        #expect(!ProofVerifier.isValid(other))
    }

    @Test(arguments: [0o604, 0o640, 0o644, 0o660, 0o666, 0o601]) func whatOthersMayReadIsRefused(mode: Int) throws {
        let directory = try StateDirectory()
        try self.write(try Identity.makePEM(), to: directory, mode: mode)
        try self.expectRefused(directory)
    }

    @Test func damageIsRefused() throws {
        let directory = try StateDirectory()
        let whole = try Identity.makePEM()
        let lines = whole.split(separator: "\n")
        let half = lines.prefix(lines.count / 2).joined(separator: "\n")
        for text in ["", "garbage", half, String(whole.dropLast(60)), String(repeating: "x", count: 70_000)] {
            try self.write(text, to: directory)
            try self.expectRefused(directory)
        }
    }

    @Test func anothersCertificateIsRefused() throws {
        let directory = try StateDirectory()
        func part(_ pem: String, _ name: String) throws -> Substring {
            let start = try #require(pem.range(of: "-----BEGIN \(name)-----")).lowerBound
            return pem[start..<(try #require(pem.range(of: "-----END \(name)-----"))).upperBound]
        }
        let mine = try Identity.makePEM()
        let theirs = try Identity.makePEM()
        try self.write("\(try part(mine, "PRIVATE KEY"))\n\(try part(mine, "CERTIFICATE"))\n", to: directory)
        _ = try Identity.load(from: directory.path)
        try self.write("\(try part(mine, "PRIVATE KEY"))\n\(try part(theirs, "CERTIFICATE"))\n", to: directory)
        try self.expectRefused(directory)
    }

    @Test func linksAndFoldersAreRefused() throws {
        let directory = try StateDirectory()
        let elsewhere = try StateDirectory()
        _ = try Identity.load(from: elsewhere.path)
        try FileManager.default.createSymbolicLink(atPath: self.path(directory), withDestinationPath: self.path(elsewhere))
        #expect(throws: EarshotError.self) { try Identity.load(from: directory.path) }
        try FileManager.default.removeItem(atPath: self.path(directory))
        try FileManager.default.createDirectory(atPath: self.path(directory), withIntermediateDirectories: false)
        #expect(throws: EarshotError.self) { try Identity.load(from: directory.path) }
    }
}
