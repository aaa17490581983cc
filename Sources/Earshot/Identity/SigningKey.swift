import Crypto
import CryptoExtras
import EarshotWire
import NIOSSL
import SwiftASN1
import X509

/// A private key of a kind for which the protocol has a signature scheme: P-256, P-384, RSA with at least 2048 bits, Ed25519.
struct SigningKey: Sendable {
    private enum Kind: Sendable {
        case p256(P256.Signing.PrivateKey)
        case p384(P384.Signing.PrivateKey)
        case rsa(_RSA.Signing.PrivateKey)
        case ed25519(Certificate.PrivateKey)
    }

    private let kind: Kind
    /// The public key as SubjectPublicKeyInfo in DER, in its only canonical form.
    let publicKey: [UInt8]
    /// The key for TLS.
    let tlsKey: NIOSSLPrivateKey

    /// PEM labels of private keys: PKCS #8 (RFC 5958), SEC 1 (RFC 5915), PKCS #1 (RFC 8017).
    static let labels = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"]

    /// The reason why a key is unusable.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    init(_ document: PEMDocument) throws {
        let key: Certificate.PrivateKey
        do {
            key = try Certificate.PrivateKey(pemDocument: document)
        } catch {
            // For a short RSA key, the library only reports a wrong size.
            throw Unusable(description: "no key that can be used is in it; a key is P-256, P-384, RSA of 2048 bits and up, or Ed25519")
        }
        let pem = try key.serializeAsPEM().pemString
        let publicKey = try key.publicKey.serializeAsPEM().derBytes
        let kind: Kind
        if (try? P256.Signing.PublicKey(derRepresentation: publicKey)) != nil {
            kind = .p256(try P256.Signing.PrivateKey(pemRepresentation: pem))
        } else if (try? P384.Signing.PublicKey(derRepresentation: publicKey)) != nil {
            kind = .p384(try P384.Signing.PrivateKey(pemRepresentation: pem))
        } else if publicKey.starts(with: ProofVerifier.ed25519Prefix) {
            kind = .ed25519(key)
        } else if let rsa = try? _RSA.Signing.PrivateKey(pemRepresentation: pem) {
            guard ProofVerifier.rsaKeyBits.contains(rsa.keySizeInBits) else {
                throw Unusable(description: "an RSA key has 2048 to \(ProofVerifier.rsaKeyBits.upperBound) bits, not \(rsa.keySizeInBits)")
            }
            kind = .rsa(rsa)
        } else {
            throw Unusable(description: "a key is P-256, P-384, RSA or Ed25519")
        }
        self.kind = kind
        self.publicKey = publicKey
        self.tlsKey = try NIOSSLPrivateKey(bytes: Array(pem.utf8), format: .pem)
    }

    /// The scheme of the key's signatures.
    var scheme: SignatureScheme {
        switch self.kind {
        case .p256: .ecdsaSecp256r1SHA256
        case .p384: .ecdsaSecp384r1SHA384
        case .rsa: .rsaPSSSHA256
        case .ed25519: .ed25519
        }
    }

    /// The usual name of the key's kind, such as `RSA 2048`.
    var name: String {
        switch self.kind {
        case .p256: "P-256"
        case .p384: "P-384"
        case .rsa(let key): "RSA \(key.keySizeInBits)"
        case .ed25519: "Ed25519"
        }
    }

    /// Signs with the scheme.
    func sign(_ input: [UInt8]) throws -> [UInt8] {
        switch self.kind {
        case .p256(let key): Array(try key.signature(for: input).derRepresentation)
        case .p384(let key): Array(try key.signature(for: input).derRepresentation)
        case .rsa(let key): Array(try key.signature(for: SHA256.hash(data: input), padding: .PSS).rawRepresentation)
        case .ed25519(let key): try key.sign(bytes: input, signatureAlgorithm: .ed25519).rawRepresentation
        }
    }
}
