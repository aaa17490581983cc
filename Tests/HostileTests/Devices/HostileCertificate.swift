import Crypto
import EarshotWire
import Foundation
import NIOSSL
import SwiftASN1
import X509

/// A key and a self-signed certificate of an attacking device.
struct HostileCertificate {
    enum Kind: CaseIterable {
        case p256, p384, p521, ed25519
    }

    /// The id that the certificate proves.
    let id: PeerID
    let certificate: NIOSSLCertificate
    let key: NIOSSLPrivateKey
    /// The fingerprint as devices write it.
    var fingerprint: String { self.id.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined().uppercased() }

    /// Makes a certificate that is valid for these days from now, with an extension of so many bytes.
    init(_ kind: Kind = .p256, days: ClosedRange<Double> = -1...365, extensionBytes: Int = 0) throws {
        let key: Certificate.PrivateKey =
            switch kind {
            case .p256: .init(P256.Signing.PrivateKey())
            case .p384: .init(P384.Signing.PrivateKey())
            case .p521: .init(P521.Signing.PrivateKey())
            case .ed25519: .init(Curve25519.Signing.PrivateKey())
            }
        let name = try DistinguishedName { CommonName("LocalSend User") }
        let padding = Certificate.Extension(
            oid: [1, 3, 6, 1, 4, 1, 1], critical: false, value: ArraySlice([UInt8](repeating: 1, count: extensionBytes)))
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSinceNow: days.lowerBound * 86_400),
            notValidAfter: Date(timeIntervalSinceNow: days.upperBound * 86_400), issuer: name, subject: name,
            extensions: extensionBytes == 0 ? Certificate.Extensions() : try Certificate.Extensions([padding]), issuerPrivateKey: key)
        let der = try certificate.serializeAsPEM().derBytes
        self.id = PeerID(deviceCertificate: der)
        self.certificate = try NIOSSLCertificate(bytes: der, format: .der)
        self.key = try NIOSSLPrivateKey(bytes: Array(try key.serializeAsPEM().pemString.utf8), format: .pem)
    }
}
