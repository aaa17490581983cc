public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// The state of a comparison of digits between this machine's user and a peer's.
    public struct Verification: Codable, Hashable, Sendable {
        /// The state of a comparison.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case none
            case requested
            case waiting
            case ready
            case matched
            case mismatched
            case cancelled
            case timedOut = "timed_out"
            case failed
        }

        /// The peer's id.
        public let peerID: PeerID
        /// The peer's display name, untrusted.
        public let peerName: String
        /// The state of the comparison.
        public let state: Tolerant<State>
        /// The six digits, once they are known.
        @ExplicitNull public var digits: String?
        /// Why the comparison ended without digits, or what is wrong with the digits.
        @ReadableValue public var error: Failure?
        /// When the comparison times out, or the digits expire.
        @ReadableValue public var expiresAt: Date?

        /// Creates a value from its parts.
        public init(
            peerID: PeerID, peerName: String, state: Tolerant<State>, digits: String? = nil, error: Failure? = nil, expiresAt: Date? = nil
        ) {
            self.peerID = peerID
            self.peerName = peerName
            self.state = state
            self._digits = ExplicitNull(wrappedValue: digits)
            self._error = ReadableValue(error)
            self._expiresAt = ReadableValue(expiresAt)
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case peerName = "peer_name"
            case state, digits, error
            case expiresAt = "expires_at"
        }
    }

    /// The optional body of `POST /v1/peers/{peer}/verification`.
    public struct VerificationRequest: Codable, Hashable, Sendable {
        /// How long to wait for the peer's user, in seconds.
        public let timeoutSeconds: Double?

        /// Creates a value from its parts.
        public init(timeout: Duration? = nil) {
            self.timeoutSeconds = timeout?.seconds
        }

        private enum CodingKeys: String, CodingKey {
            case timeoutSeconds = "timeout_seconds"
        }
    }
}
