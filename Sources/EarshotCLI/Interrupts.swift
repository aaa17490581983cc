import Dispatch
import Glibc
import Synchronization

/// Ctrl-C and the other signals that ask to stop.
///
/// A command ends at once with 128 + the signal's number, unless it has something to take back (an invitation, a transfer): then that
/// is done first, within `cleanupSeconds`. A second signal only shortens that, to `impatientMilliseconds`; a third ends it at once. Where
/// it did not come to its end, that is said.
enum Interrupts {
    /// How long taking back may last, in seconds: the daemon is on this machine, so this is plenty.
    static let cleanupSeconds = 3
    /// What comes this soon after the first signal, in milliseconds, is the same request: `timeout` and other wrappers signal the command
    /// and then its whole group, so that one Ctrl-C arrives twice.
    static let sameRequestMilliseconds = 500
    /// How long taking back may last once a second signal has come, in milliseconds.
    static let impatientMilliseconds = 500

    /// What has come so far.
    struct State {
        /// The command that has something to do before the end.
        var listener: AsyncStream<CInt>.Continuation?
        /// When the last signal came that was not the same request once more.
        var last: ContinuousClock.Instant?
        /// Whether a second one has come.
        var isImpatient = false

        /// What is to be done about a signal.
        mutating func received(at now: ContinuousClock.Instant) -> Action {
            if let listener = self.listener {
                // So that a later one finds none.
                self.listener = nil
                self.last = now
                return .takeBack(listener)
            }
            guard let last = self.last else { return .end }
            if now - last < .milliseconds(Interrupts.sameRequestMilliseconds) { return .ignore }
            self.last = now
            defer { self.isImpatient = true }
            return self.isImpatient ? .giveUp : .hurry
        }
    }

    /// What a signal does.
    enum Action {
        case takeBack(AsyncStream<CInt>.Continuation)
        case hurry
        /// With something not taken back.
        case giveUp
        /// With nothing to take back.
        case end
        case ignore
    }

    private static let state = Mutex(State())

    /// What is taken over: SIGINT, SIGTERM, and SIGHUP unless the command was started with that ignored, as by nohup(1).
    static let numbers = Self.numbers(isIgnored: Self.isIgnored)

    static func numbers(isIgnored: (CInt) -> Bool) -> [CInt] {
        [SIGINT, SIGTERM] + (isIgnored(SIGHUP) ? [] : [SIGHUP])
    }

    /// Whether this process ignores the signal.
    static func isIgnored(_ number: CInt) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is an address that no function has, and functions cannot be compared.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Takes them over; called once, at the start.
    static func install() {
        for number in Self.numbers {
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
        switch Self.state.withLock({ $0.received(at: .now) }) {
        case .takeBack(let listener):
            listener.yield(number)
            Self.giveUp(number, after: .seconds(Self.cleanupSeconds))
        case .hurry: Self.giveUp(number, after: .milliseconds(Self.impatientMilliseconds))
        case .giveUp: Self.giveUp(number)
        case .end:
            ProgressLine.leave()
            _exit(128 + number)
        case .ignore: break
        }
    }

    /// The reader of standard output has gone: as a signal that asks to stop.
    static func outputClosed() { Self.received(SIGPIPE) }

    private static func giveUp(_ number: CInt, after time: DispatchTimeInterval) {
        DispatchQueue.global().asyncAfter(deadline: .now() + time) { Self.giveUp(number) }
    }

    private static func giveUp(_ number: CInt) -> Never {
        Standard.note("interrupted before everything was cancelled; some operations may continue")
        _exit(128 + number)
    }

    /// Does `operation`; a signal meanwhile does `takeBack` first and then ends the process. Where that throws, it is said that what was
    /// begun may go on.
    static func takingBack<Result: Sendable>(
        _ takeBack: @escaping @Sendable () async throws -> Void, _ operation: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await Self.takingBackUnlessOver(
            {
                try await takeBack()
                return true
            }, operation)
    }

    /// The same, where it may be too late to take anything back: `takeBack` returns `false` then, and the outcome of `operation` stands.
    static func takingBackUnlessOver<Result: Sendable>(
        _ takeBack: @escaping @Sendable () async throws -> Bool, _ operation: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let (signals, listener) = AsyncStream.makeStream(of: CInt.self)
        Self.state.withLock { $0.listener = listener }
        defer { Self.state.withLock { $0.listener = nil } }
        return try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                for await number in signals {
                    do {
                        guard try await takeBack() else { return nil }
                    } catch {
                        Self.giveUp(number)
                    }
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
