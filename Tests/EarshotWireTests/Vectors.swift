import EarshotWire
import Foundation

/// The published vectors: files in `Vectors/`, read by these tests and by those of other implementations.
enum Vectors {
    /// A frame that decodes, and encodes to the same bytes.
    struct FrameVector: Codable, Sendable {
        let name: String
        let type: UInt8
        /// The frame's values in words.
        let note: String
        /// The whole frame, header included.
        let hex: String
    }

    /// Bytes that a receiver refuses.
    struct Malformed: Codable, Sendable {
        let name: String
        /// `preamble`, `unproven` or `proven`: what the receiver waits for, and whose limits hold.
        let phase: String
        let hex: String
        /// `malformed FIELD`, `too-long`, `unknown-type` or `foreign-preamble`.
        let error: String
        /// The number in the refusal.
        let code: UInt16
    }

    struct Identifiers: Codable, Sendable {
        struct Text: Codable, Sendable {
            let hex: String
            let text: String
        }
        struct Peer: Codable, Sendable {
            let publicKey: String
            let peerID: String
        }
        let base32: [Text]
        let invalidBase32: [String]
        let peers: [Peer]
        let invalidPeerIDs: [String]
        let uuids: [Text]
        let invalidUUIDs: [String]
    }

    /// A whole handshake, byte for byte.
    struct Handshake: Codable, Sendable {
        struct Side: Codable, Sendable {
            /// The P-256 scalar, 32 bytes.
            let privateKey: String
            /// SubjectPublicKeyInfo, DER.
            let publicKey: String
            let peerID: String
            let encryption: String
            /// The hello's payload.
            let hello: String
            let proofInput: String
            /// One of many valid signatures, because ECDSA is randomised.
            let signature: String
            /// All bytes that this side sends, preamble included.
            let sends: String
        }
        let transport: String
        let initiator: Side
        let responder: Side
        let transcript: String
    }

    /// The values that two sides calculate from a transcript and two nonces.
    struct Digits: Codable, Sendable {
        let transcript: String
        let beginnerNonce: String
        let answererNonce: String
        let commitment: String
        let digits: String
    }

    /// A proof's signature under each scheme, and the same signature with one change.
    struct Signature: Codable, Sendable {
        let name: String
        let scheme: UInt16
        /// SubjectPublicKeyInfo, DER.
        let publicKey: String
        let peerID: String
        let input: String
        let signature: String
        let isValid: Bool
    }

    static let files = [
        "comparisons", "connections", "data", "frames", "groups", "handshake-checks", "handshakes", "identifiers", "malformed",
        // EarshotCore's tests read this one.
        "memberships",
        "signatures", "trace", "verification",
    ]

    static var folder: URL? { Bundle.module.url(forResource: "Vectors", withExtension: nil) }

    static func load<Value: Decodable>(_ name: String, as: Value.Type = Value.self) throws -> Value {
        guard let folder else { throw CocoaError(.fileNoSuchFile) }
        let decoder = JSONDecoder()
        return try decoder.decode(Value.self, from: Data(contentsOf: folder.appendingPathComponent("\(name).json")))
    }

    static func key(of error: WireError) -> String {
        switch error {
        case .malformed(_, let field): "malformed \(field)"
        case .tooLong: "too-long"
        case .unknownType: "unknown-type"
        case .foreignPreamble: "foreign-preamble"
        default: "not of the codec"
        }
    }
}
