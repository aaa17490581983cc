import Crypto
import CryptoExtras

/// A signature to be checked.
package struct ProofCheck: Sendable, Hashable {
    package var scheme: SignatureScheme
    /// SubjectPublicKeyInfo, DER.
    package var publicKey: [UInt8]
    package var input: [UInt8]
    package var signature: [UInt8]

    package init(scheme: SignatureScheme, publicKey: [UInt8], input: [UInt8], signature: [UInt8]) {
        self.scheme = scheme
        self.publicKey = publicKey
        self.input = input
        self.signature = signature
    }
}

/// Checks signatures. The only code that knows the schemes.
package enum ProofVerifier {
    /// The range of accepted RSA key sizes, in bits. The limit of a signature bounds it.
    package static let rsaKeyBits = 2048...WireLimits.signature * 8
    /// The prefix of a 32-byte Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 section 4).
    package static let ed25519Prefix: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]

    /// A key of its scheme's kind, in its only canonical DER form. With several forms, a key could have several peer ids.
    private enum Key {
        case p256(P256.Signing.PublicKey)
        case p384(P384.Signing.PublicKey)
        case rsa(_RSA.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)

        init?(_ publicKey: [UInt8], for scheme: SignatureScheme) {
            switch scheme {
            case .ecdsaSecp256r1SHA256:
                guard let key = try? P256.Signing.PublicKey(derRepresentation: publicKey), Array(key.derRepresentation) == publicKey
                else { return nil }
                self = .p256(key)
            case .ecdsaSecp384r1SHA384:
                guard let key = try? P384.Signing.PublicKey(derRepresentation: publicKey), Array(key.derRepresentation) == publicKey
                else { return nil }
                self = .p384(key)
            case .rsaPSSSHA256:
                guard let key = try? _RSA.Signing.PublicKey(derRepresentation: publicKey),
                    ProofVerifier.rsaKeyBits.contains(key.keySizeInBits), Array(key.derRepresentation) == publicKey
                else { return nil }
                self = .rsa(key)
            case .ed25519:
                guard publicKey.starts(with: ProofVerifier.ed25519Prefix),
                    let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey.dropFirst(ProofVerifier.ed25519Prefix.count))
                else { return nil }
                self = .ed25519(key)
            default: return nil
            }
        }
    }

    /// Whether the scheme can be verified here, and the key (SubjectPublicKeyInfo, DER) is of its kind and in canonical form.
    package static func supports(_ scheme: SignatureScheme, of publicKey: [UInt8]) -> Bool { Key(publicKey, for: scheme) != nil }

    /// Whether the signature over the input was made with the key. Also `false` if the signature does not parse, or the key does not fit
    /// the scheme (``supports(_:of:)``).
    package static func isValid(_ check: ProofCheck) -> Bool {
        switch Key(check.publicKey, for: check.scheme) {
        case .p256(let key)?:
            guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: check.signature) else { return false }
            return key.isValidSignature(signature, for: check.input)
        case .p384(let key)?:
            guard let signature = try? P384.Signing.ECDSASignature(derRepresentation: check.signature) else { return false }
            return key.isValidSignature(signature, for: check.input)
        case .rsa(let key)?:
            let signature = _RSA.Signing.RSASignature(rawRepresentation: check.signature)
            return key.isValidSignature(signature, for: SHA256.hash(data: check.input), padding: .PSS)
        case .ed25519(let key)?: return key.isValidSignature(check.signature, for: check.input)
        case nil: return false
        }
    }
}
