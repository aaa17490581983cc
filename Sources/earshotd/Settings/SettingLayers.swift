internal import EarshotSafety

/// The texts that were given, by layer: flags over the environment over the file.
struct SettingLayers: Sendable {
    /// One pair of `[discovery.info]`.
    struct InfoPair: Sendable, Hashable {
        let key: String
        let value: SettingValue
    }

    /// One value for a key; an empty one takes back what was set before it in the same layer, as in systemd's files.
    struct Assignment: Sendable, Hashable {
        let key: SettingKey
        let value: SettingValue
        let isReset: Bool
    }

    /// What one layer says, in order: of several values for a key the last one stands.
    struct Layer: Sendable {
        var assignments: [Assignment] = []
        var info: [InfoPair] = []

        /// The values that stand.
        var values: [SettingKey: SettingValue] {
            self.assignments.reduce(into: [:]) { $0[$1.key] = $1.isReset ? nil : $1.value }
        }
    }

    var flags = Layer()
    var environment = Layer()
    var file = Layer()

    var lowestFirst: [Layer] { [self.file, self.environment, self.flags] }

    /// Takes a flag where it was given; an empty one is a value too, and a wrong one.
    mutating func setFlag(_ name: String, _ key: SettingKey, _ text: String?) {
        guard let text else { return }
        self.flags.assignments.append(Assignment(key: key, value: SettingValue(text: text, origin: .flag(name)), isReset: false))
    }

    /// Takes the variables `EARSHOT_SECTION_KEY` that name a setting; others, and empty ones, are ignored.
    mutating func readEnvironment(_ variables: [String: String]) throws(SettingsError) {
        for key in SettingKey.allCases {
            guard let text = variables[key.environmentName], !text.isEmpty else { continue }
            let value = SettingValue(text: text, origin: .environment(key.environmentName))
            self.environment.assignments.append(Assignment(key: key, value: value, isReset: false))
        }
        let prefix = "EARSHOT_DISCOVERY_INFO_"
        // Sorted, so that the same environment is always read alike.
        for (name, text) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(prefix) && name != prefix {
            let value = SettingValue(text: text, origin: .environment(name.escapedForDisplay))
            self.environment.info.append(InfoPair(key: name.dropFirst(prefix.count).lowercased(), value: value))
        }
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
