/// The limits of streams.
extension EarshotLimits {
    /// The time for which a stream waits for its peer to be within reach and for a reader there to accept it.
    package static let streamOpenTime: Duration = .seconds(30)
    /// The time for which the receiver lets a stream wait: a little longer, so that the sender's timeout comes first.
    package static let streamWaitTime: Duration = .seconds(35)
    /// The number of streams from one peer that may wait to be accepted; another one is refused as `busy`. The protocol limits accepted
    /// streams.
    package static let waitingStreams = 32
    /// The number of streams to one peer: as many as the peer may accept.
    package static let outgoingStreams = 64
    /// The number of callers that may wait for a stream. Each holds a connection to the control socket.
    package static let streamAcceptors = 512
    /// The number of bytes by which the sender of a stream may be ahead of its reader.
    package static let streamWindow: UInt64 = 1024 * 1024
    /// The number of bytes that all streams of one peer share for this, and the minimum for each stream.
    package static let streamWindows: UInt64 = 4 * 1024 * 1024
    package static let streamWindowMinimum: UInt64 = 64 * 1024
    /// The number of bytes of one stream that may wait for the socket.
    package static let streamUnwrittenBytes = 512 * 1024
    /// The number of bytes after which a stream requests a data connection: for fewer bytes, the cost exceeds the benefit.
    package static let streamRerouteAfter: UInt64 = 1024 * 1024
    /// The number of streams to one peer that request a data connection at a time. With as many streams of the peer's own, no unproven
    /// connection is evicted.
    package static let streamReroutes = 2
    /// The number of closed streams that stay listed.
    package static let closedStreams = 100
}
