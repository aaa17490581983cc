import Testing

@testable import EarshotCLI

/// The lines of a settings file that `earshot config` changes, and those that it leaves.
@Suite struct SettingsTextTests {
    private static func changed(_ text: String?, _ change: (inout SettingsText) throws -> Void) rethrows -> String {
        var file = SettingsText(text)
        try change(&file)
        return file.text
    }

    private static func name(_ text: String) throws -> SettingsText.Name { try #require(SettingsText.Name(text)) }

    @Test func aNewFileHasAHeading() throws {
        let text = try Self.changed(nil) { $0.set(try Self.name("peer.name"), spelling: "desk") }
        #expect(text == SettingsText.heading + "\n[peer]\nname = desk\n")
    }

    @Test(arguments: [
        // In the line that sets it, with the comment behind it.
        ("# a\n[peer]\nname = old # mine\n; b\n", "# a\n[peer]\nname = desk # mine\n; b\n"),
        ("[peer]\n  name=\"old; x\" ; mine\nport = 1\n", "[peer]\nname = desk ; mine\nport = 1\n"),
        // The last line applies.
        ("[peer]\nname = a\nname = b\n", "[peer]\nname = a\nname = desk\n"),
        // At the end of its section, before the comments of the next one.
        ("[peer]\nport = 1\n\n# the log\n[log]\nlevel = info\n", "[peer]\nport = 1\nname = desk\n\n# the log\n[log]\nlevel = info\n"),
        ("[peer] # mine\n#name = commented\n", "[peer] # mine\nname = desk\n#name = commented\n"),
        // Another section's key of the same name, and a file without a newline at its end.
        ("[discovery.info]\nname = x", "[discovery.info]\nname = x\n\n[peer]\nname = desk\n"),
        ("[peer]\r\nname = old\r\n", "[peer]\r\nname = desk\n"), ("", "[peer]\nname = desk\n"),
    ])
    func oneLineChanges(before: String, after: String) throws {
        #expect(try Self.changed(before) { $0.set(try Self.name("peer.name"), spelling: "desk") } == after)
    }

    @Test func removingKeepsComments() throws {
        let before = "# a\n[peer]\nname = x # mine\nport = 1\n[log]\nlevel = info\n[peer]\nname = y\n"
        let after = "# a\n[peer]\n# mine\nport = 1\n[log]\nlevel = info\n[peer]\n"
        var file = SettingsText(before)
        let first = file.unset(try Self.name("peer.name"))
        #expect(first && file.text == after)
        let second = file.unset(try Self.name("peer.name"))
        #expect(!second && file.text == after)
    }

    @Test func infoKeysHaveNoCase() throws {
        let before = "[discovery.info]\nRoom = a\n"
        #expect(try Self.changed(before) { $0.set(try Self.name("discovery.info.room"), spelling: "b") } == "[discovery.info]\nroom = b\n")
        #expect(SettingsText.Name("discovery.info.a.b")?.key == "a.b")
    }

    @Test(arguments: [
        "name", "", "peer.", ".name", "peer.#x", "peer.[x", "peer.a=b", "peer. name", "pe]er.name", "peer.a\nb", "discovery.info.",
    ])
    func theseAreNoKeys(_ text: String) { #expect(SettingsText.Name(text) == nil) }

    @Test(arguments: [
        ("desk", "desk"), ("", ""), ("a b", "a b"), ("a#b", "a#b"), ("a #b", "\"a #b\""), (" a", "\" a\""), ("a\t", "\"a\t\""),
        ("# a", "\"# a\""), (";", "\";\""), ("say \"hi\"", "say \"hi\""), ("a = b", "a = b"), ("[a]", "[a]"), ("née ☎️", "née ☎️"),
    ])
    func valuesAreQuotedWhereTheyMust(value: String, spelling: String) { #expect(SettingsText.spelling(of: value) == spelling) }

    @Test(arguments: ["a\nb", "a\rb", "\"a\"", "\"", "a \"b\" #c", "a\u{0}", " \""])
    func theseValuesCannotBeSpelled(_ value: String) { #expect(SettingsText.spelling(of: value) == nil) }
}
