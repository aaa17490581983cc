import EarshotCore
import Synchronization

/// The number of moved bytes of a stream, and their rate. The mover writes it, and any caller reads it.
final class StreamMeter: Sendable {
    private struct State {
        var transferred: UInt64 = 0
        var rate = RateMeter()
    }

    private let timers: Timers
    private let state = Mutex(State())

    init(_ timers: Timers) {
        self.timers = timers
    }

    func add(_ bytes: Int) {
        let now = self.timers.now
        self.state.withLock { state in
            state.transferred &+= UInt64(bytes)
            state.rate.add(UInt64(bytes), at: now)
        }
    }

    var transferred: UInt64 { self.state.withLock { $0.transferred } }

    func bytesPerSecond(at now: MonotonicInstant) -> UInt64 { self.state.withLock { $0.rate.bytesPerSecond(at: now) } }
}
