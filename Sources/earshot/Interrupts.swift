import Dispatch
import Glibc
import Synchronization

/// Ctrl-C and the other signals that ask to stop.
///
/// A command ends at once with 128 + the signal's number, unless it has something to take back (an invitation, a transfer): then that
/// is done first, within `cleanupSeconds`; a second signal does not wait for it.
enum Interrupts {
    /// How long taking back may last, in seconds: the daemon is on this machine, so this is plenty.
    static let cleanupSeconds = 3
    /// What comes this soon after the first signal, in milliseconds, is the same request: `timeout` and other wrappers signal the command
    /// and then its whole group, so that one Ctrl-C arrives twice.
    static let sameRequestMilliseconds = 500

    private struct State {
        /// Whoever wants to do something before the end.
        var listener: AsyncStream<CInt>.Continuation?
        /// When taking back began.
        var began: ContinuousClock.Instant?
    }

    private static let state = Mutex(State())

    /// Takes over SIGINT, SIGTERM and SIGHUP; called once, at the start.
    static func install() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                // The handler holds its source: nothing else does, and it is to live as long as the process.
                withExtendedLifetime(source) { Self.received(number) }
            }
            source.resume()
        }
    }

    private static func received(_ number: CInt) {
        // The first signal takes the listener away, so that a later one finds none.
        let (listener, isSameRequest) = Self.state.withLock { state in
            let isSame = state.began.map { .now - $0 < .milliseconds(Self.sameRequestMilliseconds) } ?? false
            defer { state.listener = nil }
            if state.listener != nil { state.began = .now }
            return (state.listener, isSame)
        }
        guard let listener else {
            if isSameRequest { return }
            ProgressLine.leave()
            _exit(128 + number)
        }
        listener.yield(number)
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.cleanupSeconds)) { _exit(128 + number) }
    }

    /// Does `operation`; a signal meanwhile does `takeBack` first and then ends the process.
    static func takingBack<Result: Sendable>(
        _ takeBack: @escaping @Sendable () async -> Void, _ operation: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let (signals, listener) = AsyncStream.makeStream(of: CInt.self)
        Self.state.withLock { $0.listener = listener }
        defer { Self.state.withLock { $0.listener = nil } }
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                for await number in signals {
                    await takeBack()
                    ProgressLine.leave()
                    _exit(128 + number)
                }
                return nil
            }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }
}
