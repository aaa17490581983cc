internal import EarshotSafety

/// Variables that look like settings and are none: with a typo in its name, a setting would silently have no effect.
///
/// Others that begin with `EARSHOT_` belong to other programs and are ignored.
enum UnknownVariables {
    /// How many characters a name may differ by from one that is meant.
    static let distance = 2

    /// The fault of each variable, sorted by name.
    static func faults(in variables: [String: String]) -> [SettingsError] {
        let names = variables.keys.filter { $0.hasPrefix(SettingKey.environmentPrefix) && !self.known.contains($0) }
        return names.sorted().compactMap { name -> SettingsError? in
            let (prefix, rest) = self.parts(name)
            if rest.hasPrefix(self.info), rest != self.info { return nil }
            guard let meant = self.meant(by: rest) else { return nil }
            return SettingsError(
                .environment(name.escapedForDisplay), "unknown setting" + (meant.isEmpty ? "" : "; did you mean \(prefix)\(meant)?"))
        }
    }

    private static let info = "DISCOVERY_INFO_"
    private static let settings = SettingKey.allCases.map(\.environmentName)
    /// The settings', and what `earshot` reads.
    private static let known = Set(
        Self.settings.flatMap { [SettingKey.environmentPrefix + $0, SettingKey.unitPrefix + $0] } + ["EARSHOT_SOCKET"])

    private static func parts(_ name: String) -> (prefix: String, rest: Substring) {
        let prefix = name.hasPrefix(SettingKey.unitPrefix) ? SettingKey.unitPrefix : SettingKey.environmentPrefix
        return (prefix, name.dropFirst(prefix.count))
    }

    /// The setting that is meant, empty where that cannot be told; `nil` where none is.
    private static func meant(by rest: Substring) -> String? {
        let nearest = self.settings.map { (name: $0, distance: self.edits(between: rest, and: $0[...])) }.min { $0.distance < $1.distance }
        if let nearest, nearest.distance <= self.distance { return nearest.name }
        // The section was left out.
        if let key = SettingKey.allCases.first(where: { $0.key.uppercased() == rest }) { return key.environmentName }
        let isOfSection = SettingKey.sections.contains { section in
            let word = section.uppercased()
            return rest == word || rest.hasPrefix("\(word)_")
        }
        return isOfSection ? "" : nil
    }

    /// How many characters have to be changed, added or left out to make one of the other.
    private static func edits(between one: Substring, and other: Substring) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (line, letter) in one.enumerated() {
            var diagonal = line
            row[0] = line + 1
            for (column, candidate) in other.enumerated() {
                let changed = diagonal + (letter == candidate ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, diagonal + 1, row[column] + 1)
            }
        }
        return row[other.count]
    }
}
