extension ControlAPI {
    /// The answer of `POST /v1/peers/{peer}/ping`: each step on the way to the peer's answer.
    public struct PeerPing: Codable, Hashable, Sendable {
        /// Which connection carried the question.
        public enum Connection: String, Hashable, Sendable, CaseIterable {
            /// One that was there before.
            case standing
            /// One that was made for it.
            case new
        }

        /// One step.
        public struct Step: Codable, Hashable, Sendable {
            /// The step's action.
            public enum Kind: String, Hashable, Sendable, CaseIterable {
                case name, address, tcp, tls, key, answer, session
            }

            /// How a step went.
            public enum State: String, Hashable, Sendable, CaseIterable {
                case ok, failed, skipped
            }

            /// Which step.
            public let step: Tolerant<Kind>
            /// How it went.
            public let state: Tolerant<State>
            /// One sentence.
            public let message: String
            /// Where it failed: why, such as `timed-out`.
            public let code: Tolerant<ErrorCode>?

            /// A value from its parts.
            public init(step: Tolerant<Kind>, state: Tolerant<State>, message: String, code: Tolerant<ErrorCode>? = nil) {
                self.step = step
                self.state = state
                self.message = message
                self.code = code
            }
        }

        /// Which peer.
        public let peerID: String
        /// Its label, untrusted.
        public let peerName: String
        /// Over which connection it answered; `nil` where it did not.
        @ExplicitNull public var connection: Tolerant<Connection>?
        /// From the question to the answer; `nil` without an answer.
        @ExplicitNull public var roundTripMilliseconds: Double?
        /// All steps, in their order.
        @ReadableElements public var steps: [Step]

        /// A value from its parts.
        public init(
            peerID: String, peerName: String, connection: Tolerant<Connection>? = nil, roundTripMilliseconds: Double? = nil, steps: [Step]
        ) {
            self.peerID = peerID
            self.peerName = peerName
            self._connection = ExplicitNull(wrappedValue: connection)
            self._roundTripMilliseconds = ExplicitNull(wrappedValue: roundTripMilliseconds)
            self._steps = ReadableElements(steps)
        }

        /// The step that failed, where one did.
        public var failure: Step? { self.steps.first { $0.state == .failed } }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case peerName = "peer_name"
            case connection
            case roundTripMilliseconds = "round_trip_milliseconds"
            case steps
        }
    }
}
