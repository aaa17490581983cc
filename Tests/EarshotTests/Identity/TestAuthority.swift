import Crypto
import CryptoExtras
import Foundation
import SwiftASN1
import Testing
import X509

@testable import Earshot

/// The kinds of keys that a user may provide.
enum TestKey: String, CaseIterable, CustomTestStringConvertible {
    case p256 = "P-256"
    case p384 = "P-384"
    case rsa = "RSA 2048"
    case ed25519 = "Ed25519"

    var testDescription: String { self.rawValue }

    func make() throws -> Certificate.PrivateKey {
        switch self {
        case .p256: .init(P256.Signing.PrivateKey())
        case .p384: .init(P384.Signing.PrivateKey())
        case .rsa: .init(try _RSA.Signing.PrivateKey(keySize: .bits2048))
        case .ed25519: .init(Curve25519.Signing.PrivateKey())
        }
    }
}

/// Signs certificates, like a site's own authority.
struct TestAuthority {
    /// The validity in days from now.
    static let lifetime = (-1.0)...30.0

    let certificate: Certificate
    private let key: Certificate.PrivateKey
    /// The intermediates up to the root, this authority's own certificate first.
    private let above: [Certificate]

    init(_ name: String, key: TestKey = .p256, days: ClosedRange<Double> = lifetime) throws {
        let key = try key.make()
        self.key = key
        self.above = []
        self.certificate = try Self.make(name, key.publicKey, days, isAuthority: true, by: name, key)
    }

    private init(certificate: Certificate, key: Certificate.PrivateKey, above: [Certificate]) {
        self.certificate = certificate
        self.key = key
        self.above = above
    }

    /// Creates an intermediate signed by this authority.
    func intermediate(_ name: String, days: ClosedRange<Double> = lifetime) throws -> TestAuthority {
        let key = try TestKey.p256.make()
        let certificate = try Self.make(name, key.publicKey, days, isAuthority: true, by: self.name, self.key)
        return TestAuthority(certificate: certificate, key: key, above: [certificate] + self.above)
    }

    private var name: String { self.certificate.subject.description.replacingOccurrences(of: "CN=", with: "") }

    private static func make(
        _ name: String, _ key: Certificate.PublicKey, _ days: ClosedRange<Double>, isAuthority: Bool, by issuer: String,
        _ issuerKey: Certificate.PrivateKey
    ) throws -> Certificate {
        try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key, notValidBefore: Date(timeIntervalSinceNow: days.lowerBound * 86_400),
            notValidAfter: Date(timeIntervalSinceNow: days.upperBound * 86_400), issuer: try DistinguishedName { CommonName(issuer) },
            subject: try DistinguishedName { CommonName(name) },
            extensions: try Certificate.Extensions {
                Critical(isAuthority ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority)
            }, issuerPrivateKey: issuerKey)
    }

    /// Issues a certificate, with its chain and key as files.
    func issue(_ name: String, key: TestKey = .p256, days: ClosedRange<Double> = lifetime, in directory: StateDirectory) throws -> (
        certificate: String, privateKey: String
    ) {
        let key = try key.make()
        let certificate = try Self.make(name, key.publicKey, days, isAuthority: false, by: self.name, self.key)
        let paths = ("\(directory.path)/\(name).pem", "\(directory.path)/\(name).key")
        try write(([certificate] + self.above).map { try $0.serializeAsPEM().pemString }.joined(separator: "\n"), to: paths.0, mode: 0o644)
        try write(try key.serializeAsPEM().pemString, to: paths.1, mode: 0o600)
        return paths
    }

    /// Writes the authority's certificate to a file, and returns the path.
    func file(in directory: StateDirectory) throws -> String {
        let path = "\(directory.path)/\(self.name)-\(UUID().uuidString).pem"
        try write(try self.certificate.serializeAsPEM().pemString, to: path, mode: 0o644)
        return path
    }
}

/// Writes a file with a mode.
func write(_ text: String, to path: String, mode: Int) throws {
    try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}
