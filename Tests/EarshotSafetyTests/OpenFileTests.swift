import EarshotSafety
import Foundation
import Testing

/// Room that is set aside for a file, and whether it was.
@Suite struct OpenFileTests {
    @Test func whatIsSetAsideIsAllocated() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        let file = try directory.open(SafeName("a"), flags: OpenFile.readWrite | OpenFile.create)
        try file.write([1], at: 0)
        #expect(try file.reserve(1 << 20))
        let (size, allocated) = (try file.status().size, try file.status().allocated)
        #expect(size == 1 && allocated >= 1 << 20)
        try file.releaseReserve()
        #expect(try file.status().allocated < 1 << 20)
        #expect(try file.status().size == 1)
    }

    /// Holes are set aside as well, as far as they are asked for.
    @Test func ofAFileWithHolesTheWholeIsSetAside() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        let file = try directory.open(SafeName("a"), flags: OpenFile.readWrite | OpenFile.create)
        try file.write([1], at: (1 << 20) - 1)
        #expect(try file.reserve(1 << 20))
        #expect(try file.status().allocated >= 1 << 20)
    }

    /// An ordinary file of the kernel's own, which sets nothing aside, as NFS and sshfs do not.
    @Test func whatIsNotSetAsideIsTold() throws {
        let file = try SafeDirectory(path: "/proc/self").open(SafeName("comm"), flags: OpenFile.readWrite)
        #expect(try file.status().kind == .regular)
        #expect(try !file.reserve(4096))
        #expect(try file.reserve(0), "nothing is needed")
    }
}
