import Foundation
import Testing

@testable import EarshotCLI
@testable import earshotd

/// `earshotd` reads the lines that `earshot config set` writes: the two programs share no code for the file's format.
@Suite struct SettingsRoundTripTests {
    private static func entries(_ changes: [(key: String, value: String)]) throws -> [INIFile.Entry] {
        var text = SettingsText(nil)
        for (key, value) in changes {
            text.set(try #require(SettingsText.Name(key)), spelling: try #require(SettingsText.spelling(of: value)))
        }
        return try INIFile(bytes: Array(text.text.utf8), path: "50-cli.conf").entries
    }

    /// Values of all kinds.
    private static let values = [
        "other", "5000", "1h 30min", "512M", "2.5%", "/a b #c/d", "/a.pem, /b.pem", "bob.example:47110, [fe80::1%eth0]:47110",
    ]

    /// Returns a valid value of a setting that is not its default.
    private static func other(_ setting: Setting) throws -> String {
        try #require((setting.words + Self.values).first { $0 != setting.defaultText && Self.accepts(setting, $0) })
    }

    private static func accepts(_ setting: Setting, _ value: String) -> Bool {
        guard var settings = try? Settings(SettingLayers(), hostName: "x") else { return false }
        return (try? setting.read(SettingValue(text: value, origin: .defaults), into: &settings)) != nil
    }

    @Test(arguments: Setting.all.map(\.name)) func everySetting(_ name: String) throws {
        let setting = try #require(Setting.all.first { $0.name == name })
        for value in [setting.defaultText, try Self.other(setting)] where !value.isEmpty {
            let entry = try #require(try Self.entries([(name, value)]).first)
            #expect("\(entry.section).\(entry.key)" == name && entry.value == value && Self.accepts(setting, entry.value))
        }
        var text = SettingsText(nil)
        let key = try #require(SettingsText.Name(name))
        text.set(key, spelling: try #require(SettingsText.spelling(of: try Self.other(setting))))
        let isFound = text.unset(key)
        #expect(isFound)
        #expect(try INIFile(bytes: Array(text.text.utf8), path: "50-cli.conf").entries.isEmpty)
    }

    /// Values of characters that mean something in the file: those that can be spelled are read back as they are.
    @Test func valuesOfAnyCharacters() throws {
        let characters: [Character] = [" ", "\t", "\"", "#", ";", "=", "[", "]", "\\", "a", "é", "\u{301}", "\u{202E}"]
        var generator = SystemRandomNumberGenerator()
        var spelled = 0
        for _ in 0..<5_000 {
            let value = String(
                (0..<Int.random(in: 0...6, using: &generator)).map { _ in characters.randomElement(using: &generator) ?? "a" })
            guard let spelling = SettingsText.spelling(of: value) else {
                #expect(value.contains("\"") || value.contains("\u{301}"), "\(value.debugDescription) could be spelled")
                continue
            }
            spelled += 1
            let entry = try #require(try Self.entries([("peer.name", value)]).first)
            #expect(entry.value.utf8.elementsEqual(value.utf8), "\(value.debugDescription) was written as \(spelling.debugDescription)")
        }
        #expect(spelled > 1_000)
    }

    @Test func theProgramsAgreeOnTheFile() {
        #expect(SettingsChange.dropIn == SettingsFiles.commandDropIn && SettingsChange.byteLimit == INIFile.byteLimit)
        #expect(SettingsText.Name.infoSection == Setting.infoSection)
    }
}
