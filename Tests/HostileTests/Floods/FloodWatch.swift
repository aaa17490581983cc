import Crypto
import Foundation
import Glibc
import Synchronization

/// What a daemon owes its other peers while it is flooded (earshot-security(7)).
enum FloodBounds {
    /// A friend's message is acknowledged, and the API answers, within so many milliseconds. A debug build, which is several times slower at
    /// everything and shares two processors with the flooders, has eight times as long: enough to tell a queue from a slow turn.
    static let milliseconds = Scale.isRelease ? 250.0 : 2000.0
    /// What the daemon's own memory may grow by, in bytes.
    static let memory = 64 << 20
    /// What it may keep of that afterwards: what the allocator does not give back.
    static let memoryKept = 32 << 20
    /// The time after which its watchdog is taken for starved, in seconds; the unit's is three times as long.
    static let watchdog = 10
}

/// What one flood did, as its victim's friend and user met it.
struct FloodResult: Sendable {
    let name: String
    /// Milliseconds until each message of the friend was on disk, sorted; of one that was late also what those sent meanwhile would have waited.
    var messages: [Double] = []
    /// The same of calls of the API.
    var calls: [Double] = []
    /// What memory rose to over the baseline, in bytes.
    var growth = 0
    /// Milliseconds after the flood until the friend is served as before.
    var clearing = 0.0
    /// Messages that were not acknowledged at all, and calls that were not answered.
    var failures = 0
    /// Bytes that the peers have sent, and connections that they made.
    var sent = 0
    var connections = 0
    /// Of so many peers, those that never came so far as to flood: the victim has few places for those that have not proven themselves, and
    /// the others come back at once when it closes them.
    var late = 0
    var peers = 0

    private static func late(_ times: [Double]) -> Double { times.isEmpty ? 0 : times[min(times.count - 1, times.count * 99 / 100)] }
    /// 99 of 100 messages are acknowledged in that time.
    var message: Double { Self.late(self.messages) }
    /// 99 of 100 calls are answered in that time.
    var call: Double { Self.late(self.calls) }

    /// What of it is more than is allowed; with the times, where there were enough of them to say so.
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

/// Looks at a daemon while it is flooded: a friend sends it messages one after another, its user asks for its status, and its memory is
/// read, each on a thread of its own.
final class FloodWatch: Sendable {
    private enum Request: Int { case message, call }

    private struct State {
        var result = FloodResult(name: "")
        var peak = 0
        /// Messages, and calls, that were begun, and that have ended.
        var begun = [0, 0]
        var ended = [0, 0]
        var failure: String?
    }

    /// How long an answer is waited for, in milliseconds.
    private static let patience: Int32 = 60_000
    /// How often a friend and a user ask, in milliseconds.
    private static let interval = 10.0

    private let state = Mutex(State())
    private let isOver = Atomic(false)
    private let threads = Atomic(0)
    private let pid: pid_t
    /// Memory before the floods, in bytes.
    let baseline: Int

    /// Begins to look; the daemon has served its friend for a while when this returns.
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

    /// The times of a caller that asks every `interval`: one that waits for each answer asks too seldom just when the answers are late
    /// (coordinated omission).
    private static func everyone(waiting time: Double) -> [Double] { Array(stride(from: time, to: 0, by: -Self.interval)) }

    /// Ends the looking, with the last of what is under way.
    func stop() {
        self.isOver.store(true, ordering: .relaxed)
        while self.threads.load(ordering: .sequentiallyConsistent) > 0 { usleep(1_000) }
    }

    /// Anonymous memory, in bytes: what the daemon itself has allocated, without the pages of its program and of shared files.
    static func memory(of pid: pid_t) -> Int {
        let fields = VictimDaemon.text("/proc/\(pid)/statm").split(separator: " ").compactMap { Int($0) }
        return fields.count > 2 ? (fields[1] - fields[2]) * Int(sysconf(CInt(_SC_PAGESIZE))) : 0
    }

    /// Whether memory has risen so far that going on would only harm this machine.
    var isBeyondAll: Bool { self.state.withLock { $0.peak - self.baseline > 8 * FloodBounds.memory } }

    /// What the flood that `body` is does, with everything that was asked during it, however late that is answered.
    func result(of name: String, _ body: () throws -> Void) rethrows -> FloodResult {
        self.state.withLock {
            $0.result = FloodResult(name: name)
            $0.peak = 0
        }
        try body()
        let began = ContinuousClock.now
        // One more of each than were under way: the first that was asked afterwards.
        let due = self.state.withLock { $0.begun.map { $0 + 1 } }
        while self.state.withLock({ state in zip(state.ended, due).contains { $0 < $1 } }) { usleep(1_000) }
        var result = self.state.withLock { $0.result }
        result.growth = self.state.withLock { $0.peak } - self.baseline
        result.clearing = LiveSession.milliseconds(since: began)
        result.messages.sort()
        result.calls.sort()
        return result
    }

    /// Why a friend or a user was not served, the first time.
    var failure: String? { self.state.withLock { $0.failure } }
}
