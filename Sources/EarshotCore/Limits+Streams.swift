/// The limits of streams.
extension EarshotLimits {
    /// How long a stream waits for its peer to be within reach and for a reader there to accept it.
    package static let streamOpenTime: Duration = .seconds(30)
    /// How long the receiver lets one wait: a little longer, so that its sender's word comes first.
    package static let streamWaitTime: Duration = .seconds(35)
    /// Streams from one peer that wait to be accepted; one more is refused as `busy`. Those that were accepted the protocol bounds.
    package static let waitingStreams = 32
    /// Streams to one peer: no more than it may take.
    package static let outgoingStreams = 64
    /// Callers that wait for a stream: each holds a connection to the control socket.
    package static let streamAcceptors = 512
    /// Bytes by which the sender of one stream may be ahead of its reader.
    package static let streamWindow: UInt64 = 1024 * 1024
    /// The same for all streams of one peer together, which share it, and what each has at least.
    package static let streamWindows: UInt64 = 4 * 1024 * 1024
    package static let streamWindowMinimum: UInt64 = 64 * 1024
    /// Bytes of one stream that may wait for the socket.
    package static let streamUnwrittenBytes = 512 * 1024
    /// Bytes after which a stream asks for a data connection: for fewer it costs more than it brings.
    package static let streamRerouteAfter: UInt64 = 1024 * 1024
    /// Streams to one peer that ask for one at a time: with as many of the peer's own no connection that is not proven yet gives way.
    package static let streamReroutes = 2
    /// Closed streams that stay listed.
    package static let closedStreams = 100
}
