public import Earshot
import Glibc
public import Logging

/// Discovery through Avahi if it answers, through the embedded responder after 10 s without it, and through Avahi again when it appears;
/// `status` tells which.
///
/// Only one of the two advertises at any time, because the two would see each other as a name collision. The old backend says goodbye
/// before the new one starts. The old backend's sightings stay valid until the new one has had time to find the same. To be run once.
public struct AutomaticDiscovery: PeerDiscovery {
    private let output = DiscoveryOutput()
    private let avahi: BackendRunner
    private let embedded: BackendRunner
    private let avahiIsConceivable: @Sendable () -> Bool
    private let clock: any Clock<Duration>
    private let logger: Logger

    /// Creates a discovery that has not started. With `startsEmbedded` it does not wait for Avahi first.
    public init(logger: Logger, startsEmbedded: Bool = false) {
        self.init(
            avahi: .avahi(logger: logger), embedded: .embedded(logger: logger),
            avahiIsConceivable: { !startsEmbedded && Self.systemBusIsConceivable() }, clock: TimerClock(), logger: logger)
    }

    init(
        avahi: BackendRunner, embedded: BackendRunner, avahiIsConceivable: @escaping @Sendable () -> Bool, clock: any Clock<Duration>,
        logger: Logger
    ) {
        self.avahi = avahi
        self.embedded = embedded
        self.avahiIsConceivable = avahiIsConceivable
        self.clock = clock
        self.logger = logger
    }

    /// Calls back once all threads that call Avahi have given a sign of life.
    public func answer(_ heartbeat: @escaping @Sendable () -> Void) { AvahiThread.answer(heartbeat) }

    /// The events, in order, for one reader. The stream ends when `run` does.
    public var events: AsyncStream<DiscoveryEvent> { self.output.events }

    /// Runs until its task is cancelled, then says goodbye on the network.
    public func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        let plan = DiscoveryPlan(advertisement: advertisement, serviceType: serviceType)
        if plan == .probe {
            await self.output.stayOff(as: .none)
        } else {
            await self.drive(plan, clock: self.clock)
        }
        self.output.finish()
    }

    /// Whether there is any sign of a system bus or of avahi-daemon. In a container there is none, and waiting would be useless.
    @Sendable private static func systemBusIsConceivable() -> Bool {
        if getenv("DBUS_SYSTEM_BUS_ADDRESS") != nil { return true }
        let paths = ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/avahi-daemon/socket"]
        return paths.contains { path in access(path, F_OK) == 0 }
    }
}

extension AutomaticDiscovery {
    /// Performs the chooser's actions.
    private func drive(_ plan: DiscoveryPlan, clock: some Clock<Duration>) async {
        let start = clock.now
        let (inputs, sender) = AsyncStream<BackendRuns.Input>.makeStream()
        var chooser = BackendChooser()
        var runs = BackendRuns(sender: sender, output: self.output)
        var timer: Duration?
        _ = chooser.start(now: .zero, avahiIsConceivable: self.avahiIsConceivable())

        await withDiscardingTaskGroup { group in
            self.launch(chooser.backend, plan: plan, runs: &runs, group: &group)
            self.schedule(chooser.deadline, &timer, clock: clock, start: start, sender: sender, group: &group)
            for await input in inputs {
                let now = start.duration(to: clock.now)
                switch input {
                case .reachable(let isReachable, let generation):
                    guard runs.isCurrent(generation) else { continue }
                    if !isReachable {
                        chooser.avahiFellSilent(now: now)
                    } else if chooser.avahiAnswered(now: now) == .switchToAvahi {
                        self.logger.notice("avahi-daemon answers: leaving the embedded responder for it")
                        runs.stopAll()
                    }
                case .unanswered(let silence, let generation):
                    if runs.isCurrent(generation) { chooser.avahiFellSilent(now: now - silence) }
                case .status(let status, let generation):
                    if runs.isCurrent(generation) { _ = self.output.emit(.status(status)) }
                case .stopped(let generation):
                    // The next backend begins after the last one has said goodbye.
                    guard runs.ended(generation) else { continue }
                    // A backend that hangs could not report that it has lost its view. The embedded responder finds the same before the
                    // loss counts.
                    if chooser.backend == .embedded { _ = self.output.emit(.reset(.avahi)) }
                    self.launch(chooser.backend, plan: plan, runs: &runs, group: &group)
                case .timer:
                    timer = nil
                    switch chooser.timerFired(now: now) {
                    case .nothing: break
                    case .forgetEmbedded: _ = self.output.emit(.reset(.embedded))
                    case .switchToEmbedded:
                        self.logger.notice("avahi-daemon does not answer: using the embedded responder")
                        runs.stopAll()
                    }
                }
                self.schedule(chooser.deadline, &timer, clock: clock, start: start, sender: sender, group: &group)
            }
        }
    }

    private func launch(
        _ backend: DiscoveryStatus.Backend, plan: DiscoveryPlan, runs: inout BackendRuns, group: inout DiscardingTaskGroup
    ) {
        switch backend {
        case .avahi:
            runs.launch(self.avahi, plan: plan, isProbe: false, tellsReachable: true, group: &group)
        case .embedded, .none:
            runs.launch(self.embedded, plan: plan, isProbe: false, tellsReachable: false, group: &group)
            runs.launch(self.avahi, plan: .probe, isProbe: true, tellsReachable: true, group: &group)
        }
    }

    /// Wakes the loop at `deadline`. An outdated timer only makes it look once more.
    private func schedule<C: Clock<Duration>>(
        _ deadline: Duration?, _ timer: inout Duration?, clock: C, start: C.Instant, sender: AsyncStream<BackendRuns.Input>.Continuation,
        group: inout DiscardingTaskGroup
    ) {
        guard let deadline, deadline != timer else { return }
        timer = deadline
        group.addTask {
            try? await clock.sleep(until: start.advanced(by: deadline), tolerance: nil)
            sender.yield(.timer)
        }
    }
}

/// The running backends, each of which can be stopped alone.
private struct BackendRuns {
    enum Input: Sendable {
        case reachable(Bool, generation: Int)
        case unanswered(for: Duration, generation: Int)
        case status(DiscoveryStatus, generation: Int)
        case stopped(generation: Int)
        case timer
    }

    private let sender: AsyncStream<Input>.Continuation
    private let output: DiscoveryOutput
    private var generation = 0
    private var stoppers: [Int: AsyncStream<Never>.Continuation] = [:]
    /// Runs up to this generation have been told to stop, and their reports are ignored.
    private var stoppedUpTo = 0

    init(sender: AsyncStream<Input>.Continuation, output: DiscoveryOutput) {
        self.sender = sender
        self.output = output
    }

    func isCurrent(_ generation: Int) -> Bool { generation > self.stoppedUpTo }

    mutating func launch(
        _ runner: BackendRunner, plan: DiscoveryPlan, isProbe: Bool, tellsReachable: Bool, group: inout DiscardingTaskGroup
    ) {
        self.generation += 1
        let (sender, output, generation) = (self.sender, self.output, self.generation)
        let (stop, stopper) = AsyncStream<Never>.makeStream()
        self.stoppers[generation] = stopper
        let report: BackendRunner.Report = { report in
            switch report {
            case .reachable(let isReachable):
                if tellsReachable { sender.yield(.reachable(isReachable, generation: generation)) }
            case .unanswered(let silence):
                if tellsReachable { sender.yield(.unanswered(for: silence, generation: generation)) }
            case .event(.status(let status)):
                if !isProbe { sender.yield(.status(status, generation: generation)) }
            case .event(let event):
                if !isProbe { return output.emit(event) }
            }
            return true
        }
        group.addTask {
            await withTaskGroup(of: Void.self) { run in
                run.addTask { await runner.run(plan, report) }
                run.addTask { for await _ in stop {} }
                await run.next()
                run.cancelAll()
            }
            sender.yield(.stopped(generation: generation))
        }
    }

    mutating func stopAll() {
        self.stoppedUpTo = self.generation
        for stopper in self.stoppers.values { stopper.finish() }
    }

    /// Records that a run has ended. Returns whether it was the last.
    mutating func ended(_ generation: Int) -> Bool {
        self.stoppers[generation] = nil
        return self.stoppers.isEmpty
    }
}
