import Crypto

/// Which side of a connection one is.
package enum HandshakeRole: String, Sendable, Hashable, CaseIterable {
    /// The side that opened the connection.
    case initiator
    /// The side that accepted it.
    case responder

    /// The other side's.
    package var other: HandshakeRole {
        switch self {
        case .initiator: .responder
        case .responder: .initiator
        }
    }
}

/// T: a digest of everything both sides said before their proofs, and of what carried it.
package struct Transcript: Sendable, Hashable {
    /// What T begins with: other hashes of the same parts are of no use to anyone.
    package static let label = "earshot/1 transcript"
    /// What a proof's input begins with.
    package static let proofLabel = "earshot/1 proof"

    /// T, 32 bytes.
    package let hash: [UInt8]

    /// T over the two hellos' payloads, without frame headers, and the transport's name.
    package init(initiatorHello: [UInt8], responderHello: [UInt8], transport: TransportKind) {
        // Both hellos were held to `WireLimits.helloPayload`, so that the lengths always fit.
        self.hash = Array(
            SHA256.ofParts([Array(Self.label.utf8), initiatorHello, responderHello, Array(transport.rawValue.utf8)]))
    }

    /// What the side of the given role signs.
    package func proofInput(of role: HandshakeRole) -> [UInt8] {
        Array(Self.proofLabel.utf8) + Array(role.rawValue.utf8) + self.hash
    }
}
