import ArgumentParser
import EarshotClient
import EarshotTree
import Foundation
import Testing

@testable import EarshotCLI

/// `earshot file send --exclude`: its limits, and the sources that this process must read itself.
@Suite struct ExcludeOptionTests {
    private static func isAccepted(_ patterns: [String]) -> Bool {
        let words = ["file", "send", "bob", "x"] + patterns.flatMap { ["--exclude", $0] }
        return (try? EarshotCommand.parseAsRoot(words)) != nil
    }

    @Test func numberAndLengthAreBounded() {
        #expect(Self.isAccepted(Array(repeating: "a", count: TreeExclusions.limit)))
        #expect(!Self.isAccepted(Array(repeating: "a", count: TreeExclusions.limit + 1)))
        #expect(Self.isAccepted([String(repeating: "a", count: TreeExclusions.patternBytes)]))
        #expect(!Self.isAccepted([String(repeating: "a", count: TreeExclusions.patternBytes + 1)]))
        #expect(!Self.isAccepted([""]))
    }

    /// The daemon would send all entries of a directory that it opens itself.
    @Test func theDaemonOpensOnlyWholeDirectories() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-exclude-\(UUID())")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: place) }
        let file = place.appendingPathComponent("a.o").path
        try Data().write(to: URL(fileURLWithPath: file))
        #expect(try LocalSource(place.path).pathForDaemon != nil)
        #expect(try LocalSource(place.path, excluding: ["*.o"]).pathForDaemon == nil)
        #expect(try LocalSource(file, excluding: ["x"]).pathForDaemon != nil)
        #expect(try LocalSource(file, excluding: ["*.o"]).isExcluded && !LocalSource(place.path, excluding: ["*.o"]).isExcluded)
    }
}
