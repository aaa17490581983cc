import Crypto
import Foundation
import Glibc
import Synchronization

/// The bounds that a daemon keeps for its other peers during a flood (earshot-security(7)).
enum FloodBounds {
    /// The milliseconds within which a friend's message is acknowledged, and the API answers. A debug build has eight times as long: it is
    /// several times slower and shares two processors with the flooding peers. That still tells a queue from a slow turn.
    static let milliseconds = Scale.isRelease ? 250.0 : 2000.0
    /// The most growth of the daemon's own memory, in bytes.
    static let memory = 64 << 20
    /// The most growth that may remain afterwards, because the allocator does not return it.
    static let memoryKept = 32 << 20
    /// The time after which the watchdog counts as starved, in seconds. The unit's time is three times as long.
    static let watchdog = 10
}

/// The result of one flood, as measured by the victim's friend and user.
struct FloodResult: Sendable {
    let name: String
    /// The milliseconds until each of the friend's messages was on disk, sorted. Late ones also include the waits of messages that would
    /// have been sent meanwhile.
    var messages: [Double] = []
    /// The same for calls of the API.
    var calls: [Double] = []
    /// The peak of memory over the baseline, in bytes.
    var growth = 0
    /// The milliseconds after the flood until the friend is served as before.
    var clearing = 0.0
    /// The messages that were never acknowledged, and the calls that were never answered.
    var failures = 0
    /// The bytes that the peers have sent, and their connections.
    var sent = 0
    var connections = 0
    /// The peers that never flooded, and the number of peers. The victim has few places for unproven connections, and the other peers
    /// reconnect at once when it closes them.
    var late = 0
    var peers = 0

    private static func late(_ times: [Double]) -> Double { times.isEmpty ? 0 : times[min(times.count - 1, times.count * 99 / 100)] }
    /// The 99th percentile of the times until messages were acknowledged.
    var message: Double { Self.late(self.messages) }
    /// The 99th percentile of the times until calls were answered.
    var call: Double { Self.late(self.calls) }

    /// Returns the exceeded bounds, including the times if there are enough samples.
    func faults(withTimes: Bool) -> [String] {
        var faults: [String] = []
        if self.growth > FloodBounds.memory { faults.append("memory +\(self.growth >> 20) MiB") }
        if withTimes, self.message > FloodBounds.milliseconds { faults.append("a friend's messages \(Self.rounded(self.message)) ms") }
        if withTimes, self.call > FloodBounds.milliseconds { faults.append("/v1/status \(Self.rounded(self.call)) ms") }
        if self.failures > 0 { faults.append("\(self.failures) without an answer") }
        if self.late > self.peers / 2 { faults.append("no flood: \(self.late) of \(self.peers) peers did not get so far") }
        return faults
    }

    static func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }

    var line: String {
        "\(self.name): 99 % of \(self.messages.count) messages in \(Self.rounded(self.message)) ms, of \(self.calls.count) calls in"
            + " \(Self.rounded(self.call)) ms, memory +\(self.growth >> 10) KiB, cleared in \(Self.rounded(self.clearing)) ms,"
            + " \(self.sent >> 10) KiB by \(self.connections) connections, \(self.late) late"
    }
}

/// Watches a daemon during a flood. A friend sends it messages one after another, its user requests its status, and its memory is read,
/// each on its own thread.
final class FloodWatch: Sendable {
    private enum Request: Int { case message, call }

    private struct State {
        var result = FloodResult(name: "")
        var peak = 0
        /// The numbers of messages, and of calls, that have begun and ended.
        var begun = [0, 0]
        var ended = [0, 0]
        var failure: String?
    }

    /// The time limit for an answer, in milliseconds.
    private static let patience: Int32 = 60_000
    /// The interval of the friend's and the user's requests, in milliseconds.
    private static let interval = 10.0

    private let state = Mutex(State())
    private let isOver = Atomic(false)
    private let threads = Atomic(0)
    private let pid: pid_t
    /// The memory before the floods, in bytes.
    let baseline: Int

    /// Starts the watch. The daemon has served its friend for a while when this returns.
    init(_ daemon: VictimDaemon) throws {
        self.pid = daemon.pid
        let key = try LiveSession.makeFriend(of: daemon)
        let live = try LiveSession(port: daemon.port, key: key)
        for _ in 0..<50 {
            _ = try live.message()
            _ = try daemon.call("GET", "/v1/status")
        }
        self.baseline = Self.memory(of: daemon.pid)
        let (port, socket) = (daemon.port, daemon.socket)
        self.begin { this in
            var friend: LiveSession?
            while !this.isOver.load(ordering: .relaxed) {
                this.measure(.message) {
                    let live = try friend ?? LiveSession(port: port, key: key, patience: Self.patience)
                    friend = nil
                    let time = try live.message()
                    friend = live
                    return time
                }
                usleep(5_000)
            }
        }
        self.begin { this in
            while !this.isOver.load(ordering: .relaxed) {
                this.measure(.call) {
                    let began = ContinuousClock.now
                    let status = try VictimDaemon.call("GET", "/v1/status", at: socket, patience: Self.patience).status
                    guard status == 200 else { throw VictimDaemon.NoAnswer(what: "\(status)") }
                    return LiveSession.milliseconds(since: began)
                }
                usleep(10_000)
            }
        }
        self.begin { this in
            while !this.isOver.load(ordering: .relaxed) {
                let now = Self.memory(of: this.pid)
                this.state.withLock { $0.peak = max($0.peak, now) }
                usleep(5_000)
            }
        }
    }

    private func begin(_ work: @escaping @Sendable (FloodWatch) -> Void) {
        self.threads.add(1, ordering: .sequentiallyConsistent)
        Thread.detachNewThread {
            work(self)
            self.threads.subtract(1, ordering: .sequentiallyConsistent)
        }
    }

    private func measure(_ kind: Request, _ work: () throws -> Double) {
        self.state.withLock { $0.begun[kind.rawValue] += 1 }
        do {
            let time = try work()
            self.state.withLock {
                let times = Self.everyone(waiting: time)
                switch kind {
                case .message: $0.result.messages += times
                case .call: $0.result.calls += times
                }
            }
        } catch {
            self.state.withLock {
                $0.result.failures += 1
                $0.failure = $0.failure ?? "\(error)"
            }
            usleep(100_000)
        }
        self.state.withLock { $0.ended[kind.rawValue] += 1 }
    }

    /// Returns the times of a caller that sends a request every `interval`. A caller that waits for each answer would send too few requests
    /// just when answers are late (coordinated omission).
    private static func everyone(waiting time: Double) -> [Double] { Array(stride(from: time, to: 0, by: -Self.interval)) }

    /// Ends the watch, after the requests under way.
    func stop() {
        self.isOver.store(true, ordering: .relaxed)
        while self.threads.load(ordering: .sequentiallyConsistent) > 0 { usleep(1_000) }
    }

    /// Returns the anonymous memory in bytes: the daemon's own allocations, without the pages of its program and of shared files.
    static func memory(of pid: pid_t) -> Int {
        let fields = VictimDaemon.text("/proc/\(pid)/statm").split(separator: " ").compactMap { Int($0) }
        return fields.count > 2 ? (fields[1] - fields[2]) * Int(sysconf(CInt(_SC_PAGESIZE))) : 0
    }

    /// Whether memory has grown so far that continuing would only harm this machine.
    var isBeyondAll: Bool { self.state.withLock { $0.peak - self.baseline > 8 * FloodBounds.memory } }

    /// Runs the flood `body`, and returns its result with all requests made during it, however late they are answered.
    func result(of name: String, _ body: () throws -> Void) rethrows -> FloodResult {
        self.state.withLock {
            $0.result = FloodResult(name: name)
            $0.peak = 0
        }
        try body()
        let began = ContinuousClock.now
        // One more of each than were under way: the first request after the flood.
        let due = self.state.withLock { $0.begun.map { $0 + 1 } }
        while self.state.withLock({ state in zip(state.ended, due).contains { $0 < $1 } }) { usleep(1_000) }
        var result = self.state.withLock { $0.result }
        result.growth = self.state.withLock { $0.peak } - self.baseline
        result.clearing = LiveSession.milliseconds(since: began)
        result.messages.sort()
        result.calls.sort()
        return result
    }

    /// The first reason why a friend or a user was not served.
    var failure: String? { self.state.withLock { $0.failure } }
}
