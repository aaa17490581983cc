import Crypto

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
    /// Whether ``isValid(_:)`` can say yes to a signature of this scheme.
    package static func supports(_ scheme: SignatureScheme) -> Bool {
        scheme == .ecdsaSecp256r1SHA256
    }

    /// Whether the signature is the key's over the input. `false` also for a key or a signature that does not parse, and for a key
    /// that is not in its one canonical DER form: else a key could have several peer ids.
    package static func isValid(_ check: ProofCheck) -> Bool {
        guard self.supports(check.scheme), let key = try? P256.Signing.PublicKey(derRepresentation: check.publicKey),
            Array(key.derRepresentation) == check.publicKey,
            let signature = try? P256.Signing.ECDSASignature(derRepresentation: check.signature)
        else { return false }
        return key.isValidSignature(signature, for: check.input)
    }
}
