import EarshotSafety
import Synchronization

/// Reports on standard error the parts of the daemon's answers that this version cannot read and leaves out; each part once, however often
/// it occurs.
final class UnreadableRemarks: Sendable {
    /// The most parts that are remembered; further ones are not reported.
    static let limit = 1000

    private let told = Mutex<Set<String>>([])

    /// Reports the part, unless it was reported before.
    func tell(_ part: String) {
        let isNew = self.told.withLock { told in told.count < Self.limit && told.insert(part).inserted }
        if isNew { Standard.note(Self.line(part)) }
    }

    /// The sentence, escaped.
    static func line(_ part: String) -> String { "skipped, because it cannot be read: \(part.escapedForDisplay)" }
}
