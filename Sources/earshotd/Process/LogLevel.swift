internal import Logging
internal import Synchronization

/// The level of every logger of the daemon.
final class LogLevel: Sendable {
    private let state: Mutex<Logger.Level>

    init(_ level: Logger.Level) {
        self.state = Mutex(level)
    }

    var value: Logger.Level {
        get { self.state.withLock { $0 } }
        set { self.state.withLock { $0 = newValue } }
    }
}
