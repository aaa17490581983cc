internal import Earshot
internal import EarshotClient
internal import EarshotSafety

extension ControlAPI.SettingList {
    /// Creates the API's value of loaded settings. `started` are the settings of the start, which still apply where a change needs a restart.
    /// Without a running daemon, its name and its socket are unknown if they are not set.
    init(_ current: SettingsLoader.Result, started: SettingsLoader.Result, isRunning: Bool) {
        let settings = Setting.all.map { setting in
            let waits = setting.needsRestart && !setting.isEqual(current.settings, started.settings)
            let loaded = waits ? started : current
            return ControlAPI.Setting(
                setting, loaded.source(of: setting.name) ?? (isRunning ? loaded.derived(setting) : nil),
                next: waits ? current.source(of: setting.name)?.text ?? setting.defaultText : nil)
        }
        let info = current.sources.filter { $0.name.hasPrefix("\(Setting.infoSection).") }.map(ControlAPI.Setting.init)
        self.init(configuration: current.configuration.map(SettingsLoader.absolute), settings: settings + info)
    }
}

extension SettingsLoader.Result {
    fileprivate func source(of name: String) -> SettingValue? { self.sources.first { $0.name == name }?.value }

    /// Returns the value that a running daemon uses for a setting that is not set and has no fixed default; `nil` for other settings.
    fileprivate func derived(_ setting: Setting) -> SettingValue? {
        if setting.path == \Settings.node.displayName {
            return SettingValue(text: self.settings.node.displayName.description, origin: .defaults)
        }
        return setting.path == \Settings.socket ? SettingValue(text: self.socket, origin: .defaults) : nil
    }
}

extension ControlAPI.Setting {
    /// Creates the API's value of a setting. `value` is `nil` if the setting is not set; `next` applies after a restart.
    fileprivate init(_ setting: Setting, _ value: SettingValue?, next: String?) {
        self.init(
            key: setting.name, value: value?.text ?? setting.defaultText, source: .known(.init(value?.origin ?? .defaults)),
            place: value?.origin.place, choices: setting.words, needsRestart: setting.needsRestart, next: next)
    }

    /// Creates the API's value of a pair of discovery info.
    fileprivate init(_ pair: SettingSource) {
        self.init(
            key: pair.name, value: pair.value.text, source: .known(.init(pair.value.origin)), place: pair.value.origin.place, choices: [],
            needsRestart: false)
    }
}

extension ControlAPI.Setting.Source {
    fileprivate init(_ origin: SettingOrigin) {
        self =
            switch origin {
            case .flag: .option
            case .environment: .environment
            case .file: .file
            case .unit: .unit
            case .defaults: .default
            }
    }
}

extension SettingOrigin {
    /// The place for other processes: a file's path is absolute.
    fileprivate var place: String? {
        switch self {
        case .flag, .environment, .unit: self.description
        case .file(let path, let line): SettingOrigin.file(path: SettingsLoader.absolute(path), line: line).description
        case .defaults: nil
        }
    }
}
