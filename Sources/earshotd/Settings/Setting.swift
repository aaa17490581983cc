/// One key of the settings file: its name, default, description and parser, and the stored properties that hold its value.
///
/// ``all`` lists every key. The parser, `--check-config`, the reload, and the help and completion of the daemon's flags read that list, and a
/// test compares `Config/earshotd.conf` with it, from which the manual page is made. To add a setting, add one entry to the list.
///
/// The keys of `[discovery.info]` are not listed, because the user chooses them.
struct Setting: Sendable {
    /// A flag of `earshotd` that sets the key: its name without hyphens, the placeholder in the help, and its text.
    struct Flag: Sendable {
        let name: String
        let value: String
        let text: any KeyPath<SettingsLoader.Flags, String?> & Sendable
    }

    /// `section.key`.
    let name: String
    /// The value of a key that is not set, as the file would spell it; empty if there is none.
    let defaultText: String
    let flag: Flag?
    /// Whether a change waits for the next start, because the running daemon cannot replace the value.
    let needsRestart: Bool
    /// A sentence that explains the key: the help of its flag, and the beginning of its comment in `Config/earshotd.conf`.
    let summary: String
    /// The rest of that comment.
    let details: String
    /// The words that the key accepts; empty if it accepts other values.
    let choices: [String]
    /// Whether the value is a secret, of which only the presence is shown.
    let isSecret: Bool
    /// The property that stores the value.
    let path: any PartialKeyPath<Settings> & Sendable
    private var properties: [StoredProperty]

    init<Value: Equatable & Sendable>(
        _ name: String, _ path: any WritableKeyPath<Settings, Value> & Sendable, _ parser: SettingParser<Value>, default text: String = "",
        flag: Flag? = nil, needsRestart: Bool = false, _ summary: String, details: String = ""
    ) {
        self.name = name
        self.defaultText = text
        self.flag = flag
        self.needsRestart = needsRestart
        self.summary = summary
        self.details = details
        self.choices = parser.choices
        self.isSecret = parser.isSecret
        self.path = path
        self.properties = [StoredProperty(path, parser)]
    }

    /// Returns the same setting with a second property, which a reload compares and replaces together with the first.
    func with<Value: Equatable & Sendable>(_ path: any WritableKeyPath<Settings, Value> & Sendable, _ parser: SettingParser<Value>? = nil)
        -> Setting
    {
        var result = self
        result.properties.append(StoredProperty(path, parser))
        return result
    }

    /// Stores a value, or reports why the key does not accept it.
    func read(_ value: SettingValue, into settings: inout Settings) throws(SettingsError) {
        for property in self.properties { try property.read(value, &settings) }
    }

    /// Returns the value as it is shown: a secret is replaced with a word.
    func shown(_ value: SettingValue) -> SettingValue {
        self.isSecret ? SettingValue(text: Self.hidden, origin: value.origin) : value
    }

    func isEqual(_ one: Settings, _ other: Settings) -> Bool { self.properties.allSatisfy { $0.isEqual(one, other) } }

    func copy(from other: Settings, to settings: inout Settings) {
        for property in self.properties { property.copy(other, &settings) }
    }

    /// A property of ``Settings``, with its type erased.
    private struct StoredProperty: Sendable {
        let read: @Sendable (SettingValue, inout Settings) throws(SettingsError) -> Void
        let isEqual: @Sendable (Settings, Settings) -> Bool
        let copy: @Sendable (Settings, inout Settings) -> Void

        init<Value: Equatable & Sendable>(_ path: any WritableKeyPath<Settings, Value> & Sendable, _ parser: SettingParser<Value>?) {
            self.read = { value, settings throws(SettingsError) in
                if let parser { settings[keyPath: path] = try parser.parse(value) }
            }
            self.isEqual = { $0[keyPath: path] == $1[keyPath: path] }
            self.copy = { $1[keyPath: path] = $0[keyPath: path] }
        }
    }
}

extension Setting {
    /// The section whose pairs go into the advertisement.
    static let infoSection = "discovery.info"

    /// The word that is shown in place of a secret.
    static let hidden = "(hidden)"

    /// The prefix of the environment's variables, before `SECTION_KEY`.
    static let environmentPrefix = "EARSHOT_"
    /// The prefix of the variables by which a packaged unit sets a value that the settings files can change.
    static let unitPrefix = "EARSHOT_UNIT_"

    private static let byName = Dictionary(Self.all.map { ($0.name, $0) }) { first, _ in first }

    /// The words to offer for the value: those that the key accepts, or `yes` and `no` for a switch.
    var words: [String] { self.choices.isEmpty && ["yes", "no"].contains(self.defaultText) ? ["yes", "no"] : self.choices }

    var section: Substring { self.name.prefix { $0 != "." } }
    var key: Substring { self.name.drop { $0 != "." }.dropFirst() }
    /// `SECTION_KEY`, the end of the environment's variables.
    var environmentName: String { String(self.name.uppercased().map { $0 == "." ? "_" : $0 }) }

    /// Reports a section that does not exist.
    static func check(_ header: INIFile.Header, _ origin: SettingOrigin) throws(SettingsError) {
        guard !self.sections.contains(header.section) else { return }
        let sections = self.sections.map { "[\($0)]" }.joined(separator: ", ")
        throw SettingsError(origin, "unknown section [\(INIFile.shown(header.section))]; there are \(sections)")
    }

    /// Returns the setting that an entry of an existing section names, or reports that there is none.
    static func find(_ entry: INIFile.Entry, _ origin: SettingOrigin) throws(SettingsError) -> Setting {
        if let setting = self.byName["\(entry.section).\(entry.key)"], setting.section == entry.section { return setting }
        let keys = self.all.filter { $0.section == entry.section }.map(\.key).joined(separator: ", ")
        throw SettingsError(origin, "unknown key '\(INIFile.shown(entry.key))' in [\(INIFile.shown(entry.section))]; there are \(keys)")
    }
}
