import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import Testing

@testable import Earshot
@testable import earshotd

@Suite struct WatchdogStateMachineTests {
    private func machine() -> WatchdogStateMachine {
        WatchdogStateMachine(parts: [("a", .zero), ("b", .zero)], timeout: .seconds(32), now: .zero)
    }

    @Test func aDiskHasTimeForALargeFile() {
        var machine = WatchdogStateMachine(parts: [("disk", .seconds(100))], timeout: .seconds(32), now: .zero)
        #expect(machine.tick(now: .zero) == [.ask(0)])
        #expect(machine.tick(now: .seconds(16)) == [.feed])
        #expect(machine.tick(now: .seconds(98)) == [.feed])
        #expect(machine.tick(now: .seconds(114)) == [.reportStuck(["disk"])])
        #expect(machine.answered(0, now: .seconds(120)) == [.reportRecovered, .feed])
    }

    @Test func itIsFedAtHalfItsIntervalWhileAllAnswer() {
        var machine = self.machine()
        #expect(machine.feedInterval == .seconds(16) && machine.tickInterval == .seconds(4))
        var fedAt: [Duration] = []
        for second in 0..<100 where second % 4 == 0 {
            let now = Duration.seconds(second)
            for action in machine.tick(now: now) {
                switch action {
                case .ask(let index): #expect(machine.answered(index, now: now + .milliseconds(1)).filter { $0 != .feed } == [])
                case .feed: fedAt.append(now)
                case .reportStuck, .reportRecovered: Issue.record("\(action)")
                }
            }
        }
        #expect(fedAt == [16, 32, 48, 64, 80, 96].map { .seconds($0) })
    }

    @Test func aStuckPartStopsItAndIsNamedOnce() {
        var machine = self.machine()
        #expect(machine.tick(now: .zero) == [.ask(0), .ask(1)])
        #expect(machine.answered(0, now: .seconds(1)) == [])
        // It is not asked again before it has answered.
        #expect(machine.tick(now: .seconds(4)) == [.ask(0)])
        #expect(machine.answered(0, now: .seconds(5)) == [])
        #expect(machine.tick(now: .seconds(16)) == [.ask(0), .reportStuck(["b"])])
        #expect(machine.tick(now: .seconds(20)) == [])
        #expect(machine.answered(0, now: .seconds(21)) == [])
        // It makes up for it as soon as it has come round.
        #expect(machine.answered(1, now: .seconds(25)) == [.reportRecovered, .feed])
        #expect(machine.tick(now: .seconds(28)) == [.ask(0), .ask(1)])
    }

    @Test func anAnswerCountsForTheSpanInWhichItCame() {
        var machine = self.machine()
        _ = machine.tick(now: .zero)
        _ = machine.answered(0, now: .seconds(1))
        _ = machine.answered(1, now: .seconds(1))
        _ = machine.tick(now: .seconds(12))
        #expect(machine.tick(now: .seconds(16)) == [.feed])
        // Asked before the last feeding, answered after it: alive since.
        #expect(machine.answered(0, now: .seconds(17)) == [])
        #expect(machine.answered(1, now: .seconds(31)) == [])
        #expect(machine.tick(now: .seconds(32)) == [.ask(0), .ask(1), .feed])
        #expect(machine.tick(now: .seconds(48)) == [.reportStuck(["a", "b"])])
    }

    @Test func aStallShorterThanTheIntervalIsForgiven() {
        // Whenever a stall of 25 s (a hanging D-Bus call) begins, no two feedings are as far apart as systemd allows.
        for begin in stride(from: 0.0, to: 40, by: 0.5) {
            var machine = self.machine()
            var (fedAt, worst) = (0.0, 0.0)
            var pending: [Int] = []
            for step in 0..<400 {
                let now = Double(step) / 4
                let isStalled = now >= begin && now < begin + 25
                var actions = step % 16 == 0 ? machine.tick(now: .seconds(now)) : []
                repeat {
                    for action in actions {
                        switch action {
                        case .ask(let index): pending.append(index)
                        case .feed:
                            worst = max(worst, now - fedAt)
                            fedAt = now
                        case .reportStuck, .reportRecovered: break
                        }
                    }
                    let ready = pending.filter { $0 == 0 || !isStalled }
                    pending.removeAll { ready.contains($0) }
                    actions = ready.flatMap { machine.answered($0, now: .seconds(now)) }
                } while !actions.isEmpty
            }
            #expect(fedAt > 80)
            #expect(worst < 32, "a stall from \(begin)")
        }
    }
}

/// A log that a test reads.
private struct LinesLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    let lines: AsyncStream<String>.Continuation

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) { self.lines.yield("\(event.level): \(event.message)") }
}

@Suite(.timeLimit(.minutes(1))) struct WatchdogTests {
    @Test func aBlockedLoopStopsItAndIsNamed() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let loops = Array(group.makeIterator())
        let (lines, logging) = AsyncStream<String>.makeStream()
        let (feedings, feeder) = AsyncStream<Int>.makeStream()
        let fed = Mutex(0)
        let watchdog = Watchdog(
            on: loops[0], parts: [Heartbeat(name: "bad") { loops[1].execute($0) }], timeout: .milliseconds(160),
            logger: Logger(label: "w") { _ in LinesLog(lines: logging) }
        ) {
            feeder.yield(
                fed.withLock {
                    $0 += 1
                    return $0
                })
        }
        let services = ServiceGroup(services: [watchdog], logger: Logger(label: "s") { _ in SwiftLogNoOpLogHandler() })
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await services.run() }
            var feeding = feedings.makeAsyncIterator()
            for _ in 0..<3 { _ = await feeding.next() }
            // The closure stands for code that blocks an event loop.
            let gate = DispatchSemaphore(value: 0)
            let (blocked, blocks) = AsyncStream<Void>.makeStream()
            loops[1].execute {
                blocks.yield()
                gate.wait()
            }
            var blocking = blocked.makeAsyncIterator()
            _ = await blocking.next()
            // By the clock of the loop that feeds: what was answered before is used up after two intervals, and nothing comes after it.
            try await loops[0].scheduleTask(in: .milliseconds(320)) {}.futureResult.get()
            let before = fed.withLock { $0 }
            try await loops[0].scheduleTask(in: .milliseconds(320)) {}.futureResult.get()
            #expect(fed.withLock { $0 } == before)
            gate.signal()
            while let number = await feeding.next(), number <= before {}
            await services.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        logging.finish()
        var said: [String] = []
        for await line in lines { said.append(line) }
        #expect(
            said.suffix(2) == [
                "error: systemd's watchdog is not fed: no answer from bad", "notice: systemd's watchdog is fed again: every part answers",
            ])
        try await group.shutdownGracefully()
    }

    @Test func systemdSaysWhetherAndHowOften() {
        #expect(Watchdog.timeout([:]) == nil)
        #expect(Watchdog.timeout(["WATCHDOG_USEC": "30000000"]) == .seconds(30))
        #expect(Watchdog.timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"], pid: 7) == .seconds(30))
        #expect(Watchdog.timeout(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"], pid: 8) == nil)
        for wrong in ["0", "-1", "x", ""] { #expect(Watchdog.timeout(["WATCHDOG_USEC": wrong]) == nil) }
    }
}

@Suite struct ServiceManagerTests {
    @Test func itIsToldEveryState() throws {
        let systemd = try DatagramReceiver()
        let manager = ServiceManager(environment: ["NOTIFY_SOCKET": systemd.path])
        #expect(manager.isThere)
        manager.ready()
        #expect(try systemd.text() == "READY=1")
        manager.status("alice; 3 peers")
        #expect(try systemd.text() == "STATUS=alice; 3 peers")
        manager.reloading()
        let now = DispatchTime.now().uptimeNanoseconds / 1000
        let reloading = try systemd.text()
        #expect(reloading.hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
        let time = try #require(UInt64(reloading.drop { $0 != "_" }.dropFirst(6)))
        #expect(time <= now && now - time < 20_000_000)
        manager.feedWatchdog()
        #expect(try systemd.text() == "WATCHDOG=1")
        manager.stopping()
        #expect(try systemd.text() == "STOPPING=1\nSTATUS=stopping")
    }

    @Test(arguments: [nil, "", "relative", "/nonexistent/socket", "/" + String(repeating: "x", count: 200)])
    func withoutItNothingHappens(_ path: String?) {
        var environment: [String: String] = [:]
        environment["NOTIFY_SOCKET"] = path
        ServiceManager(environment: environment).ready()
    }

    @Test func theStatusIsOneLine() throws {
        let status = NodeStatus(
            name: try DisplayName("al\u{202E}ice"), id: try #require(PeerID(String(repeating: "A", count: 52))),
            serviceType: try ServiceType("earshot"), encryption: .required, addresses: [], port: 47110, localSend: nil,
            wantedPort: 47110,
            stateDirectory: "/var/lib/earshot", quota: 1 << 30, reserve: 0.05, sendLimit: nil, receiveLimit: nil,
            discovery: DiscoveryStatus(backend: .avahi, state: .running), instanceName: nil, identityCopies: [], startedAt: Date(),
            counts: NodeStatus.Counts(
                peers: 3, sessions: 1, connections: 0, pendingInvitations: 0, unreadMessages: 0, transfers: 0,
                waitingMessages: 0))
        #expect(StatusReporter.line(status) == "al\\u{202E}ice on port 47110; 3 peers, 1 session; discovery avahi running")
    }
}
