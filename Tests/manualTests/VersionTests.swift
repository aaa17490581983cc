import ArgumentParser
import EarshotClient
import Foundation
import Testing

@testable import EarshotCLI
@testable import earshotd

/// One version in one place: what names it elsewhere is held to it here.
@Suite struct VersionTests {
    private static func text(of path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func bothProgramsSayVersionAndCommit() {
        #expect(EarshotCommand.configuration.version == "earshot \(EarshotVersion.current) (\(EarshotVersion.commit))")
        #expect(EarshotDaemon.configuration.version == "earshotd \(EarshotVersion.current) (\(EarshotVersion.commit))")
    }

    @Test func theCommitIsOneOrSaysThatItIsNone() {
        #expect(EarshotVersion.commit.wholeMatch(of: /[0-9a-f]{12}\+?|unknown/) != nil, "\(EarshotVersion.commit)")
    }

    @Test func theDocumentOfTheAPIHasIt() throws {
        #expect(try Self.text(of: "Sources/earshotd/OpenAPI/openapi.json").contains("\"version\": \"\(EarshotVersion.current)\""))
    }

    @Test func thePackagesChangelogBeginsWithIt() throws {
        #expect(try Self.text(of: "Config/debian/changelog").hasPrefix("earshot (\(EarshotVersion.current)) "))
    }

    @Test func whatTheManualShowsHasIt() throws {
        #expect(
            try Self.text(of: "Sources/manual/Articles/earshot-troubleshooting.md").contains(
                "earshotd \(EarshotVersion.current) is running as"))
    }
}
