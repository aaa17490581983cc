import ArgumentParser
import Foundation
import Testing

@testable import EarshotCLI
@testable import earshotd
@testable import manual

/// The pages are made of the programs' own definitions, so that these tests hold the pages to the programs.
@Suite struct PageTests {
    private static let command = Result { try CommandDump(json: Array(EarshotCommand._dumpHelp().utf8)).command }

    private static func read(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func everyVerbIsThere() throws {
        let page = try Page.earshot.text(
            input: Array(EarshotCommand._dumpHelp().utf8), version: "1.2.3", date: "November 21, 2026")
        let verbs = EarshotPage.flattened(try Self.command.get()).map(\.words)
        #expect(Set(["status", "send", "file send", "file get"]).isSubset(of: verbs))
        #expect(!verbs.contains("help") && !verbs.contains("file"))
        for verb in verbs { #expect(page.contains("\n.Cm \(verb)\n"), "\(verb) is missing") }
        #expect(page.contains(".Dd November 21, 2026\n.Dt EARSHOT 1\n.Os Earshot 1.2.3\n"))
    }

    @Test func commonOptionsAreSaidOnce() throws {
        let verbs = EarshotPage.flattened(try Self.command.get()).map(\.command)
        #expect(EarshotPage.common(verbs).map { $0.flags.last ?? "" } == ["-socket", "-json", "-version", "-help"])
    }

    @Test func everyExitCodeIsExplained() {
        let explained = Set(EarshotPage.exitCodes.map(\.code))
        #expect(ExitStatus.allCases.filter { !explained.contains($0.rawValue) }.isEmpty)
    }

    @Test func everyFlagOfTheDaemonIsThere() throws {
        let page = try Page.earshotd.text(input: Array(EarshotDaemon._dumpHelp().utf8), version: "1", date: "d")
        for flag in ["config", "state-directory", "socket", "name", "service-type", "port", "discovery", "log-level", "check-config"] {
            #expect(page.contains("Fl -\(flag)"), "\(flag) is missing")
        }
    }

    @Test func everyExitCodeOfTheDaemonIsExplained() throws {
        let page = try Page.earshotd.text(input: Array(EarshotDaemon._dumpHelp().utf8), version: "1", date: "d")
        for code in [0, 1, 64, 66, 73, 74, 78] { #expect(page.contains("\n.It \(code)\n"), "\(code) is missing") }
    }

    /// The settings file, and so the page, say of each key what the daemon's list of settings says.
    @Test func everySettingIsThere() throws {
        let file = SettingsFile(try Self.read("Config/earshotd.conf"))
        #expect(file.sections.map(\.name) == Setting.sections)
        let keys = file.sections.flatMap { section in section.keys.map { ("\(section.name).\($0.name)", $0) } }
        #expect(keys.map(\.0) == Setting.all.map(\.name))
        for (setting, (name, key)) in zip(Setting.all, keys) {
            #expect(key.comment == ([setting.summary, setting.details].filter { !$0.isEmpty }.joined(separator: " ")), "\(name)")
            #expect(key.value == setting.defaultText, "\(name)")
        }
        let page = try Page.settings.text(
            input: Array(Self.read("Config/earshotd.conf").utf8), article: Self.read("Sources/manual/Articles/earshotd.conf.md"),
            version: "1", date: "d")
        for setting in Setting.all { #expect(page.contains("\n.It Va \(setting.key) No = Ar "), "\(setting.name)") }
        #expect(page.contains(".Ss \"[discovery.info]\"\nKeys and values to advertise"))
        #expect(page.contains(".It Va advertise No = Ar yes\nWhether other peers can discover this one.\n"))
    }

    @Test func aWrongDumpIsAnError() {
        #expect(throws: (any Error).self) { try Page.earshot.text(input: Array("{}".utf8), version: "1", date: "d") }
    }
}
