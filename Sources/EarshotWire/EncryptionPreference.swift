/// A peer's preference for the transport. Both sides' preferences together decide, by the table in Handshake.md.
public enum EncryptionPreference: String, Sendable, Hashable, Codable, CaseIterable {
    /// Plaintext only.
    case none
    /// TLS if the other side supports it.
    case optional
    /// TLS or nothing.
    case required

    /// Whether this preference, combined with some preference of the other side, can yield the transport.
    public func permits(_ transport: TransportKind) -> Bool {
        Self.allCases.contains { TransportKind.agreed(self, $0) == transport }
    }
}

/// The transport that carries the frames of a connection.
public enum TransportKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// TLS 1.3 (RFC 8446), mutually authenticated.
    case tls
    /// Bare TCP: identities are proven at the start, and nothing is protected afterwards.
    case plaintext

    /// Returns the transport that two preferences yield; `nil` if they cannot agree.
    public static func agreed(_ one: EncryptionPreference, _ other: EncryptionPreference) -> TransportKind? {
        switch (one, other) {
        case (.required, .required), (.required, .optional), (.optional, .required), (.optional, .optional): .tls
        case (.none, .none), (.none, .optional), (.optional, .none): .plaintext
        case (.required, .none), (.none, .required): nil
        }
    }
}
