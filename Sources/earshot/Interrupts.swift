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

    /// Whoever wants to do something before the end.
    private static let listener = Mutex<AsyncStream<CInt>.Continuation?>(nil)

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
        // The first signal takes the listener away, so that a second one finds none.
        let listener = Self.listener.withLock { held in
            defer { held = nil }
            return held
        }
        guard let listener else {
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
        Self.listener.withLock { $0 = listener }
        defer { Self.listener.withLock { $0 = nil } }
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
