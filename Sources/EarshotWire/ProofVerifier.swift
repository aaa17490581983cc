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

/// Checks signatures; the one place that knows schemes.
package enum ProofVerifier {
    /// The length of an RSA key that is taken, in bits: what its signature has room for at the most.
    package static let rsaKeyBits = 2048...WireLimits.signature * 8
    /// What stands before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410 section 4).
    package static let ed25519Prefix: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]

    /// Whether ``isValid(_:)`` can say yes to a signature of this scheme.
    package static func supports(_ scheme: SignatureScheme) -> Bool {
        switch scheme {
        case .ecdsaSecp256r1SHA256, .ecdsaSecp384r1SHA384, .rsaPSSSHA256, .ed25519: true
        default: false
        }
    }

    /// Whether the signature is the key's over the input. `false` also for a key or a signature that does not parse, for a key of another
    /// kind than the scheme's, and for one that is not in its one canonical DER form: else a key could have several peer ids.
    package static func isValid(_ check: ProofCheck) -> Bool {
        switch check.scheme {
        case .ecdsaSecp256r1SHA256: self.isValidP256(check)
        case .ecdsaSecp384r1SHA384: self.isValidP384(check)
        case .rsaPSSSHA256: self.isValidRSA(check)
        case .ed25519: self.isValidEd25519(check)
        default: false
        }
    }

    private static func isValidP256(_ check: ProofCheck) -> Bool {
        guard let key = try? P256.Signing.PublicKey(derRepresentation: check.publicKey),
            Array(key.derRepresentation) == check.publicKey,
            let signature = try? P256.Signing.ECDSASignature(derRepresentation: check.signature)
        else { return false }
        return key.isValidSignature(signature, for: check.input)
    }

    private static func isValidP384(_ check: ProofCheck) -> Bool {
        guard let key = try? P384.Signing.PublicKey(derRepresentation: check.publicKey),
            Array(key.derRepresentation) == check.publicKey,
            let signature = try? P384.Signing.ECDSASignature(derRepresentation: check.signature)
        else { return false }
        return key.isValidSignature(signature, for: check.input)
    }

    private static func isValidRSA(_ check: ProofCheck) -> Bool {
        guard let key = try? _RSA.Signing.PublicKey(derRepresentation: check.publicKey), self.rsaKeyBits.contains(key.keySizeInBits),
            Array(key.derRepresentation) == check.publicKey
        else { return false }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: check.signature)
        return key.isValidSignature(signature, for: SHA256.hash(data: check.input), padding: .PSS)
    }

    private static func isValidEd25519(_ check: ProofCheck) -> Bool {
        guard check.publicKey.starts(with: self.ed25519Prefix),
            let key = try? Curve25519.Signing.PublicKey(rawRepresentation: check.publicKey.dropFirst(self.ed25519Prefix.count))
        else { return false }
        return key.isValidSignature(check.signature, for: check.input)
    }
}
