import DequeModule
package import EarshotWire
package import NIOCore

/// The reliable messages that one peer has not acknowledged yet, in the sender's order. A value without a clock, a disk or a socket.
///
/// A message goes out once a connection; when the connection is lost all that is unacknowledged goes out again on the next, in
/// the same order and with the same sequence, and the receiver drops the repeats. What is on its way is bounded; the rest waits, the
/// queued ones with their bodies on disk.
///
/// A receiver that refuses a message refuses all that follows until it is told that we know (`resumed`), so that nothing overtakes.
/// Messages that a caller waits for fail then; queued ones stay and are tried again one by one, until one is taken.
package struct Outbox: Sendable {
    package struct Entry: Sendable {
        package let id: MessageID
        package let sequence: UInt64
        package let contentType: String
        /// Of the body, in bytes.
        package let size: Int
        /// `nil` while it is on disk alone.
        package var body: ByteBuffer?
        package let sentAtMilliseconds: Int64
        /// Whether it waits on disk, until its deadline.
        package let isQueued: Bool
        package fileprivate(set) var isInFlight = false
        /// Whether a connection was given it, now or earlier: from then on the receiver may have it, whatever becomes of the connection.
        package fileprivate(set) var mayHaveArrived: Bool

        package init(
            id: MessageID, sequence: UInt64, contentType: String, size: Int, body: ByteBuffer?, sentAtMilliseconds: Int64, isQueued: Bool,
            mayHaveArrived: Bool = false
        ) {
            self.id = id
            self.sequence = sequence
            self.contentType = contentType
            self.size = size
            self.body = body
            self.sentAtMilliseconds = sentAtMilliseconds
            self.isQueued = isQueued
            self.mayHaveArrived = mayHaveArrived
        }

        package var cost: Int { self.size + EarshotLimits.messageOverhead }
    }

    /// What is to go out now.
    package struct Batch: Sendable {
        /// In order, each with its body.
        package fileprivate(set) var entries: [Entry] = []
        /// Whether the first one is the first after a refusal.
        package fileprivate(set) var isResumed = false
        /// The next ones, whose bodies are to be read first.
        package fileprivate(set) var missing: [MessageID] = []
    }

    private enum State {
        /// The receiver takes what comes.
        case open
        /// It has refused something, and refuses what is on its way. Nothing goes out before all that is answered.
        case refused
        /// The first message after a refusal is on its way, alone.
        case probing
    }

    /// By their sequences.
    private var held: [UInt64: Entry] = [:]
    private var sequences: [MessageID: UInt64] = [:]
    /// What has not gone out on this connection, in order; may name what was removed since.
    private var unsent: Deque<UInt64> = []
    /// Whether something has come back that is not in `unsent` yet.
    private var isStale = false
    private var state = State.open
    private var inFlight = 0
    /// Bytes that are on their way.
    package private(set) var bytes = 0
    /// Bytes of queued messages that are in memory.
    package private(set) var loadedBytes = 0
    /// Whether a queued message was refused and waits for its next try.
    package private(set) var isPaused = false
    /// How often that has happened since the receiver last took something.
    package private(set) var refusals = 0
    /// Whether a flush is on its way already.
    package var isFlushing = false
    /// Whether bodies are being read.
    package var isLoading = false

    package init() {}

    package var count: Int { self.held.count }
    package var isEmpty: Bool { self.held.isEmpty }
    package var hasQueued: Bool {
        self.held.values.contains(where: \.isQueued)  // order does not show: one is as good as another
    }
    package var hasRoom: Bool { self.bytes < EarshotLimits.queuedMessageBytes }
    /// In order.
    package var ids: [MessageID] { self.ids { _ in true } }
    /// Those that a caller waits for, in order.
    package var unqueuedIDs: [MessageID] { self.ids { !$0.isQueued } }
    /// Those that a caller waits for and that have not gone out, in order.
    package var waitingIDs: [MessageID] { self.ids { !$0.isQueued && !$0.isInFlight } }

    private func ids(_ isWanted: (Entry) -> Bool) -> [MessageID] {
        self.held.keys.sorted().compactMap { sequence in self.held[sequence].flatMap { isWanted($0) ? $0.id : nil } }
    }

    /// Appends messages; their sequences rise, above all earlier ones. The body of a queued one is kept in memory only where there is room.
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

    /// What is to go out now, in order; each is given once a connection.
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

    /// A body was read from disk.
    package mutating func loaded(_ id: MessageID, _ body: ByteBuffer) {
        guard let sequence = self.sequences[id], let entry = self.held[sequence], entry.body == nil else { return }
        self.held[sequence]?.body = body
        self.loadedBytes += entry.cost
    }

    /// The receiver has it; `false` where it is not there.
    package mutating func acknowledged(_ id: MessageID) -> Bool {
        guard self.take(id) != nil else { return false }
        if self.state == .probing { self.state = .open }
        self.refusals = 0
        return true
    }

    /// The receiver has these; for each whether it is there.
    package mutating func acknowledged(_ ids: [MessageID]) -> [Bool] { ids.map { self.acknowledged($0) } }

    /// Whether the receiver may have a message; `nil` where it is not here.
    package func mayHaveArrived(_ id: MessageID) -> Bool? { self.sequences[id].flatMap { self.held[$0]?.mayHaveArrived } }

    /// Takes out a message that is given up; `false` where it is not there.
    package mutating func remove(_ id: MessageID) -> Bool {
        guard self.take(id) != nil else { return false }
        // Its receiver's answer to it does not count any more: the next one is tried in its place.
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

    /// The receiver has not taken it. A queued one stays, and all wait for the next try; another one is taken out.
    ///
    /// Gives the entry, or `nil` where it is not there or was not on its way.
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

    /// It is time for the next try.
    package mutating func resume() { self.isPaused = false }

    /// Everything unacknowledged is to go out again on the next connection.
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
