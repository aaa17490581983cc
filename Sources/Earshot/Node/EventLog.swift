import DequeModule
import Synchronization

package import FoundationEssentials

/// Everything that happened, numbered without holes, for any number of readers at their own pace.
///
/// Readers pull: each holds only its position in one bounded backlog, so a slow one costs nothing and gets a `gap` when what
/// it has not read yet is gone. Written by the node, read by the control API's event streams.
public final class EventLog: Sendable {
    private struct Entry {
        let event: NodeEvent
        let cost: Int
        /// Only for those who were reading when it happened.
        let isLive: Bool
    }

    private struct State {
        var backlog: Deque<Entry> = []
        var bytes = 0
        var lastSequence: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var isFinished = false
        /// Subscriptions that somebody holds.
        var readers = 0
    }

    /// Counted while a subscription, or a copy of it, is held.
    fileprivate final class Presence: Sendable {
        private let log: EventLog

        init(_ log: EventLog) {
            self.log = log
            log.state.withLock { $0.readers += 1 }
        }

        deinit { self.log.state.withLock { $0.readers -= 1 } }
    }

    /// Names this run of the node: sequence numbers of different epochs do not compare.
    public let epoch: String
    private let state = Mutex(State())

    package init(epoch: String) {
        self.epoch = epoch
    }

    /// Adds an event; one that `isLive` is dropped where nobody reads, and a gap for those who come later.
    package func append(_ kind: NodeEvent.Kind, at time: Date, cost: Int = 512, isLive: Bool = false) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard !isLive || state.readers > 0 else { return [] }
            state.lastSequence += 1
            let event = NodeEvent(sequence: state.lastSequence, time: time, kind: kind)
            state.backlog.append(Entry(event: event, cost: cost, isLive: isLive))
            state.bytes += cost
            while state.backlog.count > EarshotLimits.eventBacklog
                || (state.bytes > EarshotLimits.eventBacklogBytes && state.backlog.count > 1)
            {
                guard let oldest = state.backlog.popFirst() else { break }
                state.bytes -= oldest.cost
            }
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Ends every subscription after what it has still to read.
    package func finish() {
        self.state.withLock { $0.isFinished = true }
        self.wakeReaders()
    }

    /// Has every reader that waits in ``Subscription/step()`` come back, although nothing has happened.
    public func wakeReaders() {
        let waiters = self.state.withLock { state in
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The events after the one numbered `since`, or from now on where that is `nil` or of another epoch.
    ///
    /// A `since` of another epoch means that the reader missed an unknown number: it gets a gap over all of this run's events. So does one
    /// that has not been reached in this run: it can only be of another.
    public func subscribe(since: UInt64? = nil, epoch: String? = nil) -> Subscription {
        let presence = Presence(self)
        let last = self.state.withLock { $0.lastSequence }
        let isOfAnotherRun = epoch.map { $0 != self.epoch } ?? false
        guard !isOfAnotherRun, since.map({ $0 <= last }) ?? true else {
            return Subscription(log: self, presence: presence, position: last, start: last, pendingGap: last > 0 ? 1...last : nil)
        }
        return Subscription(log: self, presence: presence, position: since ?? last, start: last, pendingGap: nil)
    }

    /// One reader's events, in order.
    public struct Subscription: AsyncSequence, AsyncIteratorProtocol, Sendable {
        private let log: EventLog
        private let presence: Presence
        /// The last sequence number that was read.
        private var position: UInt64
        /// The last sequence number before it began.
        private let start: UInt64
        private var pendingGap: ClosedRange<UInt64>?

        fileprivate init(log: EventLog, presence: Presence, position: UInt64, start: UInt64, pendingGap: ClosedRange<UInt64>?) {
            self.log = log
            self.presence = presence
            self.position = position
            self.start = start
            self.pendingGap = pendingGap
        }

        /// The subscription is its own iterator.
        public func makeAsyncIterator() -> Subscription { self }

        /// What a reader finds when it looks.
        public enum Step: Sendable {
            /// The next event.
            case event(NodeEvent)
            /// Nothing has happened; ``EventLog/wakeReaders()`` was called.
            case idle
            /// The log has ended, or the reader's task is cancelled.
            case ended
        }

        /// The next event, once there is one; `nil` when the log has ended or the reader's task is cancelled.
        public mutating func next() async -> NodeEvent? {
            while true {
                switch await self.step() {
                case .event(let event): return event
                case .idle: continue
                case .ended: return nil
                }
            }
        }

        /// Waits until there is an event, or somebody wakes the readers.
        public mutating func step() async -> Step {
            if let gap = self.pendingGap {
                self.pendingGap = nil
                return .event(NodeEvent(sequence: gap.upperBound, time: Date(), kind: .gap(gap)))
            }
            for isFirst in [true, false] where !Task.isCancelled {
                switch self.log.read(after: self.position, start: self.start) {
                case .event(let event):
                    self.position = event.sequence
                    return .event(event)
                case .finished:
                    return .ended
                case .nothingYet where isFirst:
                    await self.log.wait(after: self.position)
                case .nothingYet:
                    return .idle
                }
            }
            return .ended
        }
    }

    private enum Reading {
        case event(NodeEvent)
        case nothingYet
        case finished
    }

    private func read(after position: UInt64, start: UInt64) -> Reading {
        self.state.withLock { state in
            guard position < state.lastSequence, let oldest = state.backlog.first?.event.sequence else {
                return state.isFinished ? .finished : .nothingYet
            }
            if position + 1 < oldest {
                let missed = (position + 1)...(oldest - 1)
                return .event(NodeEvent(sequence: missed.upperBound, time: Date(), kind: .gap(missed)))
            }
            var index = Int(position + 1 - oldest)
            let first = state.backlog[index]
            guard first.isLive, first.event.sequence <= start else { return .event(first.event) }
            // It was for those who were there.
            while index + 1 < state.backlog.count, state.backlog[index + 1].isLive, state.backlog[index + 1].event.sequence <= start {
                index += 1
            }
            let last = state.backlog[index].event.sequence
            return .event(NodeEvent(sequence: last, time: Date(), kind: .gap(first.event.sequence...last)))
        }
    }

    private func wait(after position: UInt64) async {
        let id = self.state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = self.state.withLock { state in
                    if state.lastSequence > position || state.isFinished || Task.isCancelled { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
    }
}
