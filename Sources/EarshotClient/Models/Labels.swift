extension ControlAPI {
    /// What this machine thinks of a peer id.
    public enum Trust: String, Hashable, Sendable, CaseIterable {
        case unknown
        case trusted
        case blocked
    }

    /// Who trusts or blocks a peer.
    public enum TrustSource: String, Hashable, Sendable, CaseIterable {
        case person
        case authority
    }

    /// What came of the last comparison of digits with a peer.
    public enum Verified: String, Hashable, Sendable, CaseIterable {
        case matched
        case mismatched
    }

    /// Multipeer Connectivity's states of a member of a session.
    public enum MemberState: String, Hashable, Sendable, CaseIterable {
        case notConnected = "not_connected"
        case connecting
        case connected
    }

    /// Whether what passes between two peers can be read on the wire.
    public enum Protection: String, Hashable, Sendable, CaseIterable {
        case encrypted
        case unprotected
    }

    /// Which way something went, seen from the daemon.
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        case incoming
        case outgoing
    }

    /// Why something failed: a stable code and a sentence for a person.
    public struct Failure: Codable, Hashable, Sendable {
        /// As in ``Problem/code``.
        public let code: Tolerant<ErrorCode>
        /// One lower-case sentence without a full stop; may quote a peer, so untrusted.
        public let message: String

        /// A value from its parts.
        public init(code: Tolerant<ErrorCode>, message: String) {
            self.code = code
            self.message = message
        }

        private enum CodingKeys: String, CodingKey {
            case code, message
        }
    }
}
