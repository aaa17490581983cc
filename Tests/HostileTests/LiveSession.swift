import Crypto
import EarshotWire
import Foundation
import Testing

/// How often the floods of these tests strike: a tenth of the whole figures that they name, unless EARSHOT_HOSTILE_SCALE
/// says 10 ("Attacks" in EarshotCore's Testing.md).
enum Scale {
    static let factor = max(1, ProcessInfo.processInfo.environment["EARSHOT_HOSTILE_SCALE"].flatMap { Int($0) } ?? 1)
    /// A tenth of the whole figure, times the factor.
    static func of(_ whole: Int) -> Int { whole / 10 * min(10, self.factor) }
    /// Whether it strikes with the whole figures.
    static var isFull: Bool { self.factor >= 10 }
    /// Whether the daemon under attack is a release build, by the place that EARSHOT_BIN names.
    static let isRelease = ProcessInfo.processInfo.environment["EARSHOT_BIN"]?.contains("release") == true
}

/// A session that goes on through an attack: messages are sent and acknowledged all the while, and the time of each is taken.
final class LiveSession {
    private let peer: WirePeer
    private let session: SessionID
    private var sequence: UInt64 = 0

    /// A friend, whom the daemon's own user trusts: whatever the policy says of strangers, its session stands.
    convenience init(with daemon: VictimDaemon, from: String = "127.9.9.9") throws {
        try self.init(port: daemon.port, key: try Self.makeFriend(of: daemon), from: from)
    }

    /// The same by a key that is trusted already; waits that long for each of the daemon's words, in milliseconds.
    init(port: UInt16, key: P256.Signing.PrivateKey, from: String = "127.9.9.9", patience: Int32 = 10_000) throws {
        self.peer = try WirePeer(port: port, key: key, name: "friend", from: from)
        self.peer.patience = patience
        try self.peer.prove()
        self.session = try self.peer.join()
    }

    /// A key that the daemon's own user trusts.
    static func makeFriend(of daemon: VictimDaemon) throws -> P256.Signing.PrivateKey {
        let key = P256.Signing.PrivateKey()
        let id = PeerID(subjectPublicKeyInfo: key.publicKey.derRepresentation)
        try #require(try daemon.call("PUT", "/v1/peers/\(id)/trust", json: #"{"trust":"trusted"}"#).status == 200)
        return key
    }

    /// Asks for a sign of life, of the node itself and not only of the connection; milliseconds to the answer.
    func ping() throws -> Double {
        let began = ContinuousClock.now
        try self.peer.roundTrip()
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

    /// Whether the attackers are strangers, who change nothing that is stored.
    var isByStrangers = true

    /// Runs the attack against a daemon with a live session, and holds the daemon to what is asked of it in all of them: the same process,
    /// bounded memory, a store that is byte for byte what it was, the live session answers within 100 ms all the while, and its messages
    /// are taken afterwards. At full scale 99 of 100 answers have to come in that time; on a machine that does other things too, half.
    ///
    /// `strike` is called with a number that rises, `count` times.
    func run(_ name: String, count: Int, _ strike: (Int) throws -> Void) throws {
        let live = try LiveSession(with: self.daemon)
        for _ in 0..<20 { _ = try live.message() }
        let (before, store) = (self.daemon.memory, self.daemon.store)
        var peak = before
        var times: [Double] = []
        // A hundred looks at it, or a few more, spread over the attack.
        let step = max(1, count / 100)
        for number in 0..<count {
            try strike(number)
            guard number % step == 0 else { continue }
            times.append(try live.ping())
            peak = max(peak, self.daemon.memory)
        }
        #expect(self.daemon.isAlive, "the same process")
        #expect(!self.isByStrangers || self.daemon.store == store, "the store is what it was, byte for byte")
        let last = try live.message()
        #expect(last < 10_000, "the session lives on")
        times.sort()
        let (median, worst) = (times[times.count / 2], times[times.count * 99 / 100])
        #expect((Scale.isFull ? worst : median) < 100, "the live session answers in \(median) ms, 99 % within \(worst) ms")
        #expect(peak - before < self.memoryLimit, "memory grew from \(before) to \(peak)")
        print(
            "measured: \(name): \(count) times, live session \(Self.rounded(median)) ms, 99 % within \(Self.rounded(worst)) ms,"
                + " a message on disk in \(Self.rounded(last)) ms, memory +\((peak - before) >> 10) KiB")
    }

    private static func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
