import Foundation
import Glibc
import Testing

@testable import EarshotCLI

/// Writing and syncing standard output, on any descriptor.
@Suite struct StandardTests {
    /// open(2)'s O_PATH, which Swift's Glibc overlay does not export: a descriptor opened with it can be examined, but neither written nor
    /// synced.
    private static let pathOnly: CInt = 0o10_000_000

    /// Opens a file with these flags, and returns the result of syncing it.
    private func saved(_ path: String, _ flags: CInt) throws -> CInt {
        let descriptor = open(path, flags | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        return Standard.sync(descriptor)
    }

    @Test func onlyAFileIsSaved() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID())").path
        try #require(FileManager.default.createFile(atPath: path, contents: Data("x".utf8)))
        defer { unlink(path) }
        #expect(try self.saved(path, O_WRONLY) == 0)
        #expect(try self.saved(path, Self.pathOnly) == EBADF, "an error of the disk's is one")
        #expect(try self.saved("/dev/null", O_WRONLY) == 0, "it is no file")
        #expect(try self.saved("/proc/self/comm", O_RDONLY) == 0, "its file system knows no such thing")
        #expect(Standard.sync(-1) == EBADF)
    }

    @Test func whatIsNotSavedIsAnErrorOfWriting() {
        let failure = #expect(throws: CommandFailure.self) { try Standard.check(EDQUOT) }
        #expect(failure?.status == .io)
        #expect(failure?.message?.hasPrefix("cannot write to standard output: ") == true)
    }
}
