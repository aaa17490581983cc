import DequeModule
import EarshotWaiting
import Synchronization

package import FoundationEssentials

/// The log of all events, numbered without gaps, for any number of independent readers.
///
/// Readers pull: each keeps only its position in one bounded backlog. A slow reader therefore costs nothing. If the log has already
/// evicted events that a reader has not read, the reader gets a `gap`. The node writes the log, and the control API's event streams read
/// it.
public final class EventLog: Sendable {
    /// An event of the program that runs the node, such as the daemon. It is numbered together with the node's events, and only
    /// ``Subscription/step()`` returns it.
    package struct ProgramEvent: Sendable {
        package let sequence: UInt64
        package let time: Date
        package let content: any Sendable
    }

    private struct Entry {
        enum Content {
            case node(NodeEvent)
            case program(ProgramEvent)
        }

        let content: Content
        let cost: Int
        /// Whether only the readers of that moment receive the event.
        let isLive: Bool

        var sequence: UInt64 {
            switch self.content {
            case .node(let event): event.sequence
            case .program(let event): event.sequence
            }
        }
    }

    private struct State {
        var backlog: Deque<Entry> = []
        var bytes = 0
        var lastSequence: UInt64 = 0
        var isFinished = false
        /// The number of calls of ``EventLog/wakeReaders()``.
        var wakes: UInt64 = 0
        /// The number of current subscriptions.
        var readers = 0

        mutating func append(_ entry: Entry) {
            self.backlog.append(entry)
            self.bytes += entry.cost
            while self.backlog.count > EarshotLimits.eventBacklog
                || (self.bytes > EarshotLimits.eventBacklogBytes && self.backlog.count > 1)
            {
                guard let oldest = self.backlog.popFirst() else { break }
                self.bytes -= oldest.cost
            }
        }
    }

    /// Keeps its subscription counted, together with all copies, while any of them exists.
    fileprivate final class Presence: Sendable {
        private let log: EventLog
        private let ended = Atomic(false)

        /// Whether ``Subscription/end()`` was called.
        var hasEnded: Bool { self.ended.load(ordering: .acquiring) }

        init(_ log: EventLog) {
            self.log = log
            log.state.withLock { $0.readers += 1 }
        }

        func end() { self.ended.store(true, ordering: .releasing) }

        deinit { self.log.state.withLock { $0.readers -= 1 } }
    }

    /// An identifier of this run of the node. Sequence numbers of different epochs cannot be compared.
    public let epoch: String
    private let state = Mutex(State())
    /// Notifies waiting readers of events, of ends, and of calls of ``wakeReaders()``.
    private let changes = Changes()

    package init(epoch: String) {
        self.epoch = epoch
    }

    /// Adds an event. If `isLive`, the log drops the event when it has no reader, and later readers see a gap.
    package func append(_ kind: NodeEvent.Kind, at time: Date, cost: Int = 512, isLive: Bool = false) {
        self.append(CollectionOfOne(kind), at: time, cost: { _ in cost }, isLive: isLive)
    }

    /// Adds events that happened together, and wakes the readers once for all of them.
    package func append(
        _ kinds: some Collection<NodeEvent.Kind>, at time: Date, cost: (NodeEvent.Kind) -> Int, isLive: Bool = false
    ) {
        // Computed once, because there may be thousands of events.
        let time = WallTime(time).date
        self.add(kinds, isLive: isLive) { kind, sequence in
            Entry(content: .node(NodeEvent(sequence: sequence, at: time, kind)), cost: cost(kind), isLive: isLive)
        }
    }

    /// Adds an event of the program that runs the node.
    package func append(program content: any Sendable, at time: Date, cost: Int = 512) {
        let time = WallTime(time).date
        self.add(CollectionOfOne(content), isLive: false) { content, sequence in
            Entry(content: .program(ProgramEvent(sequence: sequence, time: time, content: content)), cost: cost, isLive: false)
        }
    }

    private func add<Values: Collection>(_ values: Values, isLive: Bool, _ entry: (Values.Element, _ sequence: UInt64) -> Entry) {
        let isAdded = self.state.withLock { state in
            guard !isLive || state.readers > 0 else { return false }
            for value in values {
                state.lastSequence += 1
                state.append(entry(value, state.lastSequence))
            }
            return true
        }
        if isAdded { self.changes.tell() }
    }

    /// Ends every subscription after its remaining events.
    package func finish() {
        self.state.withLock { $0.isFinished = true }
        self.changes.tell()
    }

    /// Wakes every reader that waits in ``Subscription/step()``, although there is no new event.
    package func wakeReaders() {
        self.state.withLock { $0.wakes += 1 }
        self.changes.tell()
    }

    /// The number of current subscriptions.
    var readers: Int { self.state.withLock { $0.readers } }

    /// Returns the events after number `since`. If `since` is `nil`, the subscription starts with the next event.
    ///
    /// If `since` belongs to another epoch, the reader has missed an unknown number of events. The reader then gets a gap over all events
    /// of this run, from 0 to 0 if there are none yet. The same applies if `since` exceeds the last number of this run, because it must
    /// then belong to another.
    public func subscribe(since: UInt64? = nil, epoch: String? = nil) -> Subscription {
        let presence = Presence(self)
        let last = self.state.withLock { $0.lastSequence }
        let isOfAnotherRun = epoch.map { $0 != self.epoch } ?? false
        guard !isOfAnotherRun, since.map({ $0 <= last }) ?? true else {
            return Subscription(log: self, presence: presence, position: last, start: last, pendingGap: min(1, last)...last)
        }
        return Subscription(log: self, presence: presence, position: since ?? last, start: last, pendingGap: nil)
    }

    /// A reader's events, in order.
    public struct Subscription: AsyncSequence, AsyncIteratorProtocol, Sendable {
        private let log: EventLog
        private let presence: Presence
        /// The last sequence number that the reader has read.
        private var position: UInt64
        /// The last sequence number before the subscription began.
        private let start: UInt64
        private var pendingGap: ClosedRange<UInt64>?

        fileprivate init(log: EventLog, presence: Presence, position: UInt64, start: UInt64, pendingGap: ClosedRange<UInt64>?) {
            self.log = log
            self.presence = presence
            self.position = position
            self.start = start
            self.pendingGap = pendingGap
        }

        /// The last event before the subscription began; 0 if there was none.
        package var beginning: UInt64 { self.start }

        /// The subscription is its own iterator.
        public func makeAsyncIterator() -> Subscription { self }

        /// The result of one read.
        package enum Step: Sendable {
            /// The next event.
            case event(NodeEvent)
            /// The next event, of the program that runs the node.
            case program(ProgramEvent)
            /// Nothing has happened; ``EventLog/wakeReaders()`` was called.
            case idle
            /// The log or the subscription has ended, or the reader's task is cancelled.
            case ended
        }

        /// Ends this subscription and every copy of it. A pending read returns immediately, and so does every later one.
        ///
        /// Used by a caller that learns elsewhere that nobody reads any more, such as a server whose client has disconnected.
        public func end() {
            self.presence.end()
            self.log.changes.tell()
        }

        /// Waits for the next event and returns it. Returns `nil` if the log has ended or the reader's task is cancelled.
        public mutating func next() async -> NodeEvent? {
            while true {
                switch await self.step() {
                case .event(let event): return event
                case .program, .idle: continue
                case .ended: return nil
                }
            }
        }

        /// Waits for the next event, and returns it with those that follow it, at most `limit` in all. Returns an empty array if the log
        /// has ended or the reader's task is cancelled.
        public mutating func next(upTo limit: Int) async -> [NodeEvent] {
            guard let first = await self.next() else { return [] }
            return [first] + self.more(upTo: limit - 1)
        }

        /// Returns the events that are available without waiting, at most `limit`.
        public mutating func more(upTo limit: Int) -> [NodeEvent] {
            guard self.pendingGap == nil else { return [] }
            let events = self.log.more(after: self.position, start: self.start, limit: limit)
            if let last = events.last { self.position = last.sequence }
            return events
        }

        /// Waits until there is an event or a call of ``EventLog/wakeReaders()``.
        package mutating func step() async -> Step {
            if let gap = self.pendingGap {
                self.pendingGap = nil
                return .event(NodeEvent(sequence: gap.upperBound, time: Date(), kind: .gap(gap)))
            }
            var wakes: UInt64?
            var seen: UInt64
            repeat {
                seen = self.log.changes.count
                guard !Task.isCancelled, !self.presence.hasEnded else { return .ended }
                switch self.log.read(after: self.position, start: self.start) {
                case .found(let step, let sequence):
                    self.position = sequence
                    return step
                case .finished: return .ended
                case .nothingYet(let now):
                    guard now == wakes ?? now else { return .idle }
                    wakes = now
                }
            } while await self.log.changes.wait(after: seen)
            return .ended
        }
    }

    private enum Reading {
        case found(Subscription.Step, sequence: UInt64)
        /// There is no event, after this number of calls of ``wakeReaders()``.
        case nothingYet(wakes: UInt64)
        case finished
    }

    private func read(after position: UInt64, start: UInt64) -> Reading {
        self.state.withLock { state in
            guard position < state.lastSequence, let oldest = state.backlog.first?.sequence else {
                return state.isFinished ? .finished : .nothingYet(wakes: state.wakes)
            }
            if position + 1 < oldest {
                return Self.gap((position + 1)...(oldest - 1))
            }
            var index = Int(position + 1 - oldest)
            let first = state.backlog[index]
            guard first.isLive, first.sequence <= start else {
                switch first.content {
                case .node(let event): return .found(.event(event), sequence: event.sequence)
                case .program(let event): return .found(.program(event), sequence: event.sequence)
                }
            }
            // Skips live events from before the subscription: only the readers of that moment receive them.
            while index + 1 < state.backlog.count, state.backlog[index + 1].isLive, state.backlog[index + 1].sequence <= start {
                index += 1
            }
            return Self.gap(first.sequence...state.backlog[index].sequence)
        }
    }

    private static func gap(_ missed: ClosedRange<UInt64>) -> Reading {
        let event = NodeEvent(sequence: missed.upperBound, time: Date(), kind: .gap(missed))
        return .found(.event(event), sequence: event.sequence)
    }

    /// Returns consecutive events of the node without a gap. `read` handles all other cases.
    private func more(after position: UInt64, start: UInt64, limit: Int) -> [NodeEvent] {
        self.state.withLock { state in
            guard limit > 0, let oldest = state.backlog.first?.sequence, position + 1 >= oldest, position < state.lastSequence else {
                return []
            }
            let first = Int(position + 1 - oldest)
            let end = min(first + limit, state.backlog.count)
            var events: [NodeEvent] = []
            events.reserveCapacity(max(0, end - first))
            for index in first..<max(first, end) {
                let entry = state.backlog[index]
                guard !entry.isLive || entry.sequence > start, case .node(let event) = entry.content else { break }
                events.append(event)
            }
            return events
        }
    }
}
