internal import Logging

/// The daemon's log: one entry is one line, or one entry of the journal, whatever a peer put into it.
///
/// On standard error each line begins with the time and the level. Where standard error is the journal's, entries go to the journal
/// itself, with the metadata as fields; what it does not take goes to standard error with the `<N>` prefix of sd-daemon(3). At most 60
/// lines a minute a label, so that no stranger can fill a disk with failures; what was left out is counted.
struct DaemonLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// The daemon's level, which may change at any time, unless another was set for this logger.
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
        // Debugging wants all of it; the end of the world is always told.
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
