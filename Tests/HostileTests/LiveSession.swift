import Crypto
import EarshotWire
import Foundation
import Testing

/// The scale of the floods: a tenth of the full figures, unless EARSHOT_HOSTILE_SCALE is 10 ("Attacks" in EarshotCore's Testing.md).
enum Scale {
    static let factor = max(1, ProcessInfo.processInfo.environment["EARSHOT_HOSTILE_SCALE"].flatMap { Int($0) } ?? 1)
    /// Returns a tenth of the full figure, times the factor.
    static func of(_ whole: Int) -> Int { whole / 10 * min(10, self.factor) }
    /// Whether the floods use the full figures.
    static var isFull: Bool { self.factor >= 10 }
    /// Whether the daemon under attack is a release build, judged by the path in EARSHOT_BIN.
    static let isRelease = ProcessInfo.processInfo.environment["EARSHOT_BIN"]?.contains("release") == true
}

/// A session that continues during an attack: messages are sent and acknowledged throughout, and each is timed.
final class LiveSession {
    private let peer: WirePeer
    private let session: SessionID
    private var sequence: UInt64 = 0

    /// Creates a session of a friend, whom the daemon's user trusts. The session is accepted whatever the policy for strangers.
    convenience init(with daemon: VictimDaemon, from: String = "127.9.9.9") throws {
        try self.init(port: daemon.port, key: try Self.makeFriend(of: daemon), from: from)
    }

    /// Creates a session with a trusted key. `patience` is the time limit for each of the daemon's frames, in milliseconds.
    init(port: UInt16, key: P256.Signing.PrivateKey, from: String = "127.9.9.9", patience: Int32 = 10_000) throws {
        self.peer = try WirePeer(port: port, key: key, name: "friend", from: from)
        self.peer.patience = patience
        try self.peer.prove()
        self.session = try self.peer.join()
    }

    /// Returns a key that the daemon's user trusts.
    static func makeFriend(of daemon: VictimDaemon) throws -> P256.Signing.PrivateKey {
        let key = P256.Signing.PrivateKey()
        let id = PeerID(subjectPublicKeyInfo: key.publicKey.derRepresentation)
        try #require(try daemon.call("PUT", "/v1/peers/\(id)/trust", json: #"{"trust":"trusted"}"#).status == 200)
        return key
    }

    /// Asks the node itself for a sign of life, not only the connection. Returns the milliseconds until the answer.
    func ping() throws -> Double {
        let began = ContinuousClock.now
        try self.peer.roundTrip()
        return Self.milliseconds(since: began)
    }

    /// Sends a message. Returns the milliseconds until it is acknowledged, which means that it is on disk.
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

/// The effects of an attack on the daemon, measured before, during and after it.
struct Attack {
    let daemon: VictimDaemon
    /// The most growth of the daemon, in bytes.
    var memoryLimit = 16 << 20

    /// Whether the attackers are strangers, which must not change the store.
    var isByStrangers = true

    /// Runs the attack against a daemon with a live session, and checks the common requirements. The process must be the same, with bounded
    /// memory and an unchanged store, byte for byte. The live session must answer within 100 ms throughout, and its messages must be
    /// accepted afterwards. At full scale, 99 of 100 answers must arrive in that time; otherwise half of them, as the machine may be busy.
    ///
    /// `strike` is called `count` times with an ascending number.
    func run(_ name: String, count: Int, _ strike: (Int) throws -> Void) throws {
        let live = try LiveSession(with: self.daemon)
        for _ in 0..<20 { _ = try live.message() }
        let (before, store) = (self.daemon.memory, self.daemon.store)
        var peak = before
        var times: [Double] = []
        // About a hundred measurements, spread over the attack.
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
