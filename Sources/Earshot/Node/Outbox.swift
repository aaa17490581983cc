import DequeModule
import EarshotWire
import NIOCore

/// The reliable messages that one peer has not acknowledged yet, in the sender's order. A value without a clock or a socket.
///
/// A message goes out once a connection; when the connection is lost all that is unacknowledged goes out again on the next, in
/// the same order and with the same sequence, and the receiver drops the repeats.
struct Outbox {
    struct Entry {
        let id: MessageID
        let sequence: UInt64
        let contentType: String
        let body: ByteBuffer
        let sentAtMilliseconds: Int64

        var cost: Int { self.body.readableBytes + EarshotLimits.messageOverhead }

        func frame(in session: SessionID) -> Frame {
            .message(
                MessageFrame(
                    session: session, id: self.id, mode: .reliable, sequence: self.sequence,
                    sentAtMilliseconds: self.sentAtMilliseconds, contentType: self.contentType, body: self.body))
        }
    }

    private var entries: [UInt64: Entry] = [:]
    private var sequences: [MessageID: UInt64] = [:]
    /// What has not gone out on this connection, in order; may name what was removed since.
    private var unsent: Deque<UInt64> = []
    private(set) var bytes = 0
    /// Callers that wait for room, in order.
    var roomWaiters: Deque<CheckedContinuation<Void, Never>> = []

    var isEmpty: Bool { self.entries.isEmpty }
    var hasRoom: Bool { self.bytes < EarshotLimits.queuedMessageBytes }
    var ids: [MessageID] { Array(self.sequences.keys) }
    /// Whether a flush is on its way already.
    var isFlushing = false

    /// Appends a message; its sequence is above all earlier ones.
    mutating func append(_ entry: Entry) {
        self.entries[entry.sequence] = entry
        self.sequences[entry.id] = entry.sequence
        self.unsent.append(entry.sequence)
        self.bytes += entry.cost
    }

    /// What is to go out now, in order; each is given once a connection.
    mutating func takeUnsent() -> [Entry] {
        defer { self.unsent.removeAll() }
        return self.unsent.compactMap { self.entries[$0] }
    }

    /// Takes out an acknowledged or given-up message; `false` where it is not there.
    mutating func remove(_ id: MessageID) -> Bool {
        guard let sequence = self.sequences.removeValue(forKey: id), let entry = self.entries.removeValue(forKey: sequence) else {
            return false
        }
        self.bytes -= entry.cost
        return true
    }

    /// Everything unacknowledged is to go out again.
    mutating func connectionLost() {
        self.unsent = Deque(self.entries.keys.sorted())
    }

    /// Whoever may go on now that there is room; `evenFull` where they are to look whether they still want it.
    mutating func takeRoomWaiters(evenFull: Bool) -> [CheckedContinuation<Void, Never>] {
        guard self.hasRoom || evenFull else { return [] }
        defer { self.roomWaiters.removeAll() }
        return Array(self.roomWaiters)
    }
}
