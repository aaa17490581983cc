import DequeModule
package import EarshotWire
package import NIOCore

/// The reliable messages that one peer has not acknowledged yet, in the sender's order. A value without a clock, a disk or a socket.
///
/// A message is sent once per connection. When the connection is lost, all unacknowledged messages are sent again on the next one, in the
/// same order and with the same sequence numbers, and the receiver drops repeats. The number of bytes in flight is bounded. Other messages
/// wait, queued ones with their bodies on disk.
///
/// A receiver that refuses a message refuses all later ones until the sender shows that it knows (`resumed`), so that no message overtakes
/// another. Messages whose callers wait then fail; queued messages stay and are retried one by one, until the receiver accepts one.
package struct Outbox: Sendable {
    package struct Entry: Sendable {
        package let id: MessageID
        package let sequence: UInt64
        package let contentType: String
        /// The size of the body in bytes.
        package let size: Int
        /// The body; `nil` while it is only on disk.
        package fileprivate(set) var body: ByteBuffer?
        package let sentAtMilliseconds: Int64
        /// Whether the message waits on disk until its deadline.
        package let isQueued: Bool
        package let inReplyTo: MessageID?
        package fileprivate(set) var isInFlight = false
        /// Whether a connection was given the message, now or earlier. From then on the receiver may have it, even if the connection was
        /// lost.
        package fileprivate(set) var mayHaveArrived: Bool

        package init(
            id: MessageID, sequence: UInt64, contentType: String, size: Int, body: ByteBuffer?, sentAtMilliseconds: Int64, isQueued: Bool,
            mayHaveArrived: Bool = false, inReplyTo: MessageID? = nil
        ) {
            self.id = id
            self.sequence = sequence
            self.contentType = contentType
            self.size = size
            self.body = body
            self.sentAtMilliseconds = sentAtMilliseconds
            self.isQueued = isQueued
            self.mayHaveArrived = mayHaveArrived
            self.inReplyTo = inReplyTo
        }

        package var cost: Int { self.size + EarshotLimits.messageOverhead }
    }

    /// The messages to send now.
    package struct Batch: Sendable {
        /// The messages in order, each with its body.
        package fileprivate(set) var entries: [Entry] = []
        /// Whether the first message is the first after a refusal.
        package fileprivate(set) var isResumed = false
        /// The next messages whose bodies have to be loaded first.
        package fileprivate(set) var missing: [MessageID] = []
    }

    private enum State {
        /// The receiver accepts messages.
        case open
        /// The receiver has refused a message, and refuses those in flight. Nothing is sent before all of these are answered.
        case refused
        /// The first message after a refusal is in flight, alone.
        case probing
    }

    /// The messages by sequence number.
    private var held: [UInt64: Entry] = [:]
    private var sequences: [MessageID: UInt64] = [:]
    /// The sequence numbers that were not sent on this connection, in order. Some may have been removed since.
    private var unsent: Deque<UInt64> = []
    /// Whether `unsent` lacks messages that were refused.
    private var isStale = false
    private var state = State.open
    private var inFlight = 0
    /// The bytes in flight.
    package private(set) var bytes = 0
    /// The bytes of queued messages in memory.
    package private(set) var loadedBytes = 0
    /// Whether a queued message was refused and waits for its next try.
    package private(set) var isPaused = false
    /// The number of refusals since the receiver last accepted a message.
    package private(set) var refusals = 0
    /// Whether a flush is scheduled.
    package private(set) var isFlushing = false
    /// Whether bodies are being loaded.
    private var isLoading = false

    package init() {}

    package var count: Int { self.held.count }
    package var isEmpty: Bool { self.held.isEmpty }
    package var hasQueued: Bool {
        self.held.values.contains(where: \.isQueued)  // order does not show: one is as good as another
    }
    package var hasRoom: Bool { self.bytes < EarshotLimits.queuedMessageBytes }
    /// The ids in order.
    package var ids: [MessageID] { self.ids { _ in true } }
    /// The ids of the messages whose callers wait, in order.
    package var unqueuedIDs: [MessageID] { self.ids { !$0.isQueued } }
    /// The ids of the messages whose callers wait and that were not sent on this connection, in order.
    package var waitingIDs: [MessageID] { self.ids { !$0.isQueued && !$0.isInFlight } }

    private func ids(_ isWanted: (Entry) -> Bool) -> [MessageID] {
        self.held.keys.sorted().compactMap { sequence in self.held[sequence].flatMap { isWanted($0) ? $0.id : nil } }
    }

    /// Appends messages whose sequence numbers rise above all earlier ones. The body of a queued message is kept in memory only if there is
    /// room.
    package mutating func append(contentsOf entries: [Entry]) {
        for entry in entries { self.append(entry) }
    }

    /// Appends one message.
    package mutating func append(_ entry: Entry) {
        var entry = entry
        if entry.isQueued, entry.body != nil {
            if self.loadedBytes + entry.cost <= EarshotLimits.queuedMessageBytes {
                self.loadedBytes += entry.cost
            } else {
                entry.body = nil
            }
        }
        self.held[entry.sequence] = entry
        self.sequences[entry.id] = entry.sequence
        self.unsent.append(entry.sequence)
    }

    /// Returns the messages to send now, in order. Each is returned once per connection.
    package mutating func takeUnsent() -> Batch {
        var batch = Batch()
        if self.isStale { self.renew() }
        guard !self.isPaused, self.state == .open || (self.state == .refused && self.inFlight == 0) else { return batch }
        while let sequence = self.unsent.first, self.hasRoom {
            guard let position = self.held.index(forKey: sequence) else {
                self.unsent.removeFirst()
                continue
            }
            var entry = self.held.values[position]  // order does not show: that one alone
            guard entry.body != nil else {
                batch.missing = self.nextMissing()
                break
            }
            self.unsent.removeFirst()
            entry.isInFlight = true
            entry.mayHaveArrived = true
            self.held.values[position].isInFlight = true  // order does not show: that one alone
            self.held.values[position].mayHaveArrived = true  // order does not show: that one alone
            self.inFlight += 1
            self.bytes += entry.cost
            batch.entries.append(entry)
            if self.state == .refused {
                self.state = .probing
                batch.isResumed = true
                break
            }
        }
        return batch
    }

    private func nextMissing() -> [MessageID] {
        var ids: [MessageID] = []
        var cost = self.loadedBytes
        for entry in self.unsent.lazy.compactMap({ self.held[$0] }) {
            guard entry.isQueued, entry.body == nil else { continue }
            cost += entry.cost
            guard ids.isEmpty || cost <= EarshotLimits.queuedMessageBytes else { break }
            ids.append(entry.id)
        }
        return ids
    }

    package mutating func setFlushing(_ isFlushing: Bool) { self.isFlushing = isFlushing }

    /// Begins to load bodies. Returns `false` if bodies are being loaded already.
    package mutating func beginLoading() -> Bool {
        defer { self.isLoading = true }
        return !self.isLoading
    }

    package mutating func endLoading() { self.isLoading = false }

    /// Stores a body that was loaded from disk.
    package mutating func loaded(_ id: MessageID, _ body: ByteBuffer) {
        guard let sequence = self.sequences[id], let entry = self.held[sequence], entry.body == nil else { return }
        self.held[sequence]?.body = body
        self.loadedBytes += entry.cost
    }

    /// Removes a message that the receiver has. Returns `false` if the message is not here.
    package mutating func acknowledged(_ id: MessageID) -> Bool {
        guard self.take(id) != nil else { return false }
        if self.state == .probing { self.state = .open }
        self.refusals = 0
        return true
    }

    /// Removes messages that the receiver has. Returns for each whether it was here.
    package mutating func acknowledged(_ ids: [MessageID]) -> [Bool] { ids.map { self.acknowledged($0) } }

    /// Whether the receiver may have a message; `nil` if the message is not here.
    package func mayHaveArrived(_ id: MessageID) -> Bool? { self.sequences[id].flatMap { self.held[$0]?.mayHaveArrived } }

    /// Removes a message that is discarded. Returns `false` if it is not here.
    package mutating func remove(_ id: MessageID) -> Bool {
        guard self.take(id) != nil else { return false }
        // The receiver's answer to this message no longer counts. The next message is tried instead.
        if self.state == .probing, self.inFlight == 0 { self.state = .refused }
        return true
    }

    private mutating func take(_ id: MessageID) -> Entry? {
        guard let sequence = self.sequences.removeValue(forKey: id), let entry = self.held.removeValue(forKey: sequence) else {
            return nil
        }
        if entry.isInFlight { self.landed(entry) }
        if entry.isQueued, entry.body != nil { self.loadedBytes -= entry.cost }
        return entry
    }

    private mutating func landed(_ entry: Entry) {
        self.inFlight -= 1
        self.bytes -= entry.cost
    }

    /// Handles a refusal by the receiver. A queued message stays, and all messages wait for the next retry. Any other message is removed.
    ///
    /// Returns the message, or `nil` if it is not here or was not in flight.
    package mutating func refused(_ id: MessageID) -> Entry? {
        guard let sequence = self.sequences[id], var entry = self.held[sequence], entry.isInFlight else { return nil }
        self.state = .refused
        guard entry.isQueued else { return self.take(id) }
        self.landed(entry)
        entry.isInFlight = false
        self.held[sequence] = entry
        if !self.isPaused { self.refusals += 1 }
        self.isPaused = true
        self.isStale = true
        return entry
    }

    /// Ends the pause before the next retry.
    package mutating func resume() { self.isPaused = false }

    /// Marks all unacknowledged messages to be sent again on the next connection.
    package mutating func connectionLost() {
        for sequence in self.held.keys.sorted() {
            self.held[sequence]?.isInFlight = false
            if self.held[sequence]?.isQueued == true { self.held[sequence]?.body = nil }
        }
        self.inFlight = 0
        self.bytes = 0
        self.loadedBytes = 0
        self.state = .open
        self.isPaused = false
        self.renew()
    }

    private mutating func renew() {
        self.isStale = false
        self.unsent = Deque(self.held.keys.sorted().filter { self.held[$0]?.isInFlight == false })
    }
}
