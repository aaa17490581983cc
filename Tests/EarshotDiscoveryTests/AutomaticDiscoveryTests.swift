import Earshot
import Logging
import Synchronization
import Testing

@testable import EarshotDiscovery

/// A clock that only a test advances.
private final class ManualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration
        func advanced(by duration: Duration) -> Instant { Instant(offset: self.offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - self.offset }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.offset < rhs.offset }
    }
    private struct State {
        var now = Duration.zero
        var sleepers: [(deadline: Duration, continuation: AsyncStream<Never>.Continuation)] = []
    }
    private let state = Mutex(State())

    var now: Instant { self.state.withLock { Instant(offset: $0.now) } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let (never, continuation) = AsyncStream<Never>.makeStream()
        self.state.withLock { state in
            if deadline.offset <= state.now {
                continuation.finish()
            } else {
                state.sleepers.append((deadline.offset, continuation))
            }
        }
        for await _ in never {}
        try Task.checkCancellation()
    }

    func advance(to now: Duration) {
        let due = self.state.withLock { state in
            state.now = now
            defer { state.sleepers.removeAll { $0.deadline <= now } }
            return state.sleepers.filter { $0.deadline <= now }
        }
        for sleeper in due { sleeper.continuation.finish() }
    }
}

/// A backend that only says when it is started and stopped, and reports what a test tells it to.
private final class FakeBackend: Sendable {
    struct Run: Sendable {
        let plan: DiscoveryPlan
        let report: BackendRunner.Report
    }
    let runs: AsyncStream<Run>
    private let running: AsyncStream<Run>.Continuation
    private let count = Mutex(0)

    init() { (self.runs, self.running) = AsyncStream.makeStream() }

    var isRunning: Bool { self.count.withLock { $0 > 0 } }

    var runner: BackendRunner {
        BackendRunner { plan, report in
            self.count.withLock { $0 += 1 }
            self.running.yield(Run(plan: plan, report: report))
            let (never, continuation) = AsyncStream<Never>.makeStream()
            for await _ in never {}
            continuation.finish()
            self.count.withLock { $0 -= 1 }
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct AutomaticDiscoveryTests {
    private let avahi = FakeBackend()
    private let embedded = FakeBackend()
    private let clock = ManualClock()
    private let bob = Sighting(
        key: Sighting.Key(instanceName: "bob", interfaceIndex: 1, overIPv6: false), interfaceName: "lo", isLoopback: true,
        addresses: ["127.0.0.1"], port: 1, txt: [])

    private func discovery(avahiIsConceivable: Bool) -> AutomaticDiscovery {
        AutomaticDiscovery(
            avahi: self.avahi.runner, embedded: self.embedded.runner, avahiIsConceivable: { avahiIsConceivable }, clock: self.clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test func fallsBackAfterTenSecondsAndReturns() async throws {
        let discovery = self.discovery(avahiIsConceivable: true)
        let whole = DiscoveryPlan(advertisement: nil, serviceType: "earshot")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await discovery.run(advertising: nil, browsing: "earshot") }
            var avahiRuns = self.avahi.runs.makeAsyncIterator()
            var embeddedRuns = self.embedded.runs.makeAsyncIterator()
            var events = discovery.events.makeAsyncIterator()

            let first = try #require(await avahiRuns.next())
            #expect(first.plan == whole)
            let missing = DiscoveryStatus(backend: .avahi, state: .unavailable, error: "no avahi")
            _ = first.report(.event(.status(missing)))
            #expect(await events.next() == .status(missing))
            #expect(!self.embedded.isRunning)

            self.clock.advance(to: .seconds(10))
            let fallback = try #require(await embeddedRuns.next())
            #expect(fallback.plan == whole)
            #expect(await events.next() == .reset(.avahi))
            let probe = try #require(await avahiRuns.next())
            #expect(probe.plan == .probe)
            _ = probe.report(.event(.status(missing)))
            _ = fallback.report(.event(.status(DiscoveryStatus(backend: .embedded, state: .running))))
            #expect(await events.next() == .status(DiscoveryStatus(backend: .embedded, state: .running)))

            _ = probe.report(.reachable(true))
            let returned = try #require(await avahiRuns.next())
            #expect(returned.plan == whole)
            #expect(!self.embedded.isRunning)
            _ = returned.report(.event(.found(.avahi, self.bob)))
            #expect(await events.next() == .found(.avahi, self.bob))
            // The embedded responder's sightings are discarded only after Avahi has reported its own.
            self.clock.advance(to: .seconds(15))
            #expect(await events.next() == .reset(.embedded))
            group.cancelAll()
        }
        #expect(!self.avahi.isRunning)
        #expect(!self.embedded.isRunning)
    }

    /// An Avahi that hangs counts as unreachable from its last answer on. It cannot report that its sightings are lost.
    @Test func anAvahiThatHangsIsLeftTenSecondsAfterItsLastAnswer() async throws {
        let discovery = self.discovery(avahiIsConceivable: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await discovery.run(advertising: nil, browsing: "earshot") }
            var avahiRuns = self.avahi.runs.makeAsyncIterator()
            var embeddedRuns = self.embedded.runs.makeAsyncIterator()
            var events = discovery.events.makeAsyncIterator()

            let first = try #require(await avahiRuns.next())
            let running = DiscoveryStatus(backend: .avahi, state: .running)
            _ = first.report(.reachable(true))
            _ = first.report(.event(.status(running)))
            #expect(await events.next() == .status(running))
            _ = first.report(.event(.found(.avahi, self.bob)))
            #expect(await events.next() == .found(.avahi, self.bob))
            self.clock.advance(to: .seconds(100))
            _ = first.report(.unanswered(for: .seconds(6)))
            let hung = DiscoveryStatus(backend: .avahi, state: .unavailable, error: "hangs")
            _ = first.report(.event(.status(hung)))
            #expect(await events.next() == .status(hung))
            self.clock.advance(to: .milliseconds(103_999))
            // After a later report has been handled, every earlier deadline has been handled too.
            let still = DiscoveryStatus(backend: .avahi, state: .unavailable, error: "still hangs")
            _ = first.report(.event(.status(still)))
            #expect(await events.next() == .status(still))
            #expect(!self.embedded.isRunning)
            self.clock.advance(to: .seconds(104))
            let fallback = try #require(await embeddedRuns.next())
            _ = try #require(await avahiRuns.next())
            _ = fallback.report(.event(.found(.embedded, self.bob)))
            #expect(await events.next() == .reset(.avahi))
            #expect(await events.next() == .found(.embedded, self.bob))
            group.cancelAll()
        }
    }

    /// Avahi answers again before its deadline.
    @Test func anAvahiThatAnswersAgainIsKept() async throws {
        let discovery = self.discovery(avahiIsConceivable: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await discovery.run(advertising: nil, browsing: "earshot") }
            var avahiRuns = self.avahi.runs.makeAsyncIterator()
            var events = discovery.events.makeAsyncIterator()
            let first = try #require(await avahiRuns.next())
            _ = first.report(.reachable(true))
            _ = first.report(.unanswered(for: .seconds(6)))
            _ = first.report(.reachable(true))
            let running = DiscoveryStatus(backend: .avahi, state: .running)
            _ = first.report(.event(.status(running)))
            #expect(await events.next() == .status(running))
            self.clock.advance(to: .seconds(100))
            _ = first.report(.event(.status(running)))
            #expect(await events.next() == .status(running))
            #expect(!self.embedded.isRunning)
            group.cancelAll()
        }
    }

    @Test func startsEmbeddedAtOnceWithoutABus() async throws {
        let discovery = self.discovery(avahiIsConceivable: false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await discovery.run(advertising: nil, browsing: "earshot") }
            var runs = self.embedded.runs.makeAsyncIterator()
            let run = try #require(await runs.next())
            #expect(run.plan.serviceType == "earshot")
            group.cancelAll()
        }
    }

    @Test func withNothingToDoItIsOffAndEndsWithItsTask() async {
        let discovery = self.discovery(avahiIsConceivable: true)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await discovery.run(advertising: nil, browsing: nil) }
            var events = discovery.events.makeAsyncIterator()
            #expect(await events.next() == .status(DiscoveryStatus(backend: .none, state: .off)))
            group.cancelAll()
            #expect(await events.next() == nil)
        }
    }

    @Test func theChoicesAreSpelledAsTheSettingsSpellThem() {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        #expect(DiscoveryBackend.allCases.map(\.rawValue) == ["auto", "avahi", "embedded", "none"])
        #expect(DiscoveryBackend.auto.makeDiscovery(logger: logger) is AutomaticDiscovery)
        #expect(DiscoveryBackend.avahi.makeDiscovery(logger: logger) is SingleBackendDiscovery)
        #expect(DiscoveryBackend.embedded.makeDiscovery(logger: logger) is SingleBackendDiscovery)
        #expect(DiscoveryBackend.none.makeDiscovery(logger: logger) == nil)
    }
}
