public import EarshotWire

extension ControlAPI {
    /// The answer of `POST /v1/peers/{peer}/ping`: the steps up to the peer's answer.
    public struct PeerPing: Codable, Hashable, Sendable {
        /// The connection that carried the request.
        public enum Connection: String, Hashable, Sendable, CaseIterable {
            /// A connection that existed before.
            case standing
            /// A connection that was made for the request.
            case new
        }

        /// A step of the ping.
        public struct Step: Codable, Hashable, Sendable {
            /// The step's kind.
            public enum Kind: String, Hashable, Sendable, CaseIterable {
                case name, address, tcp, tls, key, answer, session
            }

            /// The result of a step.
            public enum State: String, Hashable, Sendable, CaseIterable {
                case ok, failed, skipped
            }

            /// The step's kind.
            public let step: Tolerant<Kind>
            /// The step's result.
            public let state: Tolerant<State>
            /// The step's result as a sentence.
            public let message: String
            /// The code of a failed step, such as `timed-out`.
            public let code: Tolerant<ErrorCode>?

            /// Creates a value from its parts.
            public init(step: Tolerant<Kind>, state: Tolerant<State>, message: String, code: Tolerant<ErrorCode>? = nil) {
                self.step = step
                self.state = state
                self.message = message
                self.code = code
            }
        }

        /// The peer's id.
        public let peerID: PeerID
        /// The peer's display name, untrusted.
        public let peerName: String
        /// The connection on which the peer answered; `nil` without an answer.
        @ExplicitNull public var connection: Tolerant<Connection>?
        /// The time between request and answer; `nil` without an answer.
        @ExplicitNull public var roundTripMilliseconds: Double?
        /// All steps, in their order.
        @ReadableElements public var steps: [Step]

        /// Creates a value from its parts.
        public init(
            peerID: PeerID, peerName: String, connection: Tolerant<Connection>? = nil, roundTripMilliseconds: Double? = nil, steps: [Step]
        ) {
            self.peerID = peerID
            self.peerName = peerName
            self._connection = ExplicitNull(wrappedValue: connection)
            self._roundTripMilliseconds = ExplicitNull(wrappedValue: roundTripMilliseconds)
            self._steps = ReadableElements(steps)
        }

        /// The failed step, if any.
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
