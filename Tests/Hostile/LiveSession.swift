import EarshotWire
import Foundation
import Testing

/// How often the floods of these tests strike: a tenth of the figures of threats.md, unless EARSHOT_HOSTILE_SCALE says 10.
enum Scale {
    static let factor = max(1, ProcessInfo.processInfo.environment["EARSHOT_HOSTILE_SCALE"].flatMap { Int($0) } ?? 1)
    /// A tenth of the whole figure, times the factor.
    static func of(_ whole: Int) -> Int { whole / 10 * min(10, self.factor) }
}

/// A session that goes on through an attack: messages are sent and acknowledged all the while, and the time of each is taken.
final class LiveSession {
    private let peer: WirePeer
    private let session: SessionID
    private var sequence: UInt64 = 0

    init(with daemon: VictimDaemon, from: String = "127.9.9.9") throws {
        self.peer = try WirePeer(port: daemon.port, name: "friend", from: from)
        try self.peer.prove()
        self.session = try self.peer.join()
    }

    /// Asks for a sign of life; milliseconds to the answer.
    func ping() throws -> Double {
        let value = UInt64.random(in: .min ... .max)
        let began = ContinuousClock.now
        try self.peer.send(.ping(value))
        try self.peer.next { $0 == .pong(value) ? () : nil }
        return Self.milliseconds(since: began)
    }

    /// Sends a message; milliseconds until it is acknowledged, which is when it is on disk.
    func message() throws -> Double {
        self.sequence += 1
        let (id, frame) = self.peer.message("still here", in: self.session, sequence: self.sequence)
        let began = ContinuousClock.now
        try self.peer.send(frame)
        try self.peer.next { frame -> Void? in
            guard case .messageReceipts(let receipts) = frame else { return nil }
            return receipts.contains { $0.id == id && $0.outcome == .delivered } ? () : nil
        }
        return Self.milliseconds(since: began)
    }

    static func milliseconds(since instant: ContinuousClock.Instant) -> Double {
        let time = (ContinuousClock.now - instant).components
        return Double(time.seconds) * 1000 + Double(time.attoseconds) / 1e15
    }
}

/// What an attack did to the daemon: taken before and after, and while it lasted.
struct Attack {
    let daemon: VictimDaemon
    /// What the daemon may grow by, in bytes.
    var memoryLimit = 16 << 20

    /// Runs the attack against a daemon with a live session, and holds the daemon to what threats.md says of all of them: the same process,
    /// bounded memory, the live session answers within 100 ms all the while (the median of its answers; the worst are reported), and its
    /// messages are taken afterwards.
    ///
    /// `strike` is called with a number that rises, `count` times.
    func run(_ name: String, count: Int, _ strike: (Int) throws -> Void) throws {
        let live = try LiveSession(with: self.daemon)
        for _ in 0..<20 { _ = try live.message() }
        let before = self.daemon.memory
        var peak = before
        var times: [Double] = []
        // About a hundred looks at it, spread over the attack.
        let step = max(1, count / 100)
        for number in 0..<count {
            try strike(number)
            guard number % step == 0 else { continue }
            times.append(try live.ping())
            peak = max(peak, self.daemon.memory)
        }
        #expect(self.daemon.isAlive, "the same process")
        #expect(try live.message() < 10_000, "the session lives on")
        times.sort()
        let (median, worst) = (times[times.count / 2], times[times.count * 99 / 100])
        #expect(median < 100, "the live session answers in \(median) ms")
        #expect(peak - before < self.memoryLimit, "memory grew from \(before) to \(peak)")
        print(
            "measured: \(name): \(count) times, live session \(Self.rounded(median)) ms, 99 % within \(Self.rounded(worst)) ms, memory +\((peak - before) >> 10) KiB"
        )
    }

    private static func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
