import EarshotSafety
import EarshotTree
import Testing

@testable import Earshot

/// The space promised to an incoming file, in addition to the space reserved on the disk.
@Suite struct SpoolFileTests {
    private let blocks = DiskBlocks(size: 4096)

    @Test func whatTheDiskHasSetAsideIsOwedNoMore() throws {
        let state = try StateDirectory()
        let directory = try SafeDirectory(path: state.path)
        for size in [0, 100_000] as [UInt64] {
            let file = try directory.open(SafeName("\(size)"), flags: OpenFile.readWrite | OpenFile.create)
            let spent = SpoolLedger.Spent()
            _ = try SpoolFile(file, size: size, in: directory, on: self.blocks, spent)
            #expect(spent.bytes.value == fileRoom(directory.isInMemory ? 0 : size))
        }
    }

    /// On a file system that cannot reserve space, such as procfs, everything is owed until it is written.
    @Test func whatTheDiskHasNotSetAsideIsOwed() throws {
        let directory = try SafeDirectory(path: "/proc/self")
        #expect(!directory.isInMemory)
        let spent = SpoolLedger.Spent()
        let file = try directory.open(SafeName("comm"), flags: OpenFile.readWrite)
        let sink = try SpoolFile(file, size: 100_000, in: directory, on: self.blocks, spent)
        #expect(try sink.length() == 0)
        #expect(spent.bytes.value == fileRoom(0))
    }

    /// Written bytes are counted as they arrive: here in memory, where no space is reserved either.
    @Test(.enabled(if: OtherDisk.isAvailable, "skipped: /dev/shm is no other file system")) func whatIsWrittenIsOwedNoMore() throws {
        let state = try OtherDisk.directory()
        let directory = try SafeDirectory(path: state.path)
        try #require(directory.isInMemory)
        let (name, size) = (try SafeName("a"), UInt64(100_000))
        let spent = SpoolLedger.Spent()
        let new = try directory.open(name, flags: OpenFile.readWrite | OpenFile.create)
        let sink = try SpoolFile(new, size: size, in: directory, on: self.blocks, spent)
        let written = [UInt8](repeating: 1, count: 10_000).withUnsafeBytes { bytes in
            Result { () throws(EarshotError) in try sink.write(bytes, at: 0) }
        }
        try written.get()
        #expect(spent.bytes.value == fileRoom(10_000))
        // After an interruption and resumption, the written bytes still count.
        let next = SpoolLedger.Spent()
        _ = try SpoolFile(try directory.open(name, flags: OpenFile.readWrite), size: size, in: directory, on: self.blocks, next)
        #expect(next.bytes.value == fileRoom(10_000))
    }
}
