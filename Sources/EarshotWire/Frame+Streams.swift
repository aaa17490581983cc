package import NIOCore

// Fields of the frames of streams; the DocC article "Frames" lists their limits.

/// Asks the other side to accept a stream.
package struct StreamOpen: Sendable, Hashable {
    package var session: SessionID
    package var id: StreamID
    package var name: StreamName

    package init(session: SessionID, id: StreamID, name: StreamName) {
        self.session = session
        self.id = id
        self.name = name
    }
}

/// Accepts the stream's bytes up to, but not including, `limit`. The receiver repeats the frame with a higher limit as its reader takes the
/// bytes. This is a window as in RFC 9113 section 5.2, so that a paused reader never delays messages.
package struct StreamAccept: Sendable, Hashable {
    package var id: StreamID
    package var limit: UInt64

    package init(id: StreamID, limit: UInt64) {
        self.id = id
        self.limit = limit
    }
}

/// Ends a stream early: refused by its receiver, or aborted by either side.
package struct StreamRefuse: Sendable, Hashable {
    package var id: StreamID
    package var refusal: Refusal

    package init(id: StreamID, refusal: Refusal) {
        self.id = id
        self.refusal = refusal
    }
}

/// The next bytes of a stream.
package struct StreamData: Sendable, Hashable {
    package var id: StreamID
    package var data: ByteBuffer

    package init(id: StreamID, data: ByteBuffer) {
        self.id = id
        self.data = data
    }
}

/// Ends a stream. The receiver answers `streamDone` once its reader has taken everything.
package struct StreamEnd: Sendable, Hashable {
    package var id: StreamID
    /// The size of the stream in bytes.
    package var size: UInt64

    package init(id: StreamID, size: UInt64) {
        self.id = id
        self.size = size
    }
}

/// Moves a stream to another connection from this byte on, or asks for that.
package struct StreamReroute: Sendable, Hashable {
    package var id: StreamID
    /// The offset from the beginning of the stream, in bytes.
    package var offset: UInt64

    package init(id: StreamID, offset: UInt64) {
        self.id = id
        self.offset = offset
    }
}
