import Crypto

/// The role of a side of a connection.
package enum HandshakeRole: String, Sendable, Hashable, CaseIterable {
    /// The side that opened the connection.
    case initiator
    /// The side that accepted it.
    case responder

    /// The other side's role.
    package var other: HandshakeRole {
        switch self {
        case .initiator: .responder
        case .responder: .initiator
        }
    }
}

/// T: a digest of both sides' hellos, and of the transport.
package struct Transcript: Sendable, Hashable {
    /// The prefix of T, which makes other hashes of the same parts useless to an attacker.
    package static let label = "earshot/1 transcript"
    /// The prefix of a proof's input.
    package static let proofLabel = "earshot/1 proof"

    /// T, 32 bytes.
    package let hash: [UInt8]

    /// Creates T over the two hellos' payloads, without frame headers, and the transport's name.
    package init(initiatorHello: [UInt8], responderHello: [UInt8], transport: TransportKind) {
        // Both hellos were held to `WireLimits.helloPayload`, so the lengths always fit.
        self.hash = Array(
            SHA256.ofParts([Array(Self.label.utf8), initiatorHello, responderHello, Array(transport.rawValue.utf8)]))
    }

    /// Returns the bytes that the side of the given role signs.
    package func proofInput(of role: HandshakeRole) -> [UInt8] {
        Array(Self.proofLabel.utf8) + Array(role.rawValue.utf8) + self.hash
    }
}
