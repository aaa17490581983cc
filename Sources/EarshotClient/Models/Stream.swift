public import FoundationEssentials

extension ControlAPI {
    /// A named one-way flow of bytes from one peer to another.
    public struct Stream: Codable, Hashable, Sendable {
        /// How a stream stands.
        public enum State: String, Hashable, Sendable, CaseIterable {
            /// It waits to be accepted.
            case opening
            case open
            /// Over; everything was taken where there is no error.
            case closed
        }

        /// A UUID in lower case.
        public let id: String
        /// `incoming` is towards this machine.
        public let direction: Tolerant<Direction>
        /// The other side.
        public let peerID: String
        /// A label, untrusted.
        public let peerName: String
        /// As the sender gave it: a label, untrusted, not unique.
        public let name: String
        /// How it stands.
        public let state: Tolerant<State>
        /// Bytes so far.
        public let transferred: UInt64
        /// Over the last few seconds; 0 when nothing moves.
        public let bytesPerSecond: UInt64
        /// When this side heard of it.
        @ReadableTime public var openedAt: Date?
        /// When it ended.
        @ReadableValue public var closedAt: Date?
        /// Why it did not come to its end.
        @ReadableValue public var error: Failure?

        /// A value from its parts.
        public init(
            id: String, direction: Tolerant<Direction>, peerID: String, peerName: String, name: String, state: Tolerant<State>,
            transferred: UInt64, bytesPerSecond: UInt64, openedAt: Date, closedAt: Date? = nil, error: Failure? = nil
        ) {
            self.id = id
            self.direction = direction
            self.peerID = peerID
            self.peerName = peerName
            self.name = name
            self.state = state
            self.transferred = transferred
            self.bytesPerSecond = bytesPerSecond
            self._openedAt = ReadableTime(openedAt)
            self._closedAt = ReadableValue(closedAt)
            self._error = ReadableValue(error)
        }

        private enum CodingKeys: String, CodingKey {
            case id, direction
            case peerID = "peer_id"
            case peerName = "peer_name"
            case name, state, transferred
            case bytesPerSecond = "bytes_per_second"
            case openedAt = "opened_at"
            case closedAt = "closed_at"
            case error
        }
    }

    /// The answer of `GET /v1/streams`.
    public struct StreamList: Codable, Hashable, Sendable {
        /// Open ones of both directions, and the last that were closed.
        @ReadableElements public var streams: [Stream]

        /// A value from its parts.
        public init(streams: [Stream]) {
            self._streams = ReadableElements(streams)
        }

        private enum CodingKeys: String, CodingKey {
            case streams
        }
    }
}
