import EarshotClient
import EarshotSafety

/// The sentences about a change of settings: which of them take effect, and when.
struct SettingsReport {
    /// Escaped sentences.
    let lines: [String]

    /// `running` are the settings with which the daemon runs after the change; `nil` without a daemon.
    init(
        _ change: SettingsChange, _ outcome: SettingsChange.Outcome, running: ControlAPI.SettingList?
    ) {
        let file = "\(change.place.directory)/\(SettingsChange.dropIn)".escapedForDisplay
        var lines: [String] = []
        for edit in change.edits {
            let key = edit.key.escapedForDisplay
            if edit.spelling != nil {
                lines.append("set \(key) in \(file)")
            } else {
                lines.append(outcome.missing.contains(edit.key) ? "\(file) does not set \(key)" : "removed \(key) from \(file)")
            }
            if let other = Self.override(edit, outcome.files.setting(edit.key), running?.setting(edit.key), file) {
                lines.append("\(key): \(other)")
            }
            // A change back to the value in effect needs no restart.
            if let next = running?.setting(edit.key)?.next {
                let value = next.isEmpty ? "the default" : next.escapedForDisplay
                let restart = SettingsPlace.restart(change.place.path).map { ": \($0)" } ?? ""
                lines.append("\(key) becomes \(value) when the daemon is restarted\(restart)")
            }
        }
        if running == nil { lines.append("no daemon runs with these settings: they take effect when it is started") }
        self.lines = lines
    }

    /// Returns which place decides about a key other than the drop-in. A place is escaped already.
    private static func override(
        _ edit: SettingsChange.Edit, _ inFiles: ControlAPI.Setting?, _ running: ControlAPI.Setting?, _ file: String
    ) -> String? {
        if let running, let place = running.place, running.source == .known(.option) || running.source == .known(.environment) {
            let scope = running.source == .known(.option) ? "on the daemon's command line" : "in the daemon's environment"
            return "\(place) \(scope) overrides the files, so that the value stays '\(running.value.escapedForDisplay)'"
        }
        guard let inFiles, inFiles.source == .known(.file), let place = inFiles.place, !place.hasPrefix("\(file):") else { return nil }
        let value = inFiles.value.escapedForDisplay
        return edit.spelling == nil ? "\(place) still sets it to '\(value)'" : "\(place) sets it again, so that its value stays '\(value)'"
    }
}
