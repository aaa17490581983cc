internal import EarshotSafety

/// Finds environment variables whose names look like misspelt settings, which would otherwise have no effect without a word about it.
///
/// Other variables that begin with `EARSHOT_` belong to other programs and are ignored.
enum UnknownVariables {
    /// The largest number of edits by which a misspelt name differs from a setting's.
    static let distance = 2

    /// Returns an error for each such variable, sorted by name.
    static func faults(in variables: [String: String]) -> [SettingsError] {
        let names = variables.keys.filter { $0.hasPrefix(Setting.environmentPrefix) && !self.known.contains($0) }
        return names.sorted().compactMap { name -> SettingsError? in
            let (prefix, rest) = self.parts(name)
            if rest.hasPrefix(self.info), rest != self.info { return nil }
            guard let meant = self.meant(by: rest) else { return nil }
            return SettingsError(
                .environment(name.escapedForDisplay), "unknown setting" + (meant.isEmpty ? "" : "; did you mean \(prefix)\(meant)?"))
        }
    }

    private static let info = "DISCOVERY_INFO_"
    private static let settings = Setting.all.map(\.environmentName)
    /// The variables of the settings, and the one that `earshot` reads.
    private static let known = Set(
        Self.settings.flatMap { [Setting.environmentPrefix + $0, Setting.unitPrefix + $0] } + ["EARSHOT_SOCKET"])

    private static func parts(_ name: String) -> (prefix: String, rest: Substring) {
        let prefix = name.hasPrefix(Setting.unitPrefix) ? Setting.unitPrefix : Setting.environmentPrefix
        return (prefix, name.dropFirst(prefix.count))
    }

    /// Returns the setting that is meant, an empty text if it is unclear which one, or `nil` if the name resembles no setting.
    private static func meant(by rest: Substring) -> String? {
        let nearest = self.settings.map { (name: $0, distance: self.edits(between: rest, and: $0[...])) }.min { $0.distance < $1.distance }
        if let nearest, nearest.distance <= self.distance { return nearest.name }
        // Without the section.
        if let setting = Setting.all.first(where: { $0.key.uppercased() == rest }) { return setting.environmentName }
        let isOfSection = Setting.sections.contains { section in
            let word = section.uppercased()
            return rest == word || rest.hasPrefix("\(word)_")
        }
        return isOfSection ? "" : nil
    }

    /// Returns the Levenshtein distance of two names.
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
