internal import EarshotClient
internal import NIOCore

/// How an event stands in the stream.
enum EventFormat: Sendable, Hashable {
    /// One JSON object a line.
    case lines
    /// Server-sent events (WHATWG HTML section 9.2).
    case serverSent

    /// What the client would rather have.
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

    /// An event, ready to be written.
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

    /// What is written where nothing has happened for a while: a comment, where the format has comments. A line of JSON would have to be
    /// an event, so readers of lines hear nothing.
    var heartbeat: ByteBuffer? {
        switch self {
        case .lines: nil
        case .serverSent: ByteBuffer(staticString: ":\n\n")
        }
    }
}

/// Where a reader wants to go on: after one event of one run of the daemon.
struct EventPosition: Sendable, Hashable {
    let since: UInt64?
    let epoch: String?

    init(since: UInt64?, epoch: String?) {
        self.since = since
        self.epoch = epoch
    }

    /// From a `Last-Event-ID`: `EPOCH:SEQ`, or `SEQ` alone; `nil` where it is neither.
    init?(lastEventID: String) {
        let parts = lastEventID.split(separator: ":", omittingEmptySubsequences: false)
        guard let last = parts.last, last.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let since = UInt64(last), parts.count <= 2, parts.first?.isEmpty == false
        else { return nil }
        self.init(since: since, epoch: parts.count == 2 ? parts.first.map(String.init) : nil)
    }
}
