public import EarshotWire

/// A named one-way flow of bytes from one peer to another, with back-pressure from the remote reader to the local writer.
///
/// A stream lives as long as its connection: an interrupted stream is not resumed.
public struct ByteStream: Sendable, Hashable, Codable, Identifiable {
    /// The state of a stream.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// The receiver has not accepted the stream yet.
        case opening
        /// Bytes may flow.
        case open
        /// The stream is over. Without an error, the reader took everything.
        case closed
    }

    /// Chosen by the sender's node; single use.
    public let id: StreamID
    /// Whether the stream is received or sent.
    public let direction: Direction
    /// The peer at the other side.
    public let peerID: PeerID
    /// The peer's display name at the time: a label.
    public let peerName: String
    /// The sender's name for the stream: a label, untrusted, not unique.
    public let name: String
    /// The state of the stream.
    public package(set) var state: State
    /// Bytes that the reader took (incoming) or that were handed to the connection (outgoing). The stream's mover counts them; in the core
    /// the value is 0.
    public package(set) var transferred: UInt64
    /// The rate over the last seconds; 0 while nothing moves.
    public package(set) var bytesPerSecond: UInt64
    /// When this side learned of the stream.
    package let opened: WallTime
    /// When it ended.
    package var closed: WallTime?
    /// Why the stream ended early.
    public package(set) var error: EarshotError.Code?
    /// The error as a sentence.
    public package(set) var errorMessage: String?

    package init(
        id: StreamID, direction: Direction, peerID: PeerID, peerName: String, name: String, state: State = .opening,
        transferred: UInt64 = 0, bytesPerSecond: UInt64 = 0, opened: WallTime, closed: WallTime? = nil, error: EarshotError.Code? = nil,
        errorMessage: String? = nil
    ) {
        self.id = id
        self.direction = direction
        self.peerID = peerID
        self.peerName = peerName
        self.name = name
        self.state = state
        self.transferred = transferred
        self.bytesPerSecond = bytesPerSecond
        self.opened = opened
        self.closed = closed
        self.error = error
        self.errorMessage = errorMessage
    }

    private enum CodingKeys: String, CodingKey {
        case id, direction
        case peerID = "peerId"
        case peerName, name, state, transferred, bytesPerSecond
        case opened = "openedAt"
        case closed = "closedAt"
        case error, errorMessage
    }
}
