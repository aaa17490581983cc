import EarshotSafety
import Synchronization

/// Says on standard error what of the daemon's answers was left out because this version cannot read it; each once, however often a
/// watcher meets it.
final class UnreadableRemarks: Sendable {
    /// So many are remembered; a command that meets more is told of no further one.
    static let limit = 1000

    private let told = Mutex<Set<String>>([])

    /// Says it, unless it was said before.
    func tell(_ part: String) {
        let isNew = self.told.withLock { told in told.count < Self.limit && told.insert(part).inserted }
        if isNew { Standard.note(Self.line(part)) }
    }

    /// The words, escaped.
    static func line(_ part: String) -> String { "cannot be read, and is left out: \(part.escapedForDisplay)" }
}
