internal import Logging

/// The daemon's log: one entry is one line, or one entry of the journal, whatever text a peer puts into it.
///
/// On standard error, each line begins with the time and the level. If standard error is the journal's stream, entries go to the journal's
/// socket, with the metadata as fields. Entries that the socket does not accept go to standard error with the `<N>` prefix of sd-daemon(3).
/// Each label may write at most 60 lines a minute, so that no stranger can fill the disk with failures; dropped lines are counted.
struct DaemonLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// The level: the daemon's level, which may change at any time, unless this logger has its own.
    var logLevel: Logger.Level {
        get { self.ownLevel ?? self.level.value }
        set { self.ownLevel = newValue }
    }

    private var ownLevel: Logger.Level?
    private let level: LogLevel
    private let label: String
    private let output: LogOutput
    private let limiter: LogLimiter

    init(label: String, level: LogLevel, output: LogOutput, limiter: LogLimiter) {
        self.level = level
        self.label = label
        self.output = output
        self.limiter = limiter
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        // Debug levels are not limited, and critical entries are always written.
        if event.level >= .info && event.level < .critical {
            switch self.limiter.admit(self.label, now: .now) {
            case .write: break
            case .writeAfter(let dropped):
                self.output.write(
                    LogLine(level: .warning, label: self.label, message: "\(dropped) lines were left out: more than 60 a minute"))
            case .drop: return
            }
        }
        var metadata = self.metadata
        if let provided = self.metadataProvider?.get() { metadata.merge(provided) { _, new in new } }
        if let own = event.metadata { metadata.merge(own) { _, new in new } }
        if let error = event.error { metadata["error"] = "\(error)" }
        self.output.write(
            LogLine(
                level: event.level, label: self.label, message: event.message.description, metadata: metadata,
                place: LogLine.Place(file: event.file, line: event.line, function: event.function)))
    }
}
