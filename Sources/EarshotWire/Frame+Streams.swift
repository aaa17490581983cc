package import NIOCore

// The fields of the frames of streams; the DocC article "Frames" lists their limits.

/// Asks the other side to take a stream.
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

/// The receiver takes the stream's bytes up to, not including, `limit`; sent again with a higher one as its reader has taken what came
/// (a window, as RFC 9113 section 5.2's, so that a reader that pauses never holds up messages).
package struct StreamAccept: Sendable, Hashable {
    package var id: StreamID
    package var limit: UInt64

    package init(id: StreamID, limit: UInt64) {
        self.id = id
        self.limit = limit
    }
}

/// Ends a stream that will not come to its end: refused by its receiver, or aborted by either side.
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

/// The stream has come to its end; the receiver answers `streamDone` once its reader has taken everything.
package struct StreamEnd: Sendable, Hashable {
    package var id: StreamID
    /// All bytes of the stream.
    package var size: UInt64

    package init(id: StreamID, size: UInt64) {
        self.id = id
        self.size = size
    }
}

/// A stream is to go on, or goes on, over another connection from this byte on.
package struct StreamReroute: Sendable, Hashable {
    package var id: StreamID
    /// From the beginning of the stream, in bytes.
    package var offset: UInt64

    package init(id: StreamID, offset: UInt64) {
        self.id = id
        self.offset = offset
    }
}
