internal import EarshotCoding
internal import EarshotSafety
internal import FoundationEssentials
internal import Logging

/// One entry of the log, and how it is written down: escaped, wherever its words come from.
struct LogLine: Sendable {
    /// Where in the sources it was written.
    struct Place: Sendable {
        let file: String
        let line: UInt
        let function: String
    }

    /// The longest line, and the longest value of a field, in bytes: what a pipe takes whole or not at all (pipe(7), `PIPE_BUF`).
    static let byteLimit = 4096

    let level: Logger.Level
    let label: String
    let message: String
    var metadata: Logger.Metadata = [:]
    var place: Place?

    /// What it says, on one line: the label, the message and the metadata.
    var text: String { "\(self.label): \(self.words)" }

    private var words: String {
        let values = self.metadata.sorted { $0.key < $1.key }.map { " \($0.key.escapedForDisplay)=\(Self.shown($0.value))" }
        return self.message.escapedForDisplay + values.joined()
    }

    /// A line for a reader, with the time and the level before it.
    func line(at time: Date) -> String {
        Self.cut("\(DateText.string(from: time)) \(self.level.rawValue) \(self.text)", to: Self.byteLimit - 1) + "\n"
    }

    /// A line for the journal's stream, with the priority before it.
    var journalLine: String {
        Self.cut("<\(self.priority)>\(self.text)", to: Self.byteLimit - 1) + "\n"
    }

    /// An entry for the journal itself: the metadata are fields of their own too, `EARSHOT_` before their names.
    var journalEntry: JournalEntry {
        var entry = JournalEntry()
        // The journal puts the identifier before it, which need not be said twice.
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
        // Quoted where the end would be unclear.
        guard text.isEmpty || text.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else { return text }
        return "\"" + text.replacing("\"", with: "\\\"") + "\""
    }

    /// At most that many bytes, of whole characters.
    private static func cut(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        let end = "..."
        var bytes = Array(text.utf8.prefix(limit - end.utf8.count))
        while !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self) + end
    }

    /// syslog(3)'s numbers.
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

/// The label of the daemon's own logger, which is its name in the journal.
enum DaemonLabel {
    static let name = "earshotd"
}
