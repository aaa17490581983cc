/// The text of a setting with its place.
struct SettingValue: Sendable, Hashable {
    let text: String
    let origin: SettingOrigin

    /// Returns an error about this value: `ORIGIN: 'value' is not ...`.
    func error(_ expected: String) -> SettingsError {
        SettingsError(self.origin, "'\(INIFile.shown(self.text))' is not \(expected)")
    }
}
