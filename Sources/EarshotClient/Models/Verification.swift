public import FoundationEssentials

extension ControlAPI {
    /// How two persons' comparison of digits with one peer stands.
    public struct Verification: Codable, Hashable, Sendable {
        /// How far it has come.
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

        /// With whom.
        public let peerID: String
        /// Its label, untrusted.
        public let peerName: String
        /// How far it has come.
        public let state: Tolerant<State>
        /// Six digits, once they are there.
        @ExplicitNull public var digits: String?
        /// Why it has ended without them, or what is wrong with them.
        @ReadableValue public var error: Failure?
        /// Until when it is waited for, or the digits are shown.
        @ReadableValue public var expiresAt: Date?

        /// A value from its parts.
        public init(
            peerID: String, peerName: String, state: Tolerant<State>, digits: String? = nil, error: Failure? = nil, expiresAt: Date? = nil
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

    /// The body of `POST /v1/peers/{peer}/verification`, which need not have one.
    public struct VerificationRequest: Codable, Hashable, Sendable {
        /// How long to wait for the peer's person.
        public let timeoutSeconds: Double?

        /// A value from its parts.
        public init(timeoutSeconds: Double? = nil) {
            self.timeoutSeconds = timeoutSeconds
        }

        private enum CodingKeys: String, CodingKey {
            case timeoutSeconds = "timeout_seconds"
        }
    }
}
