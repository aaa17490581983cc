import EarshotSafety
import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// Which parts count as left behind by a killed process, and which never do.
@Suite struct StalePartsTests {
    private let scratch: TreeScratch
    private let later = time(nil) + StaleParts.age + 10

    init() throws {
        self.scratch = try TreeScratch()
        // The mode must not depend on this process's umask.
        try #require(chmod(self.scratch.path, 0o755) == 0)
    }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: self.scratch.path).sorted() }

    /// Marks a part as the process that writes it does.
    private func mark(_ name: String) throws {
        let descriptor = open("\(self.scratch.path)/\(name)", O_RDONLY)
        PartName.mark(descriptor)
        try #require(close(descriptor) == 0)
    }

    private func partName() throws -> String { try PartName.random().description }

    @Test(arguments: [
        (Int.min, true), (-1, true), (0, true), (1_700_000_000 - StaleParts.age, true), (1_700_000_001 - StaleParts.age, false),
        (1_800_000_000, false), (Int.max, false),
    ])
    func anyTimeOfASenderIsJudged(modified: Int, isOld: Bool) {
        #expect(StaleParts.isOld(modified, now: 1_700_000_000) == isOld)
    }

    @Test func oldOnesOfOurOwnGo() throws {
        let (file, tree) = (try self.partName(), try self.partName())
        try self.scratch.put(file, "half a file")
        try self.scratch.make(tree)
        try self.scratch.make("\(tree)/a")
        try self.scratch.put("\(tree)/a/b", "half a tree")
        for part in [file, tree] { try self.mark(part) }
        try self.scratch.put("report.pdf", "somebody's")
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 2)
        #expect(try self.names() == ["report.pdf"])
    }

    @Test func freshOnesStay() throws {
        let file = try self.partName()
        try self.scratch.put(file, "half a file")
        try self.mark(file)
        let now = time(nil)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: now) == 0)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: now + StaleParts.age - 10) == 0)
        #expect(try self.names() == [file])
    }

    @Test func thoseBeingWrittenStay() throws {
        let tree = try TemporaryTree(in: try self.scratch.directory(), size: 10)
        let file = try TemporaryFile(in: try self.scratch.directory(), named: true)
        try file.file.write([1], at: 0)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 0)
        #expect(try self.names().count == 2)
        tree.drop()
        _ = try file.publish(as: try SafeName("whole"), onConflict: .rename)
        #expect(try self.names() == ["whole"])
    }

    /// An interrupted command drops its file, because its process ends immediately.
    @Test func aFileThatIsDroppedIsGone() throws {
        let file = try TemporaryFile(in: try self.scratch.directory(), named: true)
        try file.file.write([1], at: 0)
        #expect(try self.names().count == 1)
        file.drop()
        #expect(try self.names() == [])
        #expect(throws: FileError.self) { _ = try file.publish(as: try SafeName("whole"), onConflict: .rename) }
        #expect(try self.names() == [])
    }

    @Test func whatOnlyLooksLikeOneStays() throws {
        let names = [
            ".earshot-.part", ".earshot-notes.part", ".earshot-0123456789ab", "earshot-0123456789ab.part", ".earshot-0123456789aB.part",
            ".earshot-\(UUID().uuidString.lowercased()).part", ".earshot-" + String(repeating: "0", count: 27) + ".part",
        ]
        for name in names { try self.scratch.put(name, "somebody's") }
        // A link of the right name is no part, wherever it leads.
        try self.scratch.put("precious", "somebody's")
        let link = try self.partName()
        self.scratch.link(link, to: "precious")
        let pipe = try self.partName()
        try #require(mkfifo("\(self.scratch.path)/\(pipe)", 0o600) == 0)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 0)
        #expect(try self.names() == (names + ["precious", link, pipe]).sorted())
    }

    /// If a peer chose a name like a part's, a file or tree that was published under it is no part.
    @Test func whatWasFetchedUnderSuchANameStays() throws {
        let (name, other) = (try self.partName(), try self.partName())
        let file = try TemporaryFile(in: try self.scratch.directory(), named: true)
        try file.file.write([1], at: 0)
        _ = try file.publish(as: try SafeName(name), onConflict: .rename)
        try self.scratch.make("source")
        try self.scratch.put("source/a", "text")
        let source = try self.scratch.directory().subdirectory(try SafeName("source"))
        let scan = try TreeScanner.scan(source)
        let bytes = try TreeReader(source, scan: scan).bytes(at: 0, count: Int(scan.manifest.size))
        let tree = try TemporaryTree(in: try self.scratch.directory(), size: UInt64(bytes.count))
        try bytes.withUnsafeBytes { try tree.write($0) }
        _ = try tree.publish(as: try SafeName(other))
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 0)
        #expect(try self.names() == [name, other, "source"].sorted())
    }

    /// If other users may write to the directory, they could have made any file with such a name.
    @Test func nothingGoesWhereOthersMayWrite() throws {
        let file = try self.partName()
        try self.scratch.put(file, "half a file")
        try self.mark(file)
        try #require(chmod(self.scratch.path, 0o770) == 0)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 0)
        #expect(try self.names() == [file])
        try #require(chmod(self.scratch.path, 0o755) == 0)
        #expect(StaleParts.remove(from: try self.scratch.directory(), now: self.later) == 1)
    }

    @Test func randomNamesAreKnown() throws {
        for _ in 0..<1000 { #expect(PartName.isOne(try PartName.random())) }
    }
}
