/// What files held when the settings that name them were read. One that was renewed under its old path, as certificate tools do it, has
/// another mark, which means something in this process alone.
struct FileMark: Sendable, Hashable {
    let digest: Int

    /// The mark of several files together; `nil` without any. What cannot be read is the affair of whoever needs it.
    init?(_ files: [SettingValue]) {
        guard !files.isEmpty else { return nil }
        var hasher = Hasher()
        for file in files { hasher.combine(try? SettingsFiles.read(file.text, mustExist: false)) }
        self.digest = hasher.finalize()
    }
}
