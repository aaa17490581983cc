internal import EarshotSafety

/// The texts that were given, by layer: flags over the environment over the file.
struct SettingLayers: Sendable {
    /// One pair of `[discovery.info]`.
    struct InfoPair: Sendable, Hashable {
        let key: String
        let value: SettingValue
    }

    /// What one layer says.
    struct Layer: Sendable {
        var values: [SettingKey: SettingValue] = [:]
        var info: [InfoPair] = []
    }

    var flags = Layer()
    var environment = Layer()
    var file = Layer()

    var lowestFirst: [Layer] { [self.file, self.environment, self.flags] }

    /// Takes a flag where it was given; an empty one is a value too, and a wrong one.
    mutating func setFlag(_ name: String, _ key: SettingKey, _ text: String?) {
        guard let text else { return }
        self.flags.values[key] = SettingValue(text: text, origin: .flag(name))
    }

    /// Takes the variables `EARSHOT_SECTION_KEY` that name a setting; others, and empty ones, are ignored.
    mutating func readEnvironment(_ variables: [String: String]) throws(SettingsError) {
        try SettingKey.checkLater(environment: variables)
        for key in SettingKey.allCases {
            guard let text = variables[key.environmentName], !text.isEmpty else { continue }
            self.environment.values[key] = SettingValue(text: text, origin: .environment(key.environmentName))
        }
        let prefix = "EARSHOT_DISCOVERY_INFO_"
        // Sorted, so that the same environment is always read alike.
        for (name, text) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(prefix) && name != prefix {
            let value = SettingValue(text: text, origin: .environment(name.escapedForDisplay))
            self.environment.info.append(InfoPair(key: name.dropFirst(prefix.count).lowercased(), value: value))
        }
    }

    /// Takes a file's entries; an empty value stands for the default.
    mutating func readFile(_ file: INIFile, path: String) throws(SettingsError) {
        let shownPath = path.escapedForDisplay
        var infoLines: [String: Int] = [:]
        for header in file.headers { try SettingKey.check(header, .file(path: shownPath, line: header.line)) }
        for entry in file.entries {
            let origin = SettingOrigin.file(path: shownPath, line: entry.line)
            if entry.section == SettingKey.infoSection {
                if let first = infoLines.updateValue(entry.line, forKey: entry.key.lowercased()) {
                    throw SettingsError(
                        origin, "'\(INIFile.shown(entry.key))' was already set in line \(first): keys of discovery info ignore case")
                }
                self.file.info.append(InfoPair(key: entry.key, value: SettingValue(text: entry.value, origin: origin)))
                continue
            }
            let value = SettingValue(text: entry.value, origin: origin)
            if try SettingKey.checkLater(section: entry.section, key: entry.key, value) { continue }
            let key = try SettingKey.find(entry, origin)
            guard !entry.value.isEmpty else { continue }
            self.file.values[key] = value
        }
    }
}
