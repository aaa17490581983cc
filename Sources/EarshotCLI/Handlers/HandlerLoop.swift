import EarshotClient
import EarshotSafety

/// The source of the items that a command handles, and its handling of one of them.
protocol HandlerSource: Sendable {
    associatedtype Lane: Hashable & Sendable
    associatedtype Item: HandledItem

    /// Reports lanes with new items, first all that have any, until the task is cancelled.
    func watch(_ tell: @Sendable (Lane) -> Void) async throws
    /// Returns items of a lane after a place, or the first ones, and the place of further ones.
    func fetch(_ lane: Lane, after place: String?) async throws -> (items: [Item], next: String?)
    /// Handles an item.
    func handle(_ item: Item) async throws -> HandlerOutcome
    /// Terminates the running commands.
    func terminate()
    /// Waits no longer for the running commands.
    func leave()
}

/// The outcome of handling an item.
enum HandlerOutcome: Hashable, Sendable {
    case handled
    /// To be retried; with a sentence for the user.
    case failed(String)
}

/// Executes the decisions of a `HandlerQueue`: fetches, handles and retries the items of a source until a signal arrives.
struct HandlerLoop<Source: HandlerSource>: Sendable {
    let source: Source
    let jobs: Int
    let retry: Duration

    private enum Input: Sendable {
        case news(Source.Lane)
        case fetched(Source.Lane, [Source.Item], next: String?)
        case finished(Source.Lane, HandlerOutcome)
        case failed(any Error)
        case signal(CInt)
        case wakeUp
    }

    private typealias Queue = HandlerQueue<Source.Lane, Source.Item>

    /// Runs until a signal ends the process, or until an error occurs that no retry mends.
    func run() async throws {
        let signals = Interrupts.follow()
        defer { Interrupts.unfollow() }
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let source = self.source
        var queue = Queue(jobs: self.jobs, retry: self.retry)
        var (number, failure): (CInt?, (any Error)?)
        await withDiscardingTaskGroup { group in
            group.addTask { for await number in signals { feed.yield(.signal(number)) } }
            group.addTask {
                await Self.report(to: feed) { try await source.watch { feed.yield(.news($0)) } }
            }
            var alarm: ContinuousClock.Instant?
            for await input in inputs {
                switch input {
                case .news(let lane): queue.news(of: lane)
                case .fetched(let lane, let items, let next): queue.fetched(lane, items, next: next)
                case .finished(let lane, .handled): queue.finished(lane, isHandled: true, at: .now)
                case .finished(let lane, .failed(let words)):
                    let pause = queue.finished(lane, isHandled: false, at: .now)
                    Self.tell(words, retryAfter: number == nil && failure == nil ? pause : nil)
                case .failed(let error):
                    // A signal that comes first determines how the process ends.
                    if number == nil, failure == nil {
                        failure = error
                        queue.stop(at: .now)
                    }
                case .signal(let received):
                    number = number ?? received
                    queue.stop(at: .now)
                case .wakeUp: alarm = nil
                }
                guard self.act(on: &queue, in: &group, feed) else { break }
                if let time = queue.wakeUp, alarm.map({ time < $0 }) ?? true {
                    alarm = time
                    group.addTask {
                        try? await Task.sleep(until: time, clock: .continuous)
                        feed.yield(.wakeUp)
                    }
                }
            }
            source.leave()
            group.cancelAll()
        }
        if let failure { throw failure }
        if let number { Interrupts.end(by: number) }
    }

    /// Executes the pending actions. Returns `false` after the last one.
    private func act(
        on queue: inout Queue, in group: inout DiscardingTaskGroup, _ feed: AsyncStream<Input>.Continuation
    ) -> Bool {
        let source = self.source
        while let action = queue.next(at: .now) {
            switch action {
            case .fetch(let lane, let place):
                group.addTask {
                    await Self.report(to: feed) {
                        let (items, next) = try await source.fetch(lane, after: place)
                        feed.yield(.fetched(lane, items, next: next))
                    }
                }
            case .handle(let lane, let item):
                group.addTask {
                    await Self.report(to: feed) {
                        var outcome = HandlerOutcome.failed("")
                        defer { feed.yield(.finished(lane, outcome)) }
                        outcome = try await source.handle(item)
                    }
                }
            case .terminate: source.terminate()
            case .end: return false
            }
        }
        return true
    }

    private static func report(to feed: AsyncStream<Input>.Continuation, _ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            feed.yield(.failed(error))
        }
    }

    private static func tell(_ words: String, retryAfter pause: Duration?) {
        guard !words.isEmpty else { return }
        let next = pause.map { "trying again in \(Words.seconds($0 / .seconds(1)))" } ?? "left for the next start"
        Standard.note("\(words); \(next)")
    }
}

/// Calls the daemon, and again after growing pauses while it is away.
func whileAway<Value>(_ call: () async throws -> Value) async throws -> Value {
    var backOff = BackOff()
    while true {
        do {
            return try await call()
        } catch let error as ControlError where error.isOutage {
            try await Task.sleep(for: backOff.step())
        }
    }
}

/// Tells the daemon that an item is handled, however long that takes: otherwise the item would be handled again. `subject` names the item,
/// escaped.
func untilNoted(_ subject: String, _ tell: () async throws -> Void) async throws {
    var (backOff, isReported) = (BackOff(), false)
    while true {
        do {
            return try await tell()
        } catch let error as ControlError where error != .cancelled {
            if !error.isOutage, !isReported {
                Standard.note("\(subject) is handled, but the daemon cannot note that: \(error.description.escapedOnceMore); trying again")
                isReported = true
            }
        } catch {}
        do {
            try await Task.sleep(for: backOff.step())
        } catch {
            Standard.note("\(subject) was handled, but the daemon has not noted that; it will be handled again")
            throw error
        }
    }
}
