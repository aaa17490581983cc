internal import EarshotCoding
internal import EarshotSafety
internal import FoundationEssentials
internal import Logging

/// A log entry and its written forms, escaped, whatever the source of its text.
struct LogLine: Sendable {
    /// The place in the source code.
    struct Place: Sendable {
        let file: String
        let line: UInt
        let function: String
    }

    /// The longest line, and the longest value of a field, in bytes: the most that a pipe writes atomically (pipe(7), `PIPE_BUF`).
    static let byteLimit = 4096

    let level: Logger.Level
    let label: String
    let message: String
    var metadata: Logger.Metadata = [:]
    var place: Place?

    /// The entry on one line: the label, the message and the metadata.
    var text: String { "\(self.label): \(self.words)" }

    private var words: String {
        let values = self.metadata.sorted { $0.key < $1.key }.map { " \($0.key.escapedForDisplay)=\(Self.shown($0.value))" }
        return self.message.escapedForDisplay + values.joined()
    }

    /// A line with the time and the level.
    func line(at time: Date) -> String {
        Self.cut("\(DateText.string(from: time)) \(self.level.rawValue) \(self.text)", to: Self.byteLimit - 1) + "\n"
    }

    /// A line for the journal's stream, with the priority as its prefix.
    var journalLine: String {
        Self.cut("<\(self.priority)>\(self.text)", to: Self.byteLimit - 1) + "\n"
    }

    /// An entry for the journal's socket. The metadata are also separate fields, with the prefix `EARSHOT_`.
    var journalEntry: JournalEntry {
        var entry = JournalEntry()
        // The journal shows the identifier before the message, so the message omits it.
        entry.add("MESSAGE", Self.cut(self.label == DaemonLabel.name ? self.words : self.text, to: Self.byteLimit))
        entry.add("PRIORITY", "\(self.priority)")
        entry.add("SYSLOG_IDENTIFIER", DaemonLabel.name)
        entry.add("EARSHOT_LOGGER", self.label)
        if let place {
            entry.add("CODE_FILE", place.file)
            entry.add("CODE_LINE", "\(place.line)")
            entry.add("CODE_FUNC", place.function)
        }
        for (key, value) in self.metadata.sorted(by: { $0.key < $1.key }) {
            entry.add("EARSHOT_\(key)", Self.cut("\(value)".escapedForDisplay, to: Self.byteLimit))
        }
        return entry
    }

    private static func shown(_ value: Logger.MetadataValue) -> String {
        let text = "\(value)".escapedForDisplay
        // Quotes a value whose end would be unclear.
        guard text.isEmpty || text.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else { return text }
        return "\"" + text.replacing("\"", with: "\\\"") + "\""
    }

    /// Returns at most `limit` bytes of the text, in whole characters.
    private static func cut(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        let end = "..."
        var bytes = Array(text.utf8.prefix(limit - end.utf8.count))
        while !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self) + end
    }

    /// The level's number in syslog(3).
    private var priority: Int {
        switch self.level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

/// The label of the daemon's own logger, and its identifier in the journal.
enum DaemonLabel {
    static let name = "earshotd"
}
