import EarshotSafety
import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// The entries that a scan leaves out, compared with those that tar leaves out.
@Suite struct TreeExclusionsTests {
    private static func scan(_ scratch: TreeScratch, _ patterns: [String]) throws -> [String] {
        let scan = try TreeScanner.scan(scratch.directory("t"), excluding: TreeExclusions(patterns, below: "t"))
        return (0..<scan.manifest.count).map(scan.manifest.pathText).map { $0.isEmpty ? "t" : "t/\($0)" }.sorted()
    }

    /// The entries that tar packs, as they stand in its listing.
    private static func tar(_ scratch: TreeScratch, _ patterns: [String]) throws -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/tar")
        process.arguments = patterns.map { "--exclude=\($0)" } + ["-C", scratch.path, "-cvf", "/dev/null", "t"]
        process.environment = ["LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map { $0.hasSuffix("/") ? String($0.dropLast()) : String($0) }
            .sorted()
    }

    private static func tree() throws -> TreeScratch {
        let scratch = try TreeScratch()
        for directory in ["t/build/deep", "t/a/build", "t/a/raw", "t/rawhide", "t/.git/objects"] { try scratch.make(directory) }
        for file in [
            "t/build/x", "t/build/deep/y.o", "t/a/build/z", "t/a/b.o", "t/a/raw/1.cr2", "t/rawhide/r", "t/.git/config", "t/keep",
            "t/[odd]", "t/caf\u{e9}", "t/a*b", "t/back",
        ] { try scratch.put(file, "") }
        return scratch
    }

    @Test(arguments: [
        ["build"], ["t/build"], ["a/*"], ["*.o"], ["b*d"], ["x"], ["uild"], ["raw"], ["raw*"], ["t/raw"], ["*/build"], ["a*o"], [".git"],
        [".*"], ["?ack"], ["caf?"], ["[ab]"], ["[!ab]eep"], ["\\[odd\\]"], ["[odd]"], ["a\\*b"], ["*.cr2", "keep", "deep"], ["/build"],
        ["./build"], ["t/*/build"], ["build/x"], ["a/build/*"], ["nothing"], ["build/deep/y.o", "*config"],
    ])
    func theSameAsTar(_ patterns: [String]) throws {
        let scratch = try Self.tree()
        #expect(try Self.scan(scratch, patterns) == Self.tar(scratch, patterns))
    }

    @Test func aSlashAtTheEndIsIgnored() throws {
        let scratch = try Self.tree()
        #expect(try Self.scan(scratch, ["build//"]) == Self.tar(scratch, ["build"]))
    }

    /// An entry that could not be sent is no obstacle once it is excluded, and an excluded directory is not opened.
    @Test func excludedEntriesAreNotRead() throws {
        let scratch = try TreeScratch()
        try scratch.make("t/loop")
        try scratch.put("t/keep", "")
        scratch.link("t/loop/out", to: "/etc")
        try #require(mkfifo("\(scratch.path)/t/pipe", 0o600) == 0)
        #expect(throws: TreeError.self) { try Self.scan(scratch, []) }
        #expect(try Self.scan(scratch, ["loop", "pipe"]) == ["t", "t/keep"])
    }

    /// Patterns that take a matcher with backtracking longer than the age of the universe.
    @Test(.timeLimit(.minutes(1)), arguments: ["*a", "?*", "*[!b]", "*a*[ab]", "*/", "*[[:alpha:]]", "*a?"])
    func hostilePatternsEnd(_ piece: String) {
        let pattern = String(repeating: piece, count: TreeExclusions.patternBytes / piece.count - 1) + "b"
        let exclusions = TreeExclusions([pattern], below: "t")
        for name in ["a", "a/", "ab"] {
            let path = String(repeating: name, count: TreeLimits.pathBytes / name.count)
            #expect(!exclusions.matches(Array(path.utf8) + Array("c".utf8)))
        }
    }
}
