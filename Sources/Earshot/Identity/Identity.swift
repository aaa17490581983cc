import Crypto
import EarshotSafety
public import EarshotWire
package import struct FoundationEssentials.Date
package import NIOSSL
import SwiftASN1
import X509

/// A node's key, and its certificate for TLS. The identity is generated once and kept in the state directory (mode 0600), or belongs to
/// the user, or is provided by a program.
///
/// An identity of the first or the last kind is self-signed. Its certificate and key are in one text, so that they cannot be separated:
/// PKCS #8 (RFC 5958) and X.509 (RFC 5280) in the textual encoding of RFC 7468.
public struct Identity: Sendable {
    /// The file name in the state directory.
    package static let fileName = "identity.pem"

    /// The peer id of a node with this identity.
    public let id: PeerID
    /// The public key as SubjectPublicKeyInfo in DER.
    package let publicKey: [UInt8]
    /// The certificate of the key, followed by its intermediates.
    package let chain: [NIOSSLCertificate]
    /// The end of the certificate's validity. It is irrelevant for peers that know the key, and matters only for peers that use an
    /// authority.
    package let validUntil: Date
    private let key: SigningKey

    package var tlsPrivateKey: NIOSSLPrivateKey { self.key.tlsKey }
    /// The signature scheme of its proofs.
    package var scheme: SignatureScheme { self.key.scheme }
    /// The usual name of the key's kind, such as `P-256`.
    package var keyName: String { self.key.name }

    /// The digest from which the peer id is derived, in the notation of certificate tools.
    package var fingerprint: String { "SHA256:" + SHA256.hash(data: self.publicKey).hexadecimal }

    /// Signs a proof with its scheme.
    package func sign(_ input: [UInt8]) throws -> [UInt8] { try self.key.sign(input) }

    // MARK: State directory

    /// Reads the identity of a state directory, or generates one if there is none.
    ///
    /// - Throws: `storage` if the file cannot be read, written or parsed, or if others may read it. A damaged identity is never replaced,
    ///   because peers would see a stranger.
    package static func load(from directory: String) throws(EarshotError) -> Identity {
        let path = directory + "/" + Self.fileName
        if let identity = try Self.existing(in: directory) { return identity }
        let pem = try Self.makePEM()
        do {
            try DurableFile.write(Array(pem.utf8), to: path)
        } catch {
            throw EarshotError(.storage, "cannot keep the identity in \(path): \(error)", underlying: error)
        }
        return try Self.parse(pem, path: path)
    }

    /// Returns the identity of a state directory; `nil` if there is none.
    package static func existing(in directory: String) throws(EarshotError) -> Identity? {
        let path = directory + "/" + Self.fileName
        guard let pem = try IdentityFile.read(path, "the identity", isSecret: true, followsLinks: false) else { return nil }
        return try Self.parse(pem, path: path)
    }

    /// Generates an identity, as a text with its private key and its certificate. The text is a secret that no other user may be able to
    /// read.
    ///
    /// The certificate has the widest possible dates, because pinned keys do not expire and clocks may be wrong.
    /// - Throws: `storage` if the system's cryptography fails.
    public static func makePEM() throws(EarshotError) -> String {
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

    private static func parse(_ pem: String, path: String) throws(EarshotError) -> Identity {
        do {
            return try Self.assemble(key: pem, certificates: pem)
        } catch {
            throw EarshotError(
                .storage,
                "the identity \(path.escapedForDisplay) is damaged (\(error)); restore it from a backup, or remove it to become a new peer",
                underlying: error)
        }
    }

    // MARK: Configured identity

    /// Loads the identity that a configuration contains or names, else that of the state directory. Generates one if there is no state
    /// directory.
    static func load(_ configuration: Node.Configuration) throws(EarshotError) -> Identity {
        if let identity = configuration.identity {
            guard configuration.certificate == nil, configuration.privateKey == nil else {
                throw EarshotError(
                    .invalidParameter, "a configuration has an identity, or names a certificate and its private key, not both")
            }
            return identity
        }
        switch (configuration.certificate, configuration.privateKey) {
        case (nil, nil):
            guard let directory = configuration.stateDirectory else { return try Identity(pem: try Self.makePEM()) }
            return try Self.load(from: directory)
        case (let certificate?, let privateKey?):
            return try Self.load(certificate: certificate, privateKey: privateKey, now: configuration.now?() ?? Date())
        case (_?, nil), (nil, _?):
            throw EarshotError(.invalidParameter, "a certificate and its private key go together; one of the two is missing")
        }
    }

    /// Reads a certificate with its intermediates, and its key, which no other user may be able to read.
    ///
    /// - Throws: `invalid-parameter`, with a message for the user: a file that is missing or unreadable, a key that others may read or
    ///   that does not match the certificate, a certificate that has expired by `now`.
    package static func load(certificate: String, privateKey: String, now: Date) throws(EarshotError) -> Identity {
        let identity: Identity
        do throws(EarshotError) {
            guard let certificates = try IdentityFile.read(certificate, "the certificate", isSecret: false, followsLinks: true) else {
                throw EarshotError(.storage, "there is no certificate \(certificate.escapedForDisplay)")
            }
            guard let key = try IdentityFile.read(privateKey, "the private key", isSecret: true, followsLinks: true) else {
                throw EarshotError(.storage, "there is no private key \(privateKey.escapedForDisplay)")
            }
            do {
                identity = try Self.assemble(key: key, certificates: certificates)
            } catch {
                throw EarshotError(
                    .storage,
                    "\(certificate.escapedForDisplay) with \(privateKey.escapedForDisplay) makes no identity: \(error)", underlying: error)
            }
        } catch {
            throw EarshotError(.invalidParameter, error.message, underlying: error)
        }
        guard identity.validUntil > now else {
            throw EarshotError(
                .invalidParameter,
                "the certificate \(certificate.escapedForDisplay) has expired on \(identity.validUntil.formatted(.iso8601)); renew it")
        }
        return identity
    }

    private static func assemble(key: String, certificates: String) throws -> Identity {
        let keyDocuments = try Self.documents(key)
        guard let keyDocument = keyDocuments.first(where: { SigningKey.labels.contains($0.discriminator) }) else {
            let isLocked = keyDocuments.contains { $0.discriminator == "ENCRYPTED PRIVATE KEY" }
            throw SigningKey.Unusable(
                description: isLocked ? "the key is locked by a password; keep it without one, mode 0600" : "no private key is in it")
        }
        let signingKey = try SigningKey(keyDocument)
        let chain = try Self.documents(certificates).filter { $0.discriminator == "CERTIFICATE" }
        guard let leaf = chain.first else { throw SigningKey.Unusable(description: "no certificate is in it") }
        guard chain.count <= EarshotLimits.chainCertificates else {
            throw SigningKey.Unusable(
                description:
                    "there are more than \(EarshotLimits.chainCertificates) certificates in it; the authority's own need not be there")
        }
        let tlsChain = try chain.map { try NIOSSLCertificate(bytes: $0.derBytes, format: .der) }
        let own = try tlsChain.firstIndex { try $0.extractPublicKey().toSPKIBytes() == signingKey.publicKey }
        guard let own else { throw SigningKey.Unusable(description: "the certificate belongs to another key") }
        guard own == 0 else {
            throw SigningKey.Unusable(description: "the key's certificate is number \(own + 1) in it; put it first, its signers after it")
        }
        try Self.checkOrder(chain)
        return Identity(
            id: PeerID(subjectPublicKeyInfo: signingKey.publicKey), publicKey: signingKey.publicKey, chain: tlsChain,
            validUntil: try Certificate(derEncoded: leaf.derBytes).notValidAfter, key: signingKey)
    }

    /// Checks that peers with the authority of the last certificate would accept the chain: its size, and that each certificate is issued
    /// by the next.
    private static func checkOrder(_ chain: [PEMDocument]) throws {
        guard chain.reduce(0, { $0 + $1.derBytes.count }) <= EarshotLimits.chainBytes else {
            throw SigningKey.Unusable(description: "the certificates in it take more than \(EarshotLimits.chainBytes) bytes")
        }
        let certificates = try chain.map { try Certificate(derEncoded: $0.derBytes) }
        for (index, (signed, signer)) in zip(certificates, certificates.dropFirst()).enumerated() where signed.issuer != signer.subject {
            throw SigningKey.Unusable(
                description:
                    "its certificate number \(index + 2) is not that of the signer of number \(index + 1); put each signer after what it signed"
            )
        }
    }

    private static func documents(_ pem: String) throws -> [PEMDocument] {
        do {
            return try PEMDocument.parseMultiple(pemString: pem)
        } catch {
            // The older format of an encrypted key (RFC 1421 section 4.6) has headers in the PEM.
            let isLocked = pem.contains("Proc-Type: 4,ENCRYPTED")
            throw SigningKey.Unusable(
                description: isLocked ? "the key is locked by a password; keep it without one, mode 0600" : "it is not PEM")
        }
    }
}

extension Identity {
    /// Creates the identity from a text from ``makePEM()``. A program that keeps the text remains the same peer.
    /// - Throws: `invalid-parameter` for any other text.
    public init(pem: String) throws(EarshotError) {
        do {
            self = try Self.assemble(key: pem, certificates: pem)
        } catch {
            throw EarshotError(.invalidParameter, "the text makes no identity: \(error)", underlying: error)
        }
    }
}
