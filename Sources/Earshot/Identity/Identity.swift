import Crypto
import EarshotSafety
package import EarshotWire
import struct FoundationEssentials.Date
package import NIOSSL
import SwiftASN1
import X509

#if canImport(Glibc)
    import Glibc
#endif

/// This node's key and the self-signed certificate that carries it through TLS; made once, kept 0600 in the state directory.
///
/// Both live in one PEM file, so that they cannot come apart: PKCS #8 (RFC 5958) and X.509 (RFC 5280) in the textual
/// encoding of RFC 7468.
package struct Identity: Sendable {
    /// Where it is kept, in the state directory.
    package static let fileName = "identity.pem"
    /// The largest file that is read, in bytes; ours has about 1,000.
    private static let fileLimit = 64 * 1024

    package let id: PeerID
    /// SubjectPublicKeyInfo, DER.
    package let publicKey: [UInt8]
    private let privateKey: P256.Signing.PrivateKey
    package let certificate: NIOSSLCertificate
    package let tlsPrivateKey: NIOSSLPrivateKey

    /// Signs a proof with ECDSA on P-256 and SHA-256; the signature is a DER ECDSA-Sig-Value.
    package func sign(_ input: [UInt8]) throws -> [UInt8] {
        Array(try self.privateKey.signature(for: input).derRepresentation)
    }

    /// Reads the identity of a state directory, and makes it where there is none yet.
    ///
    /// - Throws: `storage` where the file cannot be read, written or understood, or others may read it. A damaged identity is
    ///   never replaced: peers would see a stranger.
    package static func load(from directory: String) throws(EarshotError) -> Identity {
        let path = directory + "/" + Self.fileName
        if let pem = try Self.read(path) {
            return try Self.parse(pem, path: path)
        }
        let pem = try Self.make()
        do {
            try DurableFile.write(Array(pem.utf8), to: path)
        } catch {
            throw EarshotError(.storage, "cannot keep the identity in \(path): \(error)", underlying: error)
        }
        return try Self.parse(pem, path: path)
    }

    /// A new identity as PEM. The certificate's dates are wide open: pinned keys do not expire, and clocks are wrong.
    package static func make() throws(EarshotError) -> String {
        do {
            let key = P256.Signing.PrivateKey()
            let id = PeerID(subjectPublicKeyInfo: key.publicKey.derRepresentation)
            let name = try DistinguishedName { CommonName(id.description) }
            let certificate = try Certificate(
                version: .v3,
                serialNumber: Certificate.SerialNumber(),
                publicKey: .init(key.publicKey),
                notValidBefore: Date(timeIntervalSince1970: 0),
                notValidAfter: Date(timeIntervalSince1970: 253_402_300_799),  // 9999-12-31T23:59:59Z (RFC 5280 section 4.1.2.5)
                issuer: name,
                subject: name,
                signatureAlgorithm: .ecdsaWithSHA256,
                extensions: Certificate.Extensions(),
                issuerPrivateKey: .init(key))
            return key.pemRepresentation + "\n" + (try certificate.serializeAsPEM().pemString) + "\n"
        } catch {
            throw EarshotError(.storage, "cannot make an identity: \(error)", underlying: error)
        }
    }

    private static func read(_ path: String) throws(EarshotError) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw EarshotError(.storage, "cannot read the identity \(path): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        guard let status = FileStatus(descriptor: descriptor), status.kind == .regular, status.size <= UInt64(Self.fileLimit) else {
            throw EarshotError(.storage, "the identity \(path) is not an ordinary small file; restore it from a backup")
        }
        guard status.mode & 0o077 == 0 else {
            throw EarshotError(.storage, "others may read the identity \(path); run chmod 600 on it, and make a new one if they have")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count else {
            throw EarshotError(.storage, "cannot read the identity \(path) whole")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func parse(_ pem: String, path: String) throws(EarshotError) -> Identity {
        do {
            let documents = try PEMDocument.parseMultiple(pemString: pem)
            guard let keyDocument = documents.first(where: { $0.discriminator == "PRIVATE KEY" }),
                let certificateDocument = documents.first(where: { $0.discriminator == "CERTIFICATE" })
            else {
                throw EarshotError(.storage, "a private key and a certificate were expected")
            }
            let key = try P256.Signing.PrivateKey(derRepresentation: keyDocument.derBytes)
            let certificate = try NIOSSLCertificate(bytes: certificateDocument.derBytes, format: .der)
            let publicKey = Array(key.publicKey.derRepresentation)
            guard try certificate.extractPublicKey().toSPKIBytes() == publicKey else {
                throw EarshotError(.storage, "the certificate belongs to another key")
            }
            return Identity(
                id: PeerID(subjectPublicKeyInfo: publicKey),
                publicKey: publicKey,
                privateKey: key,
                certificate: certificate,
                tlsPrivateKey: try NIOSSLPrivateKey(bytes: keyDocument.derBytes, format: .der))
        } catch {
            throw EarshotError(
                .storage, "the identity \(path) is damaged (\(error)); restore it from a backup, or remove it to become a new peer",
                underlying: error)
        }
    }
}
