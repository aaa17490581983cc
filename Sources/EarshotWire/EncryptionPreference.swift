/// What a peer wants of the transport; both sides' preferences together decide: the table in Handshake.md.
public enum EncryptionPreference: String, Sendable, Hashable, Codable, CaseIterable {
    /// Plaintext only.
    case none
    /// TLS where the other side can.
    case optional
    /// TLS or nothing.
    case required

    /// Whether this preference, with some other on the far side, can yield the transport.
    public func permits(_ transport: TransportKind) -> Bool {
        Self.allCases.contains { TransportKind.agreed(self, $0) == transport }
    }
}

/// What carries the frames of a connection.
public enum TransportKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// TLS 1.3 (RFC 8446), mutually authenticated.
    case tls
    /// Bare TCP: identities are proven at the start, nothing is protected after it.
    case plaintext

    /// The transport that two preferences yield; `nil` where they cannot agree.
    public static func agreed(_ one: EncryptionPreference, _ other: EncryptionPreference) -> TransportKind? {
        switch (one, other) {
        case (.required, .required), (.required, .optional), (.optional, .required), (.optional, .optional): .tls
        case (.none, .none), (.none, .optional), (.optional, .none): .plaintext
        case (.required, .none), (.none, .required): nil
        }
    }
}
