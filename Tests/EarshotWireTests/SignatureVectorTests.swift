import Crypto
import CryptoExtras
import EarshotWire
import Foundation
import Testing

/// The vectors of signatures and of digits: read, and written anew where `EARSHOT_WRITE_VECTORS` names a folder.
@Suite struct SignatureVectorTests {
    @Test func signaturesVerifyWhereTheyAreGood() throws {
        let vectors = try Vectors.load("signatures", as: [Vectors.Signature].self)
        #expect(Set(vectors.filter(\.isValid).map(\.scheme)) == [0x0403, 0x0503, 0x0804, 0x0807])
        #expect(vectors.count { !$0.isValid } > 12)
        for vector in vectors {
            let key = try #require(bytes(hexadecimal: vector.publicKey))
            #expect(PeerID(subjectPublicKeyInfo: key).description == vector.peerID)
            let check = ProofCheck(
                scheme: SignatureScheme(rawValue: vector.scheme), publicKey: key, input: try #require(bytes(hexadecimal: vector.input)),
                signature: try #require(bytes(hexadecimal: vector.signature)))
            #expect(ProofVerifier.isValid(check) == vector.isValid, "\(vector.name)")
        }
    }

    @Test func digitsAreThoseOfTheVectors() throws {
        let vectors = try Vectors.load("verification", as: [Vectors.Digits].self)
        let made = try self.digits()
        #expect(vectors.count == made.count && vectors.count > 2)
        for (vector, other) in zip(vectors, made) {
            #expect(vector.commitment == other.commitment && vector.digits == other.digits && vector.transcript == other.transcript)
        }
        // Leading zeros stay.
        #expect(vectors.contains { $0.digits.hasPrefix("0") })
    }

    private func digits() throws -> [Vectors.Digits] {
        let transcript = Transcript(initiatorHello: [1, 2, 3], responderHello: [4, 5], transport: .tls)
        return (UInt8(0)..<24).map { number in
            let (beginner, answerer) = ([UInt8](repeating: number, count: 32), [UInt8](repeating: 0xF0 ^ number, count: 32))
            return Vectors.Digits(
                transcript: transcript.hash.hexadecimal, beginnerNonce: beginner.hexadecimal, answererNonce: answerer.hexadecimal,
                commitment: VerificationDigits.commitment(to: beginner, transcript).hexadecimal,
                digits: VerificationDigits.digits(transcript, beginner: beginner, answerer: answerer))
        }
    }

    /// Signatures are random, so that the files are written only where that is asked for.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] != nil))
    func signatureVectorsAreWrittenOnRequest() throws {
        let folder = try #require(ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"])
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        for (name, data) in [
            ("signatures", try encoder.encode(try self.signatures())), ("verification", try encoder.encode(try self.digits())),
        ] {
            try (data + Data("\n".utf8)).write(to: URL(fileURLWithPath: folder).appendingPathComponent("\(name).json"))
        }
    }

    private func signatures() throws -> [Vectors.Signature] {
        let p256 = try P256.Signing.PrivateKey(rawRepresentation: Array(1...32))
        let p384 = try P384.Signing.PrivateKey(rawRepresentation: Array(1...48))
        let ed25519 = try Curve25519.Signing.PrivateKey(rawRepresentation: Array(1...32))
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let short = try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1024))
        let input = Transcript(initiatorHello: [1], responderHello: [2], transport: .tls).proofInput(of: .initiator)
        let keys: [(name: String, scheme: SignatureScheme, key: [UInt8], signature: [UInt8])] = [
            (
                "P-256", .ecdsaSecp256r1SHA256, Array(p256.publicKey.derRepresentation),
                Array(try p256.signature(for: input).derRepresentation)
            ),
            (
                "P-384", .ecdsaSecp384r1SHA384, Array(p384.publicKey.derRepresentation),
                Array(try p384.signature(for: input).derRepresentation)
            ),
            (
                "RSA 2048", .rsaPSSSHA256, Array(rsa.publicKey.derRepresentation),
                Array(try rsa.signature(for: SHA256.hash(data: input), padding: .PSS).rawRepresentation)
            ),
            (
                "Ed25519", .ed25519, ProofVerifier.ed25519Prefix + Array(ed25519.publicKey.rawRepresentation),
                Array(try ed25519.signature(for: input))
            ),
        ]
        var vectors: [Vectors.Signature] = []
        func add(_ name: String, _ scheme: SignatureScheme, _ key: [UInt8], _ input: [UInt8], _ signature: [UInt8], _ isValid: Bool) {
            vectors.append(
                Vectors.Signature(
                    name: name, scheme: scheme.rawValue, publicKey: key.hexadecimal,
                    peerID: PeerID(subjectPublicKeyInfo: key).description, input: input.hexadecimal, signature: signature.hexadecimal,
                    isValid: isValid))
        }
        for (name, scheme, key, signature) in keys {
            add(name, scheme, key, input, signature, true)
            var changed = signature
            changed[changed.count / 2] ^= 1
            add("\(name), signature changed", scheme, key, input, changed, false)
            add("\(name), another input", scheme, key, input + [0], signature, false)
            add("\(name), key with a byte more", scheme, key + [0], input, signature, false)
            add("\(name), no signature", scheme, key, input, [], false)
            for other in keys where other.scheme != scheme {
                add("\(name) under the scheme of \(other.name)", other.scheme, key, input, signature, false)
            }
        }
        let shortSignature = Array(try short.signature(for: SHA256.hash(data: input), padding: .PSS).rawRepresentation)
        add("RSA 1024", .rsaPSSSHA256, Array(short.publicKey.derRepresentation), input, shortSignature, false)
        let old = Array(try rsa.signature(for: SHA256.hash(data: input), padding: .insecurePKCS1v1_5).rawRepresentation)
        add("RSA 2048, PKCS #1 v1.5", .rsaPSSSHA256, Array(rsa.publicKey.derRepresentation), input, old, false)
        let prefix: [UInt8] = [
            0x30, 0x39, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03,
            0x01,
            0x07, 0x03, 0x22, 0x00,
        ]
        add(
            "P-256, compressed point", .ecdsaSecp256r1SHA256, prefix + Array(p256.publicKey.compressedRepresentation), input,
            keys[0].signature, false)
        return vectors
    }
}
