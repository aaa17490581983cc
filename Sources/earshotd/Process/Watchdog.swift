internal import Earshot
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import Synchronization

/// A service that feeds systemd's watchdog (sd_watchdog_enabled(3)) as long as every part of the daemon answers.
///
/// The watchdog has an event loop of its own, so that it can log which parts hang even if all other threads are stuck.
final class Watchdog: Service {
    private let loop: any EventLoop
    private let parts: [Heartbeat]
    private let machine: Mutex<WatchdogStateMachine>
    private let start = NIODeadline.now()
    private let feed: @Sendable () -> Void
    private let logger: Logger

    /// Creates a watchdog that runs on `loop`, which does nothing else; `timeout` is systemd's timeout.
    init(on loop: any EventLoop, parts: [Heartbeat], timeout: Duration, logger: Logger, feed: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.parts = parts
        self.machine = Mutex(WatchdogStateMachine(parts: parts.map { ($0.name, $0.patience) }, timeout: timeout, now: .zero))
        self.feed = feed
        self.logger = logger
    }

    /// The watchdog timeout for this process, from `WATCHDOG_USEC` and `WATCHDOG_PID`; `nil` if systemd expects no notifications.
    static func timeout(_ environment: [String: String], pid: Int32 = getpid()) -> Duration? {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 else { return nil }
        if let owner = environment["WATCHDOG_PID"], Int32(owner) != pid { return nil }
        return .microseconds(microseconds)
    }

    /// The event loops of the control API, except the node's loop.
    static var controlLoops: [Heartbeat] {
        MultiThreadedEventLoopGroup.singleton.makeIterator().enumerated().map { index, loop in
            Heartbeat(name: "control loop \(index + 1)") { loop.execute($0) }
        }
    }

    func run() async throws {
        let interval = TimeAmount(self.machine.withLock { $0.tickInterval })
        let ticks = self.loop.scheduleRepeatedTask(initialDelay: .zero, delay: interval) { [weak self] _ in self?.tick() }
        defer { ticks.cancel() }
        try await gracefulShutdown()
    }

    private func tick() {
        self.perform(self.machine.withLock { [now = self.now] machine in machine.tick(now: now) })
    }

    private func answered(_ index: Int) {
        self.perform(self.machine.withLock { [now = self.now] machine in machine.answered(index, now: now) })
    }

    private var now: Duration { .nanoseconds((NIODeadline.now() - self.start).nanoseconds) }

    private func perform(_ actions: [WatchdogStateMachine.Action]) {
        for action in actions {
            switch action {
            case .ask(let index):
                // The part itself runs this closure, which shows that it works; nothing else is needed.
                self.parts[index].ask { self.loop.execute { self.answered(index) } }
            case .feed: self.feed()
            case .reportStuck(let names):
                self.logger.error("systemd's watchdog is not fed: no answer from \(names.joined(separator: ", "))")
            case .reportRecovered: self.logger.notice("systemd's watchdog is fed again: every part answers")
            }
        }
    }
}
