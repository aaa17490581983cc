import EarshotCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Keeps the mover of one transfer at the rate that the core has set. Without a rate, it lets every byte pass.
///
/// A waiting mover checks every `EarshotLimits.paceCheck` whether its rate has changed or its transfer has ended.
package final class TransferPacer: Sendable {
    private let bucket = Mutex<TokenBucket?>(nil)
    private let clock: @Sendable () -> MonotonicInstant

    package init(clock: @escaping @Sendable () -> MonotonicInstant = { Timers.sinceBoot() }) {
        self.clock = clock
    }

    /// Sets the rate in bytes per second; `nil` for no limit.
    package func pace(at rate: UInt64?) {
        let now = self.clock()
        self.bucket.withLock { bucket in
            guard let rate else { return bucket = nil }
            if bucket == nil { bucket = TokenBucket(rate: rate, at: now) } else { bucket?.change(to: rate, at: now) }
        }
    }

    /// Whether the transfer has a rate now.
    var isPaced: Bool { self.bucket.withLock { $0 != nil } }

    /// Waits on this thread until some of `count` bytes may move, and returns their number; `nil` once `isOver` returns `true`.
    func room(for count: Int, until isOver: () -> Bool) -> Int? {
        while !isOver() {
            switch self.permit(count) {
            case .move(let count): return count
            case .wait(let time): Self.sleep(min(time, EarshotLimits.paceCheck))
            }
        }
        return nil
    }

    /// Does the same without blocking a thread. Returns `nil` also if the task is cancelled.
    func roomAwaited(for count: Int, until isOver: () -> Bool) async -> Int? {
        while !isOver() {
            switch self.permit(count) {
            case .move(let count): return count
            case .wait(let time):
                guard (try? await TimerClock().sleep(for: min(time, EarshotLimits.paceCheck))) != nil else { return nil }
            }
        }
        return nil
    }

    /// Records that bytes have moved.
    func moved(_ count: Int) { self.bucket.withLock { $0?.spend(count) } }

    private func permit(_ count: Int) -> TokenBucket.Permit {
        self.bucket.withLock { bucket in bucket?.permit(count, at: self.clock()) ?? .move(count) }
    }

    private static func sleep(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        var time = timespec(tv_sec: Int(clamping: seconds), tv_nsec: Int(clamping: attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}

/// The rate of a transfer, for the thread that moves its bytes over a data connection.
struct DataPace: Sendable {
    /// No limit.
    static let free = DataPace(pacer: TransferPacer(), isOver: { false })

    private let pacer: TransferPacer
    private let isOver: @Sendable () -> Bool

    private init(pacer: TransferPacer, isOver: @escaping @Sendable () -> Bool) {
        self.pacer = pacer
        self.isOver = isOver
    }

    init(_ pacer: TransferPacer, of connection: DataConnection) {
        self.init(pacer: pacer) { connection.isClosed }
    }

    /// Waits until some of `count` bytes may move, and returns their number.
    /// - Throws: `not-connected` once the connection is closed.
    func room(for count: Int) throws(EarshotError) -> Int {
        guard let room = self.pacer.room(for: count, until: self.isOver) else { throw DataConnection.lost }
        return room
    }

    /// Records that bytes have moved.
    func moved(_ count: Int) { self.pacer.moved(count) }
}
