import CLinux
import Dispatch
import Glibc
import Synchronization

/// Ctrl-C and the other signals that ask to stop.
///
/// A command ends at once with exit status 128 + the signal's number, unless it has something to cancel (an invitation, a transfer). Then
/// the command cancels first, within `cleanupSeconds`. A second signal shortens this time to `impatientMilliseconds`; a third ends the
/// command at once. If the cancellation did not finish, the command reports that.
enum Interrupts {
    /// The longest time for cancelling, in seconds. The daemon is on this machine, so this is plenty.
    static let cleanupSeconds = 3
    /// A signal this soon after the first one, in milliseconds, counts as the same request: `timeout` and other wrappers signal the command
    /// and then its whole group, so that one Ctrl-C arrives twice.
    static let sameRequestMilliseconds = 500
    /// The longest time for cancelling after a second signal, in milliseconds.
    static let impatientMilliseconds = 500

    /// The signals so far.
    struct State {
        /// The command that cancels something before the process ends.
        var listener: AsyncStream<CInt>.Continuation?
        /// The command that handles every signal itself, one after the other.
        var follower: AsyncStream<CInt>.Continuation?
        /// The time of the last signal, not counting repetitions of the same request.
        var last: ContinuousClock.Instant?
        /// Whether a second signal has arrived.
        var isImpatient = false

        /// Records a signal and returns the resulting action.
        mutating func received(at now: ContinuousClock.Instant) -> Action {
            if let listener = self.listener {
                // A later signal must not find a listener.
                self.listener = nil
                self.last = now
                return .takeBack(listener)
            }
            if let last = self.last, now - last < .milliseconds(Interrupts.sameRequestMilliseconds) { return .ignore }
            if let follower = self.follower {
                self.last = now
                return .pass(follower)
            }
            guard self.last != nil else { return .end }
            self.last = now
            defer { self.isImpatient = true }
            return self.isImpatient ? .giveUp : .hurry
        }
    }

    /// The effect of a signal.
    enum Action {
        case takeBack(AsyncStream<CInt>.Continuation)
        case pass(AsyncStream<CInt>.Continuation)
        case hurry
        /// Ends the process before the cancellation has finished.
        case giveUp
        /// Ends the process; there is nothing to cancel.
        case end
        case ignore
    }

    private static let state = Mutex(State())

    /// The signals that the command handles: SIGINT, SIGTERM, and SIGHUP unless SIGHUP was ignored at the start, as by nohup(1).
    static let numbers = Self.numbers(isIgnored: Self.isIgnored)

    static func numbers(isIgnored: (CInt) -> Bool) -> [CInt] {
        [SIGINT, SIGTERM] + (isIgnored(SIGHUP) ? [] : [SIGHUP])
    }

    /// Whether this process ignores the signal.
    static func isIgnored(_ number: CInt) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        // SIG_IGN is an address that no function has, and Swift cannot compare functions.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Installs the handlers. Called once, at the start.
    static func install() {
        for number in Self.numbers {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                // The handler is the only owner of its source, which must live as long as the process.
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
        case .pass(let follower): follower.yield(number)
        case .hurry: Self.giveUp(number, after: .milliseconds(Self.impatientMilliseconds))
        case .giveUp: Self.giveUp(number)
        case .end:
            ProgressLine.leave()
            _exit(128 + number)
        case .ignore: break
        }
    }

    /// Returns the signals from now on, until `unfollow()`. Meanwhile, signals do not end the process.
    static func follow() -> AsyncStream<CInt> {
        let (signals, follower) = AsyncStream.makeStream(of: CInt.self)
        Self.state.withLock { $0.follower = follower }
        return signals
    }

    /// Ends the stream of signals.
    static func unfollow() {
        Self.state.withLock { state in
            state.follower?.finish()
            state.follower = nil
        }
    }

    /// Ends the process by a signal, as if it were not handled: service managers do not take that for a failure.
    static func end(by number: CInt) -> Never {
        ProgressLine.leave()
        earshot_die(number)
        _exit(128 + number)
    }

    /// Handles a closed standard output like a signal that asks to stop.
    static func outputClosed() { Self.received(SIGPIPE) }

    private static func giveUp(_ number: CInt, after time: DispatchTimeInterval) {
        DispatchQueue.global().asyncAfter(deadline: .now() + time) { Self.giveUp(number) }
    }

    private static func giveUp(_ number: CInt) -> Never {
        Standard.note("interrupted before everything was cancelled; some operations may continue")
        _exit(128 + number)
    }

    /// Runs `operation`. If a signal arrives meanwhile, runs `takeBack` and then ends the process. If `takeBack` throws, standard error
    /// reports that operations may continue.
    static func takingBack<Result: Sendable>(
        _ takeBack: @escaping @Sendable () async throws -> Void, _ operation: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await Self.takingBackUnlessOver(
            {
                try await takeBack()
                return true
            }, operation)
    }

    /// Like `takingBack`, for a `takeBack` that may be too late: if it returns `false`, the outcome of `operation` counts.
    /// While a command follows the signals itself, they do not stop `operation`: the command cancels it, or it fails, and `takeBack` runs.
    static func takingBackUnlessOver<Result: Sendable>(
        _ takeBack: @escaping @Sendable () async throws -> Bool, _ operation: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        guard !Self.state.withLock({ $0.follower != nil }) else {
            do {
                return try await operation()
            } catch {
                _ = try? await takeBack()
                throw error
            }
        }
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
