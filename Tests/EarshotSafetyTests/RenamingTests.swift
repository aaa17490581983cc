import CLinux
import EarshotSafety
import Foundation
import Glibc
import Testing

/// Moving without replacing, on file systems that cannot promise it in one call (NFS, ZFS before 2.2).
@Suite struct RenamingTests {
    /// 0, or the errno.
    private func rename(_ name: String, to newName: String, in directory: SafeDirectory) -> CInt {
        earshot_rename_in_steps(directory.descriptor, name, directory.descriptor, newName) == 0 ? 0 : errno
    }

    private func makeDirectory(_ name: String, in scratch: Scratch) throws {
        try FileManager.default.createDirectory(atPath: "\(scratch.path)/\(name)", withIntermediateDirectories: true)
    }

    @Test func filesLinksAndDirectoriesAreMoved() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        try scratch.put("file", "text")
        try scratch.link("link", to: "nowhere")
        try self.makeDirectory("tree/sub", in: scratch)
        try scratch.put("tree/sub/file", "deep")
        for name in ["file", "link", "tree"] { #expect(self.rename(name, to: "new \(name)", in: directory) == 0) }
        #expect(try scratch.names() == ["new file", "new link", "new tree"])
        #expect(try scratch.text("new file") == "text")
        #expect(try scratch.text("new tree/sub/file") == "deep")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "\(scratch.path)/new link") == "nowhere")
    }

    /// Not even an empty directory, which rename(2) would replace.
    @Test(arguments: ["file", "tree"]) func nothingIsReplaced(_ name: String) throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        try scratch.put("file", "text")
        try self.makeDirectory("tree", in: scratch)
        try scratch.put("tree/file", "deep")
        try scratch.put("a file", "other")
        try self.makeDirectory("an empty directory", in: scratch)
        try scratch.link("a link", to: "nowhere")
        let before = try scratch.names()
        for taken in ["a file", "an empty directory", "a link"] { #expect(self.rename(name, to: taken, in: directory) == EEXIST) }
        #expect(try scratch.names() == before)
        #expect(try scratch.text("a file") == "other")
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/an empty directory") == [])
        #expect(try scratch.text("file") == "text")
        #expect(try scratch.text("tree/file") == "deep")
    }

    @Test func whatCannotBeMovedLeavesNothing() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        try self.makeDirectory("tree", in: scratch)
        #expect(self.rename("tree", to: "tree/inner", in: directory) == EINVAL)
        #expect(self.rename("missing", to: "new", in: directory) == ENOENT)
        #expect(try scratch.names() == ["tree"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/tree") == [])
    }
}
