import ArgumentParser
import Foundation
import Testing

@testable import EarshotCLI
@testable import earshotd
@testable import manual

/// The pages are made of the programs' own definitions, so that these tests hold the pages to the programs.
@Suite struct PageTests {
    private static let command = Result { try CommandDump(json: Array(EarshotCommand._dumpHelp().utf8)).command }

    private static func example() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent("Config/earshotd.conf"), encoding: .utf8)
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

    @Test func everySettingIsThere() throws {
        let file = SettingsFile(try Self.example())
        let keys = Set(file.sections.flatMap { section in section.keys.map { "\(section.name).\($0.name)" } })
        #expect(SettingKey.allCases.map(\.rawValue).filter { !keys.contains($0) }.isEmpty)
        let page = try Page.settings.text(input: Array(Self.example().utf8), version: "1", date: "d")
        #expect(page.contains(".It Va service_type No = Ar earshot\npeers of other types do not see each other\n"))
    }

    @Test func aWrongDumpIsAnError() {
        #expect(throws: (any Error).self) { try Page.earshot.text(input: Array("{}".utf8), version: "1", date: "d") }
    }
}
