import Crypto
import CryptoExtras
import EarshotWire
import Testing

/// A hello's signature scheme fits its key, and the key is in its canonical form. Both are checked before any answer is sent.
@Suite struct KeySchemeTests {
    private static let schemes: [SignatureScheme] = [.ecdsaSecp256r1SHA256, .ecdsaSecp384r1SHA384, .rsaPSSSHA256, .ed25519]

    /// Returns one key of each kind, in the order of `schemes`.
    private func keys() throws -> [[UInt8]] {
        [
            Array(P256.Signing.PrivateKey().publicKey.derRepresentation), Array(P384.Signing.PrivateKey().publicKey.derRepresentation),
            Array(try _RSA.Signing.PrivateKey(keySize: .bits2048).publicKey.derRepresentation),
            ProofVerifier.ed25519Prefix + Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation),
        ]
    }

    /// Whether both sides accept a hello with this key.
    private func isTaken(_ key: [UInt8], _ scheme: SignatureScheme) throws -> Bool {
        let theirs = try Fixtures.hello(publicKey: key, scheme: scheme, nonce: 2)
        let ours = try Fixtures.hello(publicKey: Array(P256.Signing.PrivateKey().publicKey.derRepresentation), nonce: 1)
        let answers = HandshakeRole.allCases.map { role in
            var machine = HandshakeStateMachine(role: role, hello: ours, carrier: .tls(peerKey: key))
            _ = machine.start()
            return machine.received(.hello(theirs))
        }
        let refusal = HandshakeStateMachine.ReceivedAction.refuse(.unsupportedScheme(scheme))
        switch (answers[0], answers[1]) {
        case (.wait, .sign): return true
        case (refusal, refusal): return false
        default:
            Issue.record("\(answers)")
            return false
        }
    }

    @Test func eachSchemeIsForItsOwnKind() throws {
        for (kind, key) in try self.keys().enumerated() {
            for (number, scheme) in Self.schemes.enumerated() {
                #expect(try self.isTaken(key, scheme) == (kind == number), "key \(kind), scheme \(number)")
            }
            #expect(try !self.isTaken(key, SignatureScheme(rawValue: 0x0203)))
        }
        #expect(WireError.unsupportedScheme(.ed25519).code == .unsupported)
    }

    /// A key that could be written in several ways would have several ids.
    @Test func noOtherFormOfAKey() throws {
        let keys = try self.keys()
        let point = P256.Signing.PrivateKey().publicKey
        // SEQUENCE of 57, the same algorithm, BIT STRING of 34.
        let compressed = [0x30, 57] + Array(point.derRepresentation)[2..<23] + [0x03, 34, 0] + Array(point.compressedRepresentation)
        let short = Array(try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1024)).publicKey.derRepresentation)
        for (key, number) in [
            (compressed, 0), (keys[0] + [0], 0), (Array(keys[0].dropLast()), 0), (keys[1] + [0], 1), (short, 2), (keys[2] + [0], 2),
            (keys[3] + [0], 3), (Array(keys[3].dropLast()), 3), ([0], 0), ([0], 3), ([UInt8](repeating: 0xFF, count: 2048), 2),
        ] { #expect(try !self.isTaken(key, Self.schemes[number]), "\(key.count) bytes, scheme \(number)") }
    }
}
