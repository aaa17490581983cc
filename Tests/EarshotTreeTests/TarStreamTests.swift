import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// The archive is what GNU tar makes of it.
@Suite struct TarStreamTests {
    private func run(_ words: [String]) throws -> Int32 {
        var pid: pid_t = 0
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        try #require(posix_spawn(&pid, words[0], nil, nil, &arguments, environ) == 0)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        return status
    }

    @Test(arguments: [1000, 1 << 20]) func tarUnpacksItAsItWas(piece: Int) throws {
        let scratch = try TreeScratch()
        let long = String(repeating: "l", count: 200)
        try scratch.odd("tree")
        try scratch.put("tree/\(long)", "long")
        scratch.link("tree/to-\(long)", to: long)
        let directory = try scratch.directory("tree")
        let stream = TarStream(TreeReader(directory, scan: try TreeScanner.scan(directory)), name: "tree")
        var archive = Data()
        while case let bytes = try stream.next(piece), !bytes.isEmpty { archive.append(contentsOf: bytes) }
        #expect(archive.count % 512 == 0 && archive.count < 64 * 1024)
        try archive.write(to: URL(fileURLWithPath: "\(scratch.path)/archive.tar"))
        try scratch.make("out")
        let options = ["--delay-directory-restore", "--same-permissions", "-C", "\(scratch.path)/out"]
        let tar = ["/bin/tar", "-xf", "\(scratch.path)/archive.tar"] + options
        #expect(try self.run(tar) == 0)
        #expect(try portrait(scratch.directory("tree")) == portrait(scratch.directory("out/tree")))
    }
}
