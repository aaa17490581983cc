import Crypto
import CryptoExtras
import EarshotWire
import Foundation
import SwiftASN1
import Testing
import X509

@testable import Earshot

/// Chains from peers are followed in order, with bounded work, whatever their content.
@Suite struct CertificatePathTests {
    private let directory: StateDirectory
    private let root: TestHolder
    private let leaf: TestHolder
    private let authorities: CertificateAuthorities

    init() throws {
        self.directory = try StateDirectory()
        self.root = try TestHolder("root")
        self.leaf = try TestHolder("leaf")
        self.authorities = try CertificateAuthorities(paths: [self.root.file(in: self.directory)])
    }

    /// Returns why the chain is refused; `nil` if it leads to an authority.
    private func fault(
        _ chain: [[UInt8]], of holder: TestHolder? = nil, at now: Date = Date(), under authorities: CertificateAuthorities? = nil
    ) throws -> CertificatePath.Fault? {
        let key = try (holder ?? self.leaf).publicKey
        do throws(CertificatePath.Fault) {
            _ = try (authorities ?? self.authorities).vouch(for: chain, key: key, at: now)
            return nil
        } catch {
            return error
        }
    }

    private func names(_ count: Int) throws -> [TestHolder] { try (0..<count).map { try TestHolder("level \($0)") } }

    @Test func aLineIsFollowedToItsEnd() throws {
        let levels = try self.names(3)
        let line = try self.root.line(self.leaf, levels[0], levels[1], levels[2])
        #expect(line.count == EarshotLimits.chainCertificates)
        #expect(try self.fault(line) == nil)
        #expect(try self.fault(self.root.line(self.leaf)) == nil)
        // Certificates after the one that the authority has signed are ignored. Often that is the authority's own.
        let pair = try self.root.line(self.leaf, levels[0])
        #expect(try self.fault(pair + [self.root.signs(self.root)]) == nil)
        #expect(try self.fault(pair + [TestHolder("stranger").signs(TestHolder("other"))]) == nil)
    }

    @Test func oneMoreThanTheLimitIsRefused() throws {
        let levels = try self.names(4)
        #expect(try self.fault(self.root.line(self.leaf, levels[0], levels[1], levels[2], levels[3])) == .count)
        let line = try self.root.line(self.leaf, levels[0], levels[1], levels[2])
        #expect(try self.fault(line + [self.root.signs(self.root)]) == .count)
        #expect(try self.fault([]) == .count)
    }

    @Test func anotherOrderIsRefused() throws {
        let levels = try self.names(2)
        let line = try self.root.line(self.leaf, levels[0], levels[1])
        #expect(try self.fault(line) == nil)
        #expect(try self.fault([line[0], line[2], line[1]]) == .noAuthority)
        #expect(try self.fault([line[1], line[0], line[2]]) == .otherKey)
        #expect(try self.fault([line[0], line[2]]) == .noAuthority)
    }

    /// The chains that made the path search explode: seven certificates with one name and key, each of which could have signed all others.
    @Test func repeatedNamesAndKeysAreRefused() throws {
        let many = try TestHolder("many", .init(P521.Signing.PrivateKey()))
        let sevenOfOne = try (0..<7).map { try many.signs(many, days: -1...Double($0 + 1)) }
        #expect(try self.fault([many.signs(self.leaf)] + sevenOfOne) == .count)
        #expect(try self.fault([many.signs(self.leaf)] + sevenOfOne.prefix(3)) == .repeated)
        #expect(try self.fault([many.signs(self.leaf)] + sevenOfOne.prefix(1)) == .noAuthority)
        // One key with two names, and one name with two keys.
        let key = try TestKey.p256.make()
        let (one, two) = (try TestHolder("one", key), try TestHolder("two", key))
        #expect(try self.fault(self.root.line(self.leaf, one, two)) == .repeated)
        let (again, other) = (try TestHolder("same"), try TestHolder("same"))
        #expect(try self.fault(self.root.line(self.leaf, again, other)) == .repeated)
        let shared = try TestHolder("shared", self.leaf.key)
        #expect(try self.fault(self.root.line(self.leaf, shared)) == .repeated)
    }

    @Test func bytesAreBounded() throws {
        // Ed25519, because its signatures have a fixed length.
        let signer = try TestHolder("signer", TestKey.ed25519.make())
        let authorities = try CertificateAuthorities(paths: [signer.file(in: self.directory)])
        func padded(_ count: Int) throws -> [UInt8] {
            try signer.signs(
                self.leaf,
                as: Certificate.Extensions([
                    Certificate.Extension(oid: [1, 3, 9900, 1], critical: false, value: [UInt8](repeating: 0, count: count)[...])
                ]))
        }
        let rest = try padded(20_000).count - 20_000
        let largest = try padded(EarshotLimits.chainBytes - rest)
        #expect(largest.count == EarshotLimits.chainBytes)
        #expect(try self.fault([largest], under: authorities) == nil)
        #expect(try self.fault([padded(EarshotLimits.chainBytes - rest + 1)], under: authorities) == .size)
    }

    /// One more authority with the same name than signatures are checked per chain.
    @Test func signaturesAreBounded() throws {
        let namesakes = try (0...EarshotLimits.chainSignatures).map { _ in try TestHolder("namesake") }
        let authorities = try CertificateAuthorities(paths: namesakes.map { try $0.file(in: self.directory) })
        let last = EarshotLimits.chainSignatures
        #expect(try self.fault([namesakes[last - 1].signs(self.leaf)], under: authorities) == nil)
        #expect(try self.fault([namesakes[last].signs(self.leaf)], under: authorities) == .tooMuchWork)
    }

    @Test func whoMayNotSignIsRefused() throws {
        let between = try self.names(2)
        func fault(_ extensions: Certificate.Extensions) throws -> CertificatePath.Fault? {
            try self.fault([between[0].signs(self.leaf), self.root.signs(between[0], as: extensions)])
        }
        #expect(try fault(Certificate.Extensions()) == .mayNotSign)
        #expect(try fault(Certificate.Extensions { Critical(BasicConstraints.notCertificateAuthority) }) == .mayNotSign)
        let mayOnlySignLists = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            Critical(KeyUsage(digitalSignature: true, cRLSign: true))
        }
        #expect(try fault(mayOnlySignLists) == .mayNotSign)
        let maySign = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
            Critical(KeyUsage(keyCertSign: true))
        }
        #expect(try fault(maySign) == nil)
        // The authority allows no intermediate, and there is one.
        let deeper = [
            try between[0].signs(self.leaf), try between[1].signs(between[0]),
            try self.root.signs(between[1], as: TestHolder.authority(depth: 0)),
        ]
        #expect(try self.fault(deeper) == .mayNotSign)
    }

    @Test func theAuthoritysOwnLimitCounts() throws {
        let path = "\(self.directory.path)/shallow.pem"
        let shallow = try TestHolder("shallow")
        let own = try shallow.signs(shallow, as: TestHolder.authority(depth: 0))
        try write(PEMDocument(type: "CERTIFICATE", derBytes: own).pemString, to: path, mode: 0o644)
        let authorities = try CertificateAuthorities(paths: [path])
        #expect(try self.fault(shallow.line(self.leaf), under: authorities) == nil)
        #expect(try self.fault(shallow.line(self.leaf, TestHolder("between")), under: authorities) == .noAuthority)
    }

    @Test func whatIsNotUnderstoodIsRefused() throws {
        let between = try TestHolder("between")
        let unknown = Certificate.Extension(oid: [1, 3, 9900, 1], critical: true, value: [5, 0])
        let basic = try Certificate.Extension(BasicConstraints.isCertificateAuthority(maxPathLength: nil), critical: true)
        #expect(try self.fault([self.root.signs(self.leaf, as: Certificate.Extensions([unknown]))]) == .notUnderstood)
        let critical = try Certificate.Extensions([basic, unknown])
        #expect(try self.fault([between.signs(self.leaf), self.root.signs(between, as: critical)]) == .notUnderstood)
        let limited = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            NameConstraints(permittedDNSDomains: ["lab.example"], excludedDNSDomains: [])
        }
        #expect(try self.fault([between.signs(self.leaf), self.root.signs(between, as: limited)]) == .notUnderstood)
        // An authority's own constraints are detected at the start.
        let path = "\(self.directory.path)/limited.pem"
        let authority = try TestHolder("limited")
        try write(
            PEMDocument(type: "CERTIFICATE", derBytes: try authority.signs(authority, as: limited)).pemString, to: path, mode: 0o644)
        let error = #expect(throws: EarshotError.self) { try CertificateAuthorities(paths: [path]) }
        #expect(error?.message.contains("name constraints") == true)
    }

    @Test func allDatesOfAChainCount() throws {
        let between = try TestHolder("between")
        let chain = [try between.signs(self.leaf, days: -1...9), try self.root.signs(between, days: -1...5)]
        #expect(try self.fault(chain) == nil)
        #expect(try self.fault(chain, at: Date(timeIntervalSinceNow: 6 * 86_400)) == .outOfDate)
        #expect(try self.fault(chain, at: Date(timeIntervalSinceNow: -2 * 86_400)) == .outOfDate)
        let end = try self.authorities.vouch(for: chain, key: self.leaf.publicKey, at: Date())
        #expect(abs(end.timeIntervalSinceNow - 5 * 86_400) < 60)
    }

    @Test func signaturesAndKeysCount() throws {
        let between = try TestHolder("between")
        let impostor = try TestHolder("between")
        let top = try self.root.signs(between)
        #expect(try self.fault([impostor.signs(self.leaf), top]) == .wrongSignature)
        #expect(try self.fault([TestHolder("root").signs(self.leaf)]) == .noAuthority)
        #expect(try self.fault([between.signs(self.leaf), top], of: TestHolder("leaf")) == .otherKey)
        #expect(try self.fault([[0x30, 0x00]]) == .unreadable)
        var damaged = try self.root.signs(self.leaf)
        damaged[damaged.count - 1] ^= 1
        #expect(try self.fault([damaged]) != nil)
    }

    /// The longest supported RSA key, and one that is a byte longer, which the library cannot read.
    @Test func keysAreBounded() throws {
        func key(bits: Int) throws -> Certificate.PublicKey {
            // An odd number of this length; its factors are not needed.
            .init(try _RSA.Signing.PublicKey(n: [UInt8](repeating: 0xC1, count: bits / 8), e: [1, 0, 1] as [UInt8]))
        }
        let between = try TestHolder("between")
        let chain = [try between.signs(self.leaf), try self.root.signs(between, key: key(bits: 8192))]
        #expect(try self.fault(chain) == .wrongSignature)
        #expect(throws: (any Error).self) { try key(bits: 8200) }
    }

    @Test func weakSignaturesAreRefused() throws {
        let rsa = try TestHolder("rsa", TestKey.rsa.make())
        let authorities = try CertificateAuthorities(paths: [rsa.file(in: self.directory)])
        #expect(try self.fault([rsa.signs(self.leaf)], under: authorities) == nil)
        let weak = try rsa.signs(self.leaf, algorithm: .sha1WithRSAEncryption)
        #expect(try self.fault([weak], under: authorities) == .weakSignature)
    }
}
