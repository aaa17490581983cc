extension ControlAPI {
    /// This machine's trust in a peer.
    public enum Trust: String, Hashable, Sendable, CaseIterable {
        case unknown
        case trusted
        case blocked
    }

    /// The source of the trust in a peer.
    public enum TrustSource: String, Hashable, Sendable, CaseIterable {
        case person
        case authority
    }

    /// The result of the last comparison of digits with a peer.
    public enum Verified: String, Hashable, Sendable, CaseIterable {
        case matched
        case mismatched
    }

    /// The state of a session's member, as in Multipeer Connectivity.
    public enum MemberState: String, Hashable, Sendable, CaseIterable {
        case notConnected = "not_connected"
        case connecting
        case connected
    }

    /// Whether the traffic between two peers is readable on the wire.
    public enum Protection: String, Hashable, Sendable, CaseIterable {
        case encrypted
        case unprotected
    }

    /// A direction, from the daemon's point of view.
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        case incoming
        case outgoing
    }

    /// A failure: a stable code and a sentence for users.
    public struct Failure: Codable, Hashable, Sendable {
        /// The code, as in ``Problem/code``.
        public let code: Tolerant<ErrorCode>
        /// A lower-case sentence without a full stop; may quote a peer, so untrusted.
        public let message: String

        /// Creates a value from its parts.
        public init(code: Tolerant<ErrorCode>, message: String) {
            self.code = code
            self.message = message
        }

        private enum CodingKeys: String, CodingKey {
            case code, message
        }
    }
}
