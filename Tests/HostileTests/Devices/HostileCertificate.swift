import Crypto
import EarshotWire
import Foundation
import NIOSSL
import SwiftASN1
import X509

/// A key and a certificate of an attacking device, self-signed unless an issuer is given.
struct HostileCertificate {
    enum Kind: CaseIterable {
        case p256, p384, p521, ed25519
    }

    /// The id that the certificate proves.
    let id: PeerID
    let certificate: NIOSSLCertificate
    let key: NIOSSLPrivateKey
    /// The certificate's bytes.
    let der: [UInt8]
    /// The certificates that are shown after this one.
    var others: [NIOSSLCertificate] = []
    private let signingKey: Certificate.PrivateKey
    private let name: DistinguishedName
    /// The fingerprint as devices write it.
    var fingerprint: String { self.id.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined().uppercased() }

    /// Makes a certificate that is valid for these days from now, with an extension of so many bytes and so many alternative names. A
    /// certificate without a subject has an empty name.
    init(
        _ kind: Kind = .p256, days: ClosedRange<Double> = -1...365, extensionBytes: Int = 0, alternativeNames: Int = 0,
        subject: String? = "LocalSend User", issuer: HostileCertificate? = nil
    ) throws {
        let key: Certificate.PrivateKey =
            switch kind {
            case .p256: .init(P256.Signing.PrivateKey())
            case .p384: .init(P384.Signing.PrivateKey())
            case .p521: .init(P521.Signing.PrivateKey())
            case .ed25519: .init(Curve25519.Signing.PrivateKey())
            }
        let name = try subject.map { subject in try DistinguishedName { CommonName(subject) } } ?? DistinguishedName()
        var extensions: [Certificate.Extension] = []
        if extensionBytes > 0 {
            extensions.append(
                Certificate.Extension(
                    oid: [1, 3, 6, 1, 4, 1, 1], critical: false, value: ArraySlice([UInt8](repeating: 1, count: extensionBytes))))
        }
        if alternativeNames > 0 {
            let names = (0..<alternativeNames).map { GeneralName.dnsName("phone-\($0).example") }
            extensions.append(try Certificate.Extension(SubjectAlternativeNames(names), critical: false))
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey,
            notValidBefore: Date(timeIntervalSinceNow: days.lowerBound * 86_400),
            notValidAfter: Date(timeIntervalSinceNow: days.upperBound * 86_400), issuer: issuer?.name ?? name, subject: name,
            extensions: try Certificate.Extensions(extensions), issuerPrivateKey: issuer?.signingKey ?? key)
        self.der = try certificate.serializeAsPEM().derBytes
        self.id = PeerID(deviceCertificate: self.der)
        self.certificate = try NIOSSLCertificate(bytes: self.der, format: .der)
        self.key = try NIOSSLPrivateKey(bytes: Array(try key.serializeAsPEM().pemString.utf8), format: .pem)
        self.signingKey = key
        self.name = name
    }

    /// Makes a certificate of exactly so many bytes. The length of a signature varies by a few bytes, so that several are made.
    static func ofSize(_ size: Int) throws -> HostileCertificate {
        let base = try HostileCertificate(extensionBytes: size / 2).der.count - size / 2
        var made = try HostileCertificate(extensionBytes: size - base)
        while made.der.count != size { made = try HostileCertificate(extensionBytes: size - base) }
        return made
    }

    /// Returns this certificate, shown with others after it.
    func followed(by others: [HostileCertificate]) -> HostileCertificate {
        var longer = self
        longer.others = others.map(\.certificate)
        return longer
    }

    /// The certificates and the key of a TLS configuration.
    var chain: [NIOSSLCertificateSource] { ([self.certificate] + self.others).map { .certificate($0) } }
}
