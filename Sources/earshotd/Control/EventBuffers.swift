internal import Earshot
internal import EarshotClient
internal import NIOCore
internal import Synchronization

/// The last events in their encoded form. With a thousand readers, an event is written a thousand times but encoded once.
final class EventBuffers: Sendable {
    /// The highest number of kept events, and of their bytes. Readers that keep up are rarely further apart.
    static let countLimit = 32
    static let byteLimit = 2 * 1024 * 1024

    private struct Entry {
        let sequence: UInt64
        let format: EventFormat
        let buffer: ByteBuffer
    }

    private struct State {
        var entries: [Entry] = []
        var bytes = 0
    }

    private let epoch: String
    private let state = Mutex(State())

    /// Creates buffers for one run of the daemon.
    init(epoch: String) {
        self.epoch = epoch
    }

    /// Returns the event in the format, and encodes it if it is not kept. A gap concerns only one reader and is never kept.
    func buffer(_ event: NodeEvent, _ format: EventFormat) throws -> ByteBuffer {
        if case .gap = event.kind { return try format.buffer(ControlAPI.Event(event, epoch: self.epoch)) }
        let known = self.state.withLock { state in
            state.entries.last { $0.sequence == event.sequence && $0.format == format }?.buffer
        }
        if let known { return known }
        let buffer = try format.buffer(ControlAPI.Event(event, epoch: self.epoch))
        self.state.withLock { state in
            guard !state.entries.contains(where: { $0.sequence == event.sequence && $0.format == format }) else { return }
            state.entries.append(Entry(sequence: event.sequence, format: format, buffer: buffer))
            state.bytes += buffer.readableBytes
            while state.entries.count > Self.countLimit || state.bytes > Self.byteLimit {
                state.bytes -= state.entries.removeFirst().buffer.readableBytes
            }
        }
        return buffer
    }
}
