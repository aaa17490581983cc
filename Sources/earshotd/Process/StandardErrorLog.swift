internal import EarshotControl
internal import EarshotSafety
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import Synchronization

/// Log lines on standard error: one entry is one line, whatever a peer put into it.
///
/// Under systemd the journal keeps the time and reads the priority from a `<N>` prefix (sd-daemon(3)); elsewhere each line begins with the
/// time and the level. At most 60 lines a minute a label, so that no stranger can fill a disk with failures; what was left out is counted.
struct StandardErrorLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// The daemon's level, which may change at any time, unless somebody set another for this logger.
    var logLevel: Logger.Level {
        get { self.ownLevel ?? self.level.value }
        set { self.ownLevel = newValue }
    }

    private var ownLevel: Logger.Level?
    private let level: LogLevel
    private let label: String
    private let isJournal: Bool
    private let limiter: LogLimiter

    init(label: String, level: LogLevel, isJournal: Bool, limiter: LogLimiter) {
        self.level = level
        self.label = label
        self.isJournal = isJournal
        self.limiter = limiter
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        // Whoever asked for debugging wants all of it; the end of the world is always told.
        if event.level >= .info && event.level < .critical {
            switch self.limiter.admit(self.label, now: .now) {
            case .write: break
            case .writeAfter(let dropped): self.write(.warning, "\(dropped) lines were left out: more than 60 a minute", [:])
            case .drop: return
            }
        }
        var metadata = self.metadata
        if let provided = self.metadataProvider?.get() { metadata.merge(provided) { _, new in new } }
        if let own = event.metadata { metadata.merge(own) { _, new in new } }
        if let error = event.error { metadata["error"] = "\(error)" }
        self.write(event.level, event.message.description, metadata)
    }

    private func write(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) {
        let line = Self.line(level, self.label, message, metadata, time: self.isJournal ? nil : Date())
        var bytes = Array(line.utf8)
        // One call, so that lines of several threads do not mix; a reader that is gone is no reason to stop.
        _ = Glibc.write(STDERR_FILENO, &bytes, bytes.count)
    }

    /// The line with its end; without a time it is one for the journal.
    static func line(_ level: Logger.Level, _ label: String, _ message: String, _ metadata: Logger.Metadata, time: Date?) -> String {
        let start = time.map { "\(ControlDate.string(from: $0)) \(level.rawValue) " } ?? "<\(Self.priority(level))>"
        let values = metadata.sorted { $0.key < $1.key }.map { " \($0.key.escapedForDisplay)=\(Self.shown($0.value))" }
        return start + label + ": " + message.escapedForDisplay + values.joined() + "\n"
    }

    private static func shown(_ value: Logger.MetadataValue) -> String {
        let text = "\(value)".escapedForDisplay
        // Quoted where the end would be unclear.
        guard text.isEmpty || text.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else { return text }
        return "\"" + text.replacing("\"", with: "\\\"") + "\""
    }

    /// syslog(3)'s numbers.
    private static func priority(_ level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }

    /// Whether standard error is the journal's stream (systemd.exec(5), `JOURNAL_STREAM`), and not somebody's redirection.
    static func standardErrorIsJournal(_ environment: [String: String]) -> Bool {
        guard let inode = environment["JOURNAL_STREAM"]?.split(separator: ":").last else { return false }
        // The kernel's name of the socket behind the descriptor holds its inode (proc_pid_fd(5)).
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/self/fd/2", &buffer, buffer.count)
        guard count > 0 else { return false }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) == "socket:[\(inode)]"
    }
}

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

/// Counts lines by label and minute.
final class LogLimiter: Sendable {
    /// What to do with a line.
    enum Verdict: Sendable, Hashable {
        case write
        /// A new minute has begun after one that was too full.
        case writeAfter(dropped: Int)
        case drop
    }

    /// Lines a label may write in a minute.
    static let limit = 60

    private struct Minute {
        var start: ContinuousClock.Instant
        var count = 0
        var dropped = 0
    }

    private let minutes = Mutex<[String: Minute]>([:])

    init() {}

    func admit(_ label: String, now: ContinuousClock.Instant) -> Verdict {
        self.minutes.withLock { minutes in
            var minute = minutes[label] ?? Minute(start: now)
            defer { minutes[label] = minute }
            var verdict = Verdict.write
            if minute.start.duration(to: now) >= .seconds(60) {
                if minute.dropped > 0 { verdict = .writeAfter(dropped: minute.dropped) }
                // The line about what was left out counts too.
                minute = Minute(start: now, count: minute.dropped > 0 ? 1 : 0)
            }
            guard minute.count < Self.limit else {
                minute.dropped += 1
                return .drop
            }
            minute.count += 1
            return verdict
        }
    }
}
