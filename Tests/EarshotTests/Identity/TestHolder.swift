import Crypto
import Foundation
import SwiftASN1
import X509

@testable import Earshot

/// The holder of a name and a key, which signs anything that a test requests. Honest authorities are ``TestAuthority``s.
struct TestHolder {
    let name: String
    let key: Certificate.PrivateKey

    init(_ name: String, _ key: Certificate.PrivateKey? = nil) throws {
        self.name = name
        self.key = try key ?? TestKey.p256.make()
    }

    static var authority: Certificate.Extensions {
        get throws { try self.authority(depth: nil) }
    }

    static func authority(depth: Int?) throws -> Certificate.Extensions {
        try Certificate.Extensions { Critical(BasicConstraints.isCertificateAuthority(maxPathLength: depth)) }
    }

    /// The key in the form in which a peer proves it.
    var publicKey: [UInt8] {
        get throws { try self.key.publicKey.serializeAsPEM().derBytes }
    }

    /// Returns a certificate in DER for a holder's key; that of an authority by default.
    func signs(
        _ subject: TestHolder, as extensions: Certificate.Extensions? = nil, key: Certificate.PublicKey? = nil,
        days: ClosedRange<Double> = TestAuthority.lifetime, algorithm: Certificate.SignatureAlgorithm? = nil
    ) throws -> [UInt8] {
        let extensions = try extensions ?? Self.authority
        let issuer = try DistinguishedName { CommonName(self.name) }
        let name = try DistinguishedName { CommonName(subject.name) }
        let from = Date(timeIntervalSinceNow: days.lowerBound * 86_400)
        let until = Date(timeIntervalSinceNow: days.upperBound * 86_400)
        // The serial number has a fixed length, so that a test can calculate the total size.
        let number = Certificate.SerialNumber(bytes: [UInt8](repeating: 1, count: 16))
        let certificate =
            if let algorithm {
                try Certificate(
                    version: .v3, serialNumber: number, publicKey: key ?? subject.key.publicKey, notValidBefore: from, notValidAfter: until,
                    issuer: issuer, subject: name, signatureAlgorithm: algorithm, extensions: extensions, issuerPrivateKey: self.key)
            } else {
                try Certificate(
                    version: .v3, serialNumber: number, publicKey: key ?? subject.key.publicKey, notValidBefore: from, notValidAfter: until,
                    issuer: issuer, subject: name, extensions: extensions, issuerPrivateKey: self.key)
            }
        var serializer = DER.Serializer()
        try certificate.serialize(into: &serializer)
        return serializer.serializedBytes
    }

    /// Writes the self-signed certificate to a file, and returns the path.
    func file(in directory: StateDirectory) throws -> String {
        let path = "\(directory.path)/\(self.name)-\(UUID().uuidString).pem"
        try write(PEMDocument(type: "CERTIFICATE", derBytes: try self.signs(self)).pemString, to: path, mode: 0o644)
        return path
    }

    /// Returns a chain of holders, the peer's own certificate first. Each is signed by the next, and the last by this holder.
    func line(_ holders: TestHolder...) throws -> [[UInt8]] {
        try zip(holders, holders.dropFirst() + [self]).map { try $1.signs($0) }
    }
}
