internal import EarshotClient
internal import NIOCore

/// The format of events in the stream.
enum EventFormat: Sendable, Hashable {
    /// One JSON object per line.
    case lines
    /// Server-sent events (WHATWG HTML section 9.2).
    case serverSent

    /// Selects the format that the client's `Accept` field prefers.
    init(accept: String?) {
        self = accept?.lowercased().contains("text/event-stream") == true ? .serverSent : .lines
    }

    /// The media type.
    var contentType: String {
        switch self {
        case .lines: "application/x-ndjson"
        case .serverSent: "text/event-stream"
        }
    }

    /// Returns the encoded event.
    func buffer(_ event: ControlAPI.Event) throws -> ByteBuffer {
        let json = try ControlJSON.encode(event)
        var buffer = ByteBuffer()
        buffer.reserveCapacity(json.count + 128)
        switch self {
        case .lines:
            buffer.writeBytes(json)
            buffer.writeStaticString("\n")
        case .serverSent:
            // The epoch belongs to the id, so that a client that reconnects after the daemon's restart learns what it missed.
            buffer.writeString("id: \(event.epoch):\(event.seq)\nevent: \(event.type.rawValue)\ndata: ")
            buffer.writeBytes(json)
            buffer.writeStaticString("\n\n")
        }
        return buffer
    }

    /// The bytes to write after a while without events: a comment, if the format has comments. A line of JSON must be an event, so the line
    /// format has no heartbeat.
    var heartbeat: ByteBuffer? {
        switch self {
        case .lines: nil
        case .serverSent: ByteBuffer(staticString: ":\n\n")
        }
    }
}

/// The position from which a reader continues: after one event of one run of the daemon.
struct EventPosition: Sendable, Hashable {
    let since: UInt64?
    let epoch: String?

    init(since: UInt64?, epoch: String?) {
        self.since = since
        self.epoch = epoch
    }

    /// Parses a `Last-Event-ID`: `EPOCH:SEQ`, or `SEQ` alone. Returns `nil` for any other text.
    init?(lastEventID: String) {
        let parts = lastEventID.split(separator: ":", omittingEmptySubsequences: false)
        guard let last = parts.last, last.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let since = UInt64(last), parts.count <= 2, parts.first?.isEmpty == false
        else { return nil }
        self.init(since: since, epoch: parts.count == 2 ? parts.first.map(String.init) : nil)
    }
}
