internal import EarshotSafety

/// A setting that has a value, and where that comes from: what `--check-config` prints.
struct SettingSource: Sendable, Hashable, CustomStringConvertible {
    /// Such as `control.group`, or `discovery.info.room`.
    let name: String
    let value: SettingValue

    /// `NAME = VALUE (ORIGIN)`, on one line.
    var description: String { "\(self.name) = \(self.value.text.escapedForDisplay) (\(self.value.origin.words))" }
}

extension SettingOrigin {
    /// Where a value comes from, in words.
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
    /// The values that stand, without those that are not set.
    var sources: [SettingSource] {
        let values = self.values
        let settings = SettingKey.allCases.compactMap { key in values[key].map { SettingSource(name: key.rawValue, value: $0) } }
        let info = self.infoPairs.map {
            SettingSource(name: "\(SettingKey.infoSection).\($0.key.escapedForDisplay)", value: $0.value)
        }
        return settings + info
    }
}
