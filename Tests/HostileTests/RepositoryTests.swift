import Foundation
import Testing

/// Checks of the files of the repository.
@Suite struct RepositoryTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path

    /// Returns all files and directories, tracked or not, except git's own and build products.
    private static func paths() throws -> [String] {
        let files = FileManager.default
        let top = try files.contentsOfDirectory(atPath: Self.root).filter { $0 != ".git" && !$0.hasPrefix(".build") }
        let below = top.flatMap { name in
            files.enumerator(atPath: "\(Self.root)/\(name)")?.compactMap { $0 as? String }.map { "\(name)/\($0)" } ?? []
        }
        return top + below
    }

    private static func alike(_ names: [String]) -> [[String]] {
        Dictionary(grouping: names) { $0.lowercased() }.values.filter { $0.count > 1 }
    }

    /// A case-insensitive file system, like a Mac's, would keep only one of two such paths.
    @Test func noPathsDifferInLetterCaseAlone() throws {
        let paths = try Self.paths()
        try #require(paths.contains("Tests/HostileTests/RepositoryTests.swift"))
        #expect(Self.alike(paths) == [])
    }

    /// The build names files after the modules in .build, wherever their sources are.
    @Test func noModulesDifferInLetterCaseAlone() throws {
        let package = try String(contentsOfFile: "\(Self.root)/Package.swift", encoding: .utf8)
        let modules = package.matches(of: /(?:[tT]arget|systemLibrary)\(\s*name: "([^"]+)"/).map { String($0.1) }
        try #require(Set(["Earshot", "EarshotCLI", "CSQLite", "HostileTests"]).isSubset(of: modules))
        #expect(Self.alike(modules) == [])
    }

    /// After the first such sleep, libdispatch wakes the process every second, so an idle daemon would never sleep.
    @Test(arguments: ["Earshot", "EarshotDiscovery", "earshotd"]) func theDaemonSleepsByItsOwnTimers(_ module: String) throws {
        let sources = "\(Self.root)/Sources/\(module)"
        let names = FileManager.default.enumerator(atPath: sources)?.compactMap { $0 as? String } ?? []
        try #require(names.filter { $0.hasSuffix(".swift") }.count > 5)
        let sleeps = [/Task\.sleep/, /(?:Continuous|Suspending)Clock\(\)\.sleep/]
        for name in names where name.hasSuffix(".swift") {
            let text = try String(contentsOfFile: "\(sources)/\(name)", encoding: .utf8)
            #expect(!sleeps.contains { text.contains($0) }, "\(module)/\(name)")
        }
    }
}
