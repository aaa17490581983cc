import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// The archive is what other programs make of it, as an ordinary user.
@Suite struct TarStreamTests {
    /// A program that unpacks `archive.tar` into the working directory.
    enum Unpacker: String, CaseIterable {
        case tar = "tar -xpf ../archive.tar"
        case bsdtar = "bsdtar -xpf ../archive.tar"
        case python = "python3 -c 'import tarfile; tarfile.open(\"../archive.tar\").extractall()'"

        /// Python keeps times as floating-point numbers, and sets none of symbolic links.
        var keepsAllTimes: Bool { self != .python }
    }

    /// Runs a shell's command in a directory, without root's rights; its exit status and all that it has said.
    private func run(_ command: String, in place: String) throws -> (status: Int32, said: String) {
        let script = "cd \(place)/out && exec \(command) >../said 2>&1"
        let user = geteuid() == 0 ? ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        let words = user + ["/usr/bin/env", "LC_ALL=C.UTF-8", "/bin/sh", "-c", script]
        var pid: pid_t = 0
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        try #require(posix_spawn(&pid, words[0], nil, nil, &arguments, environ) == 0)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        return (status, try String(contentsOfFile: "\(place)/said", encoding: .utf8))
    }

    /// A tree with everything that archives differ about.
    private func tree(_ scratch: TreeScratch) throws {
        let long = String(repeating: "l", count: 200)
        try scratch.odd("tree")
        try scratch.put("tree/\(long)", "long")
        scratch.link("tree/to-\(long)", to: long)
        // As a cache of Go's modules: nothing in it may be written to.
        try scratch.make("tree/cache/module/package")
        try scratch.put("tree/cache/module/package/file", "read", mode: 0o444)
        for directory in ["cache/module/package", "cache/module", "cache"] { chmod("\(scratch.path)/tree/\(directory)", 0o555) }
        // Names that are no UTF-8, short and long, of a file, a link, and a file with holes.
        let base = Array("\(scratch.path)/tree/".utf8CString.dropLast())
        for count in [1, 150] {
            let name = base + [CChar](repeating: -1, count: count)
            let file = open(name + [0], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            #expect(write(file, "bytes", 5) == 5)
            close(file)
            #expect(symlink(Array(name.dropFirst(base.count)) + [0], name + Array("-link".utf8CString)) == 0)
            let hollow = open(name + Array("-hollow".utf8CString), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            #expect(ftruncate(hollow, 1 << 20) == 0)
            close(hollow)
        }
    }

    @Test(arguments: Unpacker.allCases, [1000, 1 << 20]) func itIsUnpackedAsItWas(unpacker: Unpacker, piece: Int) throws {
        let scratch = try TreeScratch()
        try self.tree(scratch)
        let directory = try scratch.directory("tree")
        let stream = TarStream(TreeReader(directory, scan: try TreeScanner.scan(directory)), name: "tree")
        var archive = Data()
        while case let bytes = try stream.next(piece), !bytes.isEmpty { archive.append(contentsOf: bytes) }
        #expect(archive.count % 512 == 0 && archive.count < 64 * 1024)
        try archive.write(to: URL(fileURLWithPath: "\(scratch.path)/archive.tar"))
        try scratch.make("out")
        for place in [scratch.path, "\(scratch.path)/out"] { chmod(place, 0o777) }
        let (status, said) = try self.run(unpacker.rawValue, in: scratch.path)
        #expect(status == 0 && said.isEmpty, "\(said)")
        let times: TreeTimes = unpacker.keepsAllTimes ? .all : .milliseconds
        #expect(try portrait(scratch.directory("tree"), times) == portrait(scratch.directory("out/tree"), times))
    }

    /// Each entry is behind its directory, and a directory's entries are together with all that is below them.
    @Test func entriesComeDepthFirst() throws {
        let scratch = try TreeScratch()
        for path in ["tree/a/x", "tree/a/y", "tree/b/x"] { try scratch.make(path) }
        for path in ["tree/a/x/1", "tree/a/z", "tree/b/x/2", "tree/c"] { try scratch.put(path, "") }
        let directory = try scratch.directory("tree")
        let stream = TarStream(TreeReader(directory, scan: try TreeScanner.scan(directory)), name: "t")
        var names: [String] = []
        while case let block = try stream.next(512), block.first ?? 0 != 0 {
            // Extended headers, of times, have a block of their own behind them.
            guard block[156] != UInt8(ascii: "x") else {
                _ = try stream.next(512)
                continue
            }
            names.append(String(decoding: block.prefix { $0 != 0 }, as: UTF8.self))
        }
        #expect(names == ["t/", "t/a/", "t/a/x/", "t/a/x/1", "t/a/y/", "t/a/z", "t/b/", "t/b/x/", "t/b/x/2", "t/c"])
    }
}
