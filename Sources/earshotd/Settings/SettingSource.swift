internal import EarshotSafety

/// A setting with its value and the place of that value: a line of `--check-config`.
struct SettingSource: Sendable, Hashable, CustomStringConvertible {
    /// For example `control.group` or `discovery.info.room`.
    let name: String
    /// The value as it is shown.
    let value: SettingValue

    /// `NAME = VALUE (ORIGIN)`, on one line.
    var description: String { "\(self.name) = \(self.value.text.escapedForDisplay) (\(self.value.origin.words))" }
}

extension SettingOrigin {
    /// The place of a value, in words.
    fileprivate var words: String {
        switch self {
        case .flag: "option \(self)"
        case .environment(let name): "environment variable \(name)"
        case .file: "\(self)"
        case .unit(let name): "the unit, by \(name)"
        case .defaults: "default"
        }
    }
}

extension SettingLayers {
    /// The values that apply, without the settings that are not set.
    var sources: [SettingSource] {
        let values = self.values
        let settings = Setting.all.compactMap { setting in
            values[setting.name].map { SettingSource(name: setting.name, value: setting.shown($0)) }
        }
        let info = self.infoPairs.map { SettingSource(name: "\(Setting.infoSection).\($0.key.escapedForDisplay)", value: $0.value) }
        return settings + info
    }
}
