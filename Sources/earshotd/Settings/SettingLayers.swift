internal import EarshotSafety

/// The values that were given, by layer: flags override the environment, which overrides the files, which override a packaged unit.
struct SettingLayers: Sendable {
    /// One pair of `[discovery.info]`. An empty value removes the pair of a lower layer or an earlier line.
    struct InfoPair: Sendable, Hashable {
        let key: String
        let value: SettingValue

        var isReset: Bool { self.value.text.isEmpty }
    }

    /// One value for a key. An empty value in a file restores the default, as in systemd's files.
    struct Assignment: Sendable {
        let setting: Setting
        let value: SettingValue
        let isReset: Bool
    }

    /// The values of one layer, in order. The last of several values for a key applies.
    struct Layer: Sendable {
        var assignments: [Assignment] = []
        var info: [InfoPair] = []
    }

    var flags = Layer()
    var environment = Layer()
    var file = Layer()
    var unit = Layer()

    var lowestFirst: [Layer] { [self.unit, self.file, self.environment, self.flags] }

    /// The value that applies to each setting that is set, by the setting's name.
    var values: [String: SettingValue] {
        self.lowestFirst.flatMap(\.assignments).reduce(into: [:]) { $0[$1.setting.name] = $1.isReset ? nil : $1.value }
    }

    /// The pairs of `[discovery.info]` that apply, sorted by key. Keys that differ only in case are the same.
    var infoPairs: [InfoPair] {
        let pairs = self.lowestFirst.flatMap(\.info).reduce(into: [String: InfoPair]()) {
            $0[$1.key.lowercased()] = $1.isReset ? nil : $1
        }
        return pairs.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Reads the flags. An empty flag is a value, and an invalid one.
    mutating func readFlags(_ flags: SettingsLoader.Flags) {
        for setting in Setting.all {
            guard let flag = setting.flag, let text = flags[keyPath: flag.text] else { continue }
            let value = SettingValue(text: text, origin: .flag(flag.name))
            self.flags.assignments.append(Assignment(setting: setting, value: value, isReset: false))
        }
    }

    /// Reads the variables `EARSHOT_SECTION_KEY` that name a setting, and a unit's defaults, `EARSHOT_UNIT_SECTION_KEY`. Other variables
    /// are ignored. An empty variable only removes the unit's value.
    mutating func readEnvironment(_ variables: [String: String]) {
        self.unit = Self.layer(of: variables, prefix: Setting.unitPrefix) { .unit($0) }
        self.environment = Self.layer(of: variables, prefix: Setting.environmentPrefix) { .environment($0) }
        self.unit.assignments += self.environment.assignments.filter(\.isReset)
        self.environment.assignments.removeAll(where: \.isReset)
        self.unit.info += self.environment.info.filter(\.isReset)
        self.environment.info.removeAll(where: \.isReset)
    }

    private static func layer(of variables: [String: String], prefix: String, _ origin: (String) -> SettingOrigin) -> Layer {
        var layer = Layer()
        for setting in Setting.all {
            let name = prefix + setting.environmentName
            guard let text = variables[name] else { continue }
            let value = SettingValue(text: text, origin: origin(name))
            layer.assignments.append(Assignment(setting: setting, value: value, isReset: text.isEmpty))
        }
        let infoPrefix = prefix + "DISCOVERY_INFO_"
        // Sorted, because a dictionary has no order, and the last pair applies.
        for (name, text) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(infoPrefix) && name != infoPrefix {
            let value = SettingValue(text: text, origin: origin(name.escapedForDisplay))
            layer.info.append(InfoPair(key: name.dropFirst(infoPrefix.count).lowercased(), value: value))
        }
        return layer
    }

    /// Reads the entries of a file, which override those of the files before it.
    mutating func readFile(_ file: INIFile, path: String) throws(SettingsError) {
        let shownPath = path.escapedForDisplay
        for header in file.headers { try Setting.check(header, .file(path: shownPath, line: header.line)) }
        for entry in file.entries {
            let value = SettingValue(text: entry.value, origin: .file(path: shownPath, line: entry.line))
            if entry.section == Setting.infoSection {
                self.file.info.append(InfoPair(key: entry.key, value: value))
                continue
            }
            let setting = try Setting.find(entry, value.origin)
            self.file.assignments.append(Assignment(setting: setting, value: value, isReset: entry.value.isEmpty))
        }
    }
}
