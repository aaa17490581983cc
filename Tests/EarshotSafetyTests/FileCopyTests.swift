import EarshotSafety
import Foundation
import Testing

/// Contents that the kernel copies or links from one file to another.
@Suite struct FileCopyTests {
    private let scratch: Scratch
    private let directory: SafeDirectory

    init() throws {
        self.scratch = try Scratch()
        self.directory = try SafeDirectory(path: self.scratch.path)
    }

    private func file(_ name: String, _ directory: SafeDirectory? = nil) throws -> OpenFile {
        try (directory ?? self.directory).open(SafeName(name), flags: OpenFile.readWrite | OpenFile.create)
    }

    /// Returns a directory in memory, on another file system than most temporary directories.
    private static func inMemory() throws -> Scratch { try Scratch(in: "/dev/shm") }

    @Test(arguments: [0, 1, 4096, 100_001, 3 << 20]) func theCopyHasTheSameBytes(_ size: Int) throws {
        let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        let memory = try Self.inMemory()
        let other = try SafeDirectory(path: memory.path)
        for (from, to) in [(self.directory, self.directory), (self.directory, other), (other, self.directory), (other, other)] {
            let source = try self.file("from", from)
            try source.write(content, at: 0)
            let copy = try self.file("to", to)
            #expect(try copy.copyContent(of: source) == UInt64(size))
            #expect(try copy.bytes(at: 0, count: size + 1) == content)
            for (name, place) in [("from", from), ("to", to)] { try place.remove(SafeName(name)) }
        }
    }

    /// A hole at the start, between data, and at the end.
    @Test(arguments: ["/tmp", "/dev/shm"]) func holesRemain(_ place: String) throws {
        let scratch = try Scratch(in: place)
        let directory = try SafeDirectory(path: scratch.path)
        let source = try self.file("from", directory)
        var content = [UInt8](repeating: 0, count: 8 << 20)
        for index in [2 << 20, 5 << 20] { content[index] = 1 }
        try source.write(content, at: 0, leavingHoles: true)
        let copy = try self.file("to", self.directory)
        var told: [UInt64] = []
        #expect(try copy.copyContent(of: source) { told.append($0) } == UInt64(content.count))
        #expect(told == told.sorted())
        #expect(try copy.bytes(at: 0, count: content.count + 1) == content)
        #expect(try copy.attributes().hasHoles && copy.status().allocated < 1 << 20)
    }

    /// The source becomes shorter after the first step. The copy has no zeros in place of what is missing.
    @Test(arguments: ["/tmp", "/dev/shm"]) func aSourceThatBecomesShorter(_ place: String) throws {
        let scratch = try Scratch(in: place)
        let source = try self.file("from", try SafeDirectory(path: scratch.path))
        let content = [UInt8](repeating: 7, count: 40 << 20)
        try source.write(content, at: 0)
        let copy = try self.file("to")
        var told = false
        let end = try copy.copyContent(of: source) { _ in
            if !told { truncate("\(scratch.path)/from", 33 << 20) }
            told = true
        }
        let size = try copy.status().size
        #expect(end == 33 << 20 && size == end)
        #expect(try copy.bytes(at: 0, count: content.count).allSatisfy { $0 == 7 })
    }

    /// The content has both names, and the first may go.
    @Test func anOpenFileGetsASecondName() throws {
        let source = try self.file("from")
        try source.write([1, 2, 3], at: 0)
        let other = try Scratch()
        let directory = try SafeDirectory(path: other.path)
        try self.file("name", directory).write([9], at: 0)
        let linked = try TemporaryFile(in: directory, linking: source).publish(as: SafeName("name"), onConflict: .rename)
        #expect(linked?.description == "name (2)")
        try self.directory.remove(SafeName("from"))
        let file = try directory.open(SafeName("name (2)"))
        #expect(try file.bytes(at: 0, count: 9) == [1, 2, 3] && file.status().inode == source.status().inode)
    }

    @Test func aFileOfAnotherFileSystemGetsNoName() throws {
        let memory = try Self.inMemory()
        let source = try self.file("from", try SafeDirectory(path: memory.path))
        do {
            _ = try TemporaryFile(in: self.directory, linking: source).publish(as: SafeName("to"), onConflict: .rename)
            Issue.record("a link leads to another file system")
        } catch let error as FileError {
            #expect(TemporaryFile.linkFailures.contains(error.code))
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: self.scratch.path).isEmpty)
    }
}
