import DequeModule
import FoundationEssentials
import HeapModule

/// An item that has arrived and waits for its handler.
protocol HandledItem: Identifiable, Sendable where ID: Sendable {
    /// The arrival by the wall clock. The lane with the oldest first item goes first.
    var arrival: Date { get }
    /// The bytes that the item occupies.
    var weight: Int { get }
}

/// Decides which item is handled next, when a failed item is retried, and how a request to stop ends. Performs nothing: the caller executes
/// the actions and reports their outcomes.
///
/// Items wait in lanes. The items of one lane are handled in their order, one after the other, and a failed item holds back only the later
/// items of its lane. Several lanes are handled at a time. A lane of messages is their sender; every file has a lane of its own.
///
/// The daemon keeps the items. The queue holds only the next few of each lane, and fetches the following ones page by page. A lane with a
/// failed item is fetched again before the retry, because another program may have read the item meanwhile.
///
/// A request to stop proceeds in steps: the queue waits for the running handlers, terminates them, and at last leaves them.
struct HandlerQueue<Lane: Hashable & Sendable, Item: HandledItem> {
    typealias Instant = ContinuousClock.Instant

    /// The next step for the caller.
    enum Action {
        /// Fetch the items of a lane that follow a place, or its first ones. The outcome is reported with `fetched`.
        case fetch(Lane, after: String?)
        /// Handle an item. The outcome is reported with `finished`.
        case handle(Lane, Item)
        /// Terminate the running handlers. Their outcomes are reported as usual.
        case terminate
        /// Leave: no handler runs, or the running ones do not end.
        case end
    }

    private enum Work {
        /// In `ready` or in `unfetched`.
        case queued
        case fetching
        case handling
        case waiting
    }

    private struct LaneState {
        var items: Deque<Item> = []
        /// The place after which the daemon's page with further items begins; `nil` after the last page.
        var next: String?
        /// Whether items before `next` were left out or may be new, so that the lane must be fetched from its start.
        var hasNews = true
        var work = Work.queued
        /// The failed item that is retried, with the number of its failures.
        var failed: (id: Item.ID, count: Int)?
    }

    /// A lane in `ready` or `waiting`.
    private struct Turn<Key: Comparable>: Comparable {
        let key: Key
        /// Keeps the order of lanes with equal keys.
        let number: UInt64
        let lane: Lane

        static func < (lhs: Self, rhs: Self) -> Bool { (lhs.key, lhs.number) < (rhs.key, rhs.number) }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.number == rhs.number }
    }

    private enum Phase {
        case open
        case stopping(until: Instant)
        case terminating(until: Instant, isTold: Bool)
        case over
    }

    /// The most items in a page.
    static var pageLimit: Int { 100 }
    /// The most bytes of held items, apart from the first item of each lane.
    static var weightLimit: Int { 16 * 1024 * 1024 }
    /// The longest pause before a retry, unless the first pause is longer.
    static var retryLimit: Duration { .seconds(3600) }
    /// How long a request to stop waits for running handlers, before it terminates them and again before it leaves them.
    static var stopPatience: Duration { .seconds(10) }

    /// The most items that are handled at a time.
    let jobs: Int
    /// The pause before the first retry of an item. The pause doubles with each further failure.
    let retry: Duration

    private var lanes: [Lane: LaneState] = [:]
    /// Lanes whose first item is known and may be handled, by its arrival.
    private var ready: Heap<Turn<Date>> = []
    /// Lanes of which the daemon may have items and the queue has none.
    private var unfetched: Deque<Lane> = []
    /// Lanes with a failed item, by the time of its retry.
    private var waiting: Heap<Turn<Instant>> = []
    private var turns: UInt64 = 0
    private var phase = Phase.open
    private var handling = 0
    private var isFetching = false
    /// The bytes of all held items.
    private(set) var weight = 0

    init(jobs: Int, retry: Duration) {
        (self.jobs, self.retry) = (jobs, retry)
    }

    /// Whether all items are handled.
    var isIdle: Bool { self.lanes.isEmpty }

    // MARK: - Inputs

    /// Notes that the daemon may have new items of a lane.
    mutating func news(of lane: Lane) {
        guard self.lanes[lane] == nil else {
            self.lanes[lane]?.hasNews = true
            return
        }
        self.lanes[lane] = LaneState()
        self.unfetched.append(lane)
    }

    /// Adds the fetched items of a lane. `next` is the place after which further ones begin, if there are any.
    mutating func fetched(_ lane: Lane, _ items: [Item], next: String?) {
        guard var state = self.lanes[lane], state.work == .fetching else { return }
        self.isFetching = false
        state.next = next
        for item in items {
            guard state.items.isEmpty || self.weight + item.weight <= Self.weightLimit else {
                // The items that are left out are fetched once the earlier ones are handled.
                (state.next, state.hasNews) = (nil, true)
                break
            }
            state.items.append(item)
            self.weight += item.weight
        }
        self.enqueue(lane, state)
    }

    /// Notes that the handler of a lane has ended. A failed item is retried: returns the pause.
    @discardableResult
    mutating func finished(_ lane: Lane, isHandled: Bool, at now: Instant) -> Duration? {
        guard var state = self.lanes[lane], state.work == .handling, let item = state.items.popFirst() else { return nil }
        self.handling -= 1
        self.weight -= item.weight
        guard !isHandled else {
            state.failed = nil
            self.enqueue(lane, state)
            return nil
        }
        let count = state.failed?.id == item.id ? (state.failed?.count ?? 0) + 1 : 1
        let pause = self.pause(after: count)
        self.weight -= state.items.reduce(0) { $0 + $1.weight }
        self.lanes[lane] = LaneState(work: .waiting, failed: (item.id, count))
        self.waiting.insert(self.turn(lane, now + pause))
        return pause
    }

    /// Notes a request to stop. The second one terminates the running handlers at once, and the third one leaves them.
    mutating func stop(at now: Instant) {
        switch self.phase {
        case .open: self.phase = .stopping(until: now + Self.stopPatience)
        case .stopping: self.phase = .terminating(until: now + Self.stopPatience, isTold: false)
        case .terminating, .over: self.phase = .over
        }
    }

    // MARK: - Decisions

    /// Returns the next action, or `nil` if there is none before the next input or the time `wakeUp`.
    mutating func next(at now: Instant) -> Action? {
        switch self.phase {
        case .open: return self.work(at: now)
        case .stopping(let deadline) where self.handling > 0:
            guard now >= deadline else { return nil }
            self.phase = .terminating(until: now + Self.stopPatience, isTold: true)
            return .terminate
        case .terminating(let deadline, let isTold) where self.handling > 0 && now < deadline:
            guard !isTold else { return nil }
            self.phase = .terminating(until: deadline, isTold: true)
            return .terminate
        case .stopping, .terminating, .over:
            self.phase = .over
            return .end
        }
    }

    /// The time at which `next` has an action without a further input; valid after `next` has returned `nil`.
    var wakeUp: Instant? {
        switch self.phase {
        case .open: self.waiting.min?.key
        case .stopping(let deadline), .terminating(let deadline, _): deadline
        case .over: nil
        }
    }

    private mutating func work(at now: Instant) -> Action? {
        while let due = self.waiting.min, due.key <= now {
            self.waiting.removeMin()
            self.lanes[due.lane]?.work = .queued
            self.unfetched.append(due.lane)
        }
        guard self.handling < self.jobs, !self.isFetching else { return nil }
        // Before the first items of all lanes are known, the oldest one is not.
        if let lane = self.unfetched.popFirst() { return self.fetch(lane) }
        guard let lane = self.ready.popMin()?.lane, let item = self.lanes[lane]?.items.first else { return nil }
        self.lanes[lane]?.work = .handling
        self.handling += 1
        return .handle(lane, item)
    }

    private mutating func fetch(_ lane: Lane) -> Action {
        let place = self.lanes[lane]?.next
        if place == nil { self.lanes[lane]?.hasNews = false }
        self.lanes[lane]?.work = .fetching
        self.isFetching = true
        return .fetch(lane, after: place)
    }

    /// Queues a lane for its next item or page, or drops it if it has neither.
    private mutating func enqueue(_ lane: Lane, _ state: LaneState) {
        var state = state
        state.work = .queued
        if let item = state.items.first {
            self.ready.insert(self.turn(lane, item.arrival))
        } else if state.next != nil || state.hasNews {
            self.unfetched.append(lane)
        } else {
            self.lanes[lane] = nil
            return
        }
        self.lanes[lane] = state
    }

    private mutating func turn<Key: Comparable>(_ lane: Lane, _ key: Key) -> Turn<Key> {
        self.turns += 1
        return Turn(key: key, number: self.turns, lane: lane)
    }

    /// The pause before the retry after this number of failures.
    private func pause(after failures: Int) -> Duration {
        var pause = self.retry
        for _ in 1..<max(failures, 1) where pause < Self.retryLimit { pause = min(pause * 2, Self.retryLimit) }
        return pause
    }
}
