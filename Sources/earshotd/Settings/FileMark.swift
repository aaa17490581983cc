/// Identifies the contents of the files that settings name, at the time when the settings were read.
///
/// A file that was renewed under the same path, as certificate tools do it, has another mark. Marks are comparable within one process only.
struct FileMark: Sendable, Hashable {
    let digest: Int

    /// Returns the mark of several files together, or `nil` if there are none. An unreadable file is reported where it is used.
    init?(_ paths: [String]) {
        guard !paths.isEmpty else { return nil }
        var hasher = Hasher()
        for path in paths { hasher.combine(try? SettingsFiles.read(path, mustExist: false)) }
        self.digest = hasher.finalize()
    }
}
