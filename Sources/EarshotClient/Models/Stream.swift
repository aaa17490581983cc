public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A named one-way flow of bytes from one peer to another.
    public struct Stream: Codable, Hashable, Sendable {
        /// The state of a stream.
        public enum State: String, Hashable, Sendable, CaseIterable {
            /// The stream waits to be accepted.
            case opening
            case open
            /// The stream has ended; without an error, the receiver has read everything.
            case closed
        }

        /// The stream's id: a UUID in lower case.
        public let id: StreamID
        /// The direction; `incoming` streams flow to this machine.
        public let direction: Tolerant<Direction>
        /// The other peer's id.
        public let peerID: PeerID
        /// The other peer's display name, untrusted.
        public let peerName: String
        /// The name that the sender gave, untrusted and not unique.
        public let name: String
        /// The state of the stream.
        public let state: Tolerant<State>
        /// The number of bytes so far.
        public let transferred: UInt64
        /// The rate over the last few seconds; 0 when nothing moves.
        public let bytesPerSecond: UInt64
        /// When the stream became known here.
        @ReadableTime public var openedAt: Date?
        /// When the stream ended.
        @ReadableValue public var closedAt: Date?
        /// Why the stream broke off.
        @ReadableValue public var error: Failure?

        /// Creates a value from its parts.
        public init(
            id: StreamID, direction: Tolerant<Direction>, peerID: PeerID, peerName: String, name: String, state: Tolerant<State>,
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
        /// The open streams of both directions, and recently closed ones.
        @ReadableElements public var streams: [Stream]

        /// Creates a value from its parts.
        public init(streams: [Stream]) {
            self._streams = ReadableElements(streams)
        }

        private enum CodingKeys: String, CodingKey {
            case streams
        }
    }
}
