package import NIOCore

/// A frame about a stream: its opening, its bytes, its end. The DocC article "Frames" lists the limits of the fields.
package enum StreamFrame: Sendable, Hashable {
    case open(StreamOpen)
    case accept(StreamAccept)
    case refuse(StreamRefuse)
    case data(StreamData)
    case end(StreamEnd)
    case done(StreamID)
    case abort(StreamRefuse)
    case reroute(StreamReroute)
    case rerouted(StreamReroute)

    package var type: FrameType {
        switch self {
        case .open: .streamOpen
        case .accept: .streamAccept
        case .refuse: .streamRefuse
        case .data: .streamData
        case .end: .streamEnd
        case .done: .streamDone
        case .abort: .streamAbort
        case .reroute: .streamReroute
        case .rerouted: .streamRerouted
        }
    }

    /// The bytes of the stream that the frame carries.
    package var content: ByteBuffer? { if case .data(let data) = self { data.data } else { nil } }

    /// Writes the fields; the last one, if it is the content, is returned instead.
    func write(into writer: inout PayloadWriter) throws(WireError) -> ByteBuffer? {
        switch self {
        case .open(let open):
            writer.identifier(open.session)
            writer.identifier(open.id)
            try writer.text("name", open.name.description, as: UInt8.self, in: 1...StreamName.byteLimit)
        case .accept(let accept):
            writer.identifier(accept.id)
            writer.integer(accept.limit)
        case .refuse(let refuse), .abort(let refuse):
            writer.identifier(refuse.id)
            try refuse.refusal.write(into: &writer)
        case .data(let data):
            writer.identifier(data.id)
            try writer.length("data", data.data.readableBytes, as: UInt32.self, in: 1...WireLimits.streamData)
        case .end(let end):
            writer.identifier(end.id)
            writer.integer(end.size)
        case .done(let id): writer.identifier(id)
        case .reroute(let reroute), .rerouted(let reroute):
            writer.identifier(reroute.id)
            writer.integer(reroute.offset)
        }
        return self.content
    }
}

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
