internal import EarshotSafety

/// The texts that were given, by layer: flags over the environment over the file over what a packaged unit gives.
struct SettingLayers: Sendable {
    /// One pair of `[discovery.info]`; an empty one takes back what was set before it, too.
    struct InfoPair: Sendable, Hashable {
        let key: String
        let value: SettingValue

        var isReset: Bool { self.value.text.isEmpty }
    }

    /// One value for a key; an empty one takes back what was set before it, as in systemd's files.
    struct Assignment: Sendable, Hashable {
        let key: SettingKey
        let value: SettingValue
        let isReset: Bool
    }

    /// What one layer says, in order: of several values for a key the last one stands.
    struct Layer: Sendable {
        var assignments: [Assignment] = []
        var info: [InfoPair] = []
    }

    var flags = Layer()
    var environment = Layer()
    var file = Layer()
    var unit = Layer()

    var lowestFirst: [Layer] { [self.unit, self.file, self.environment, self.flags] }

    /// The values that stand, with where they come from.
    var values: [SettingKey: SettingValue] {
        self.lowestFirst.flatMap(\.assignments).reduce(into: [:]) { $0[$1.key] = $1.isReset ? nil : $1.value }
    }

    /// The pairs of `[discovery.info]` that stand, by their keys, which differ by more than case.
    var infoPairs: [InfoPair] {
        let pairs = self.lowestFirst.flatMap(\.info).reduce(into: [String: InfoPair]()) {
            $0[$1.key.lowercased()] = $1.isReset ? nil : $1
        }
        return pairs.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Takes a flag where it was given; an empty one is a value too, and a wrong one.
    mutating func setFlag(_ name: String, _ key: SettingKey, _ text: String?) {
        guard let text else { return }
        self.flags.assignments.append(Assignment(key: key, value: SettingValue(text: text, origin: .flag(name)), isReset: false))
    }

    /// Takes the variables `EARSHOT_SECTION_KEY` that name a setting, and `EARSHOT_UNIT_SECTION_KEY`, which are a unit's own
    /// defaults. Others are ignored, and so are empty ones, but that they take back the unit's.
    mutating func readEnvironment(_ variables: [String: String]) {
        self.unit = Self.layer(of: variables, prefix: SettingKey.unitPrefix) { .unit($0) }
        self.environment = Self.layer(of: variables, prefix: SettingKey.environmentPrefix) { .environment($0) }
        self.unit.assignments += self.environment.assignments.filter(\.isReset)
        self.environment.assignments.removeAll(where: \.isReset)
        self.unit.info += self.environment.info.filter(\.isReset)
        self.environment.info.removeAll(where: \.isReset)
    }

    private static func layer(of variables: [String: String], prefix: String, _ origin: (String) -> SettingOrigin) -> Layer {
        var layer = Layer()
        for key in SettingKey.allCases {
            let name = prefix + key.environmentName
            guard let text = variables[name] else { continue }
            layer.assignments.append(
                Assignment(key: key, value: SettingValue(text: text, origin: origin(name)), isReset: text.isEmpty))
        }
        let infoPrefix = prefix + "DISCOVERY_INFO_"
        // Sorted, so that the same environment is always read alike.
        for (name, text) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(infoPrefix) && name != infoPrefix {
            let value = SettingValue(text: text, origin: origin(name.escapedForDisplay))
            layer.info.append(InfoPair(key: name.dropFirst(infoPrefix.count).lowercased(), value: value))
        }
        return layer
    }

    /// Takes a file's entries, over those of the files before it.
    mutating func readFile(_ file: INIFile, path: String) throws(SettingsError) {
        let shownPath = path.escapedForDisplay
        for header in file.headers { try SettingKey.check(header, .file(path: shownPath, line: header.line)) }
        for entry in file.entries {
            let origin = SettingOrigin.file(path: shownPath, line: entry.line)
            if entry.section == SettingKey.infoSection {
                self.file.info.append(InfoPair(key: entry.key, value: SettingValue(text: entry.value, origin: origin)))
                continue
            }
            let value = SettingValue(text: entry.value, origin: origin)
            let key = try SettingKey.find(entry, origin)
            self.file.assignments.append(Assignment(key: key, value: value, isReset: entry.value.isEmpty))
        }
    }
}
