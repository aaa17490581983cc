import EarshotSafety
import Foundation
import Testing

/// A file's attributes, read from one file and applied to another.
@Suite struct FileAttributesTests {
    private let scratch: Scratch
    private let directory: SafeDirectory

    init() throws {
        self.scratch = try Scratch()
        self.directory = try SafeDirectory(path: self.scratch.path)
    }

    private func file(_ name: String) throws -> OpenFile {
        try self.directory.open(SafeName(name), flags: OpenFile.readWrite | OpenFile.create)
    }

    /// Every class of users that may read the file may execute it, and no special bit is set.
    @Test func theRightToExecuteFollowsTheRightToRead() throws {
        let file = try self.file("a")
        for (before, after) in [(0o600, 0o700), (0o640, 0o750), (0o664, 0o775), (0o4604, 0o705)] as [(UInt32, UInt32)] {
            try file.setMode(before)
            file.apply(FileAttributes(seconds: 1, nanoseconds: 0))
            #expect(try file.status().mode == before)
            file.apply(FileAttributes(isExecutable: true, seconds: 1, nanoseconds: 0))
            #expect(try file.status().mode == after)
        }
    }

    @Test func timesFromLongAgo() throws {
        let file = try self.file("a")
        for seconds in [-2, 0, 1 << 31] as [Int64] {
            file.apply(FileAttributes(seconds: seconds, nanoseconds: 999_999_999))
            #expect(try file.attributes() == FileAttributes(seconds: seconds, nanoseconds: 999_999_999))
        }
    }

    /// Blocks of zeros become holes, wherever pieces end, and the file has the length of the written bytes.
    @Test func blocksOfZerosBecomeHoles() throws {
        var content = [UInt8](repeating: 0, count: 1 << 20)
        for index in [0, 4095, 4096 * 100, 4096 * 100 + 4095] { content[index] = 1 }
        for piece in [1 << 20, 4096, 100_001, 8191] {
            let file = try self.file("\(piece)")
            for start in stride(from: 0, to: content.count, by: piece) {
                let end = min(start + piece, content.count)
                try file.write(Array(content[start..<end]), at: UInt64(start), leavingHoles: true)
                #expect(try file.status().size == UInt64(end))
            }
            #expect(try file.bytes(at: 0, count: content.count + 1) == content)
            let attributes = try file.attributes()
            #expect(try attributes.hasHoles && file.status().allocated < 1 << 17)
        }
    }

    @Test func aFileWithoutHolesHasNone() throws {
        let file = try self.file("a")
        #expect(try !file.attributes().hasHoles, "it is empty")
        try file.write([UInt8](repeating: 0, count: 1 << 16), at: 0, leavingHoles: false)
        #expect(try !file.attributes().hasHoles)
    }
}
