import EarshotSafety
import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// Scanner, reader and writer, in real directories.
@Suite struct TreeFilesTests {
    /// Sends a directory's bytes into another in pieces of `piece` bytes, and gives it the permissions that it had.
    private func copy(_ source: SafeDirectory, to target: SafeDirectory, piece: Int) throws -> TreeManifest {
        let reader = TreeReader(source, scan: try TreeScanner.scan(source))
        let writer = TreeWriter(into: target, size: reader.manifest.size)
        var offset: UInt64 = 0
        while case let bytes = try reader.bytes(at: offset, count: piece), !bytes.isEmpty {
            try self.write(bytes, to: writer)
            offset += UInt64(bytes.count)
            #expect(writer.offset == offset)
        }
        try writer.finish()
        try TreePermissions.apply(reader.manifest, to: target)
        try TreePermissions.applyToRoot(reader.manifest, target)
        return reader.manifest
    }

    private func write(_ bytes: [UInt8], to writer: TreeWriter) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let taken = try Array(rest).withUnsafeBytes { try writer.write($0) }
            rest = rest.dropFirst(taken)
        }
    }

    @Test(arguments: [1, 7, 100, 1 << 20]) func everythingOddComesOutAsItWas(piece: Int) throws {
        let scratch = try TreeScratch()
        try scratch.odd("from")
        try scratch.make("to")
        let manifest = try self.copy(scratch.directory("from"), to: scratch.directory("to"), piece: piece)
        let (before, after) = (try portrait(scratch.directory("from")), try portrait(scratch.directory("to")))
        #expect(before == after)
        #expect(before.count == 13)
        // Neither the stream nor the copy has the holes in it.
        #expect(manifest.size < 64 * 1024)
        var status = stat()
        #expect(lstat("\(scratch.path)/to/sub/holes", &status) == 0 && status.st_size == 3 << 30 && status.st_blocks < 1024)
        #expect(try scratch.directory("to/empty").status().mode == 0o711)
    }

    /// Reading the tree again from any offset gives the same bytes.
    @Test func anyOffsetCanBeReadAgain() throws {
        let scratch = try TreeScratch()
        try scratch.odd("from")
        let directory = try scratch.directory("from")
        let reader = TreeReader(directory, scan: try TreeScanner.scan(directory))
        let whole = try reader.bytes(at: 0, count: Int(reader.manifest.size))
        #expect(whole.count == Int(reader.manifest.size))
        for offset in stride(from: 0, to: whole.count, by: 131) {
            #expect(try reader.bytes(at: UInt64(offset), count: 500) == Array(whole[offset..<min(offset + 500, whole.count)]))
        }
    }

    /// A writer that was killed after any byte is gone on with by another, which knows how far it had come.
    @Test func anInterruptedWriterIsGoneOnWith() throws {
        let scratch = try TreeScratch()
        try scratch.odd("from")
        let source = try scratch.directory("from")
        let reader = TreeReader(source, scan: try TreeScanner.scan(source))
        let whole = try reader.bytes(at: 0, count: Int(reader.manifest.size))
        let expected = try portrait(source)
        for cut in Set(stride(from: reader.manifest.bytes.count, through: whole.count, by: 997)).union([whole.count, whole.count - 1]) {
            try scratch.make("to-\(cut)")
            let target = try scratch.directory("to-\(cut)")
            try self.write(Array(whole[..<cut]), to: TreeWriter(into: target, size: reader.manifest.size))
            let writer = try TreeWriter(resuming: target, manifest: reader.manifest, size: reader.manifest.size)
            #expect(writer.offset <= UInt64(cut))
            // At most what one entry could not say for itself is lost: here all that was written is known.
            #expect(cut == reader.manifest.bytes.count || writer.offset == UInt64(cut))
            let read = TreeReader(target, manifest: reader.manifest)
            #expect(try read.bytes(at: 0, count: Int(writer.offset)) == Array(whole[..<Int(writer.offset)]))
            try self.write(Array(whole[Int(writer.offset)...]), to: writer)
            try writer.finish()
            try TreePermissions.apply(reader.manifest, to: target)
            try TreePermissions.applyToRoot(reader.manifest, target)
            #expect(try portrait(target) == expected)
        }
    }

    /// If a file system treats two names as one, as many do for upper and lower case, the second entry finds the first. The writer reports
    /// an error, and does not overwrite the first entry.
    @Test(arguments: ["file", "directory", "link"]) func noEntryTakesThePlaceOfAnother(_ kind: String) throws {
        let scratch = try TreeScratch()
        for place in ["from", "to"] {
            try scratch.make(place)
            switch kind {
            case "file": try scratch.put("\(place)/name", "what is \(place)")
            case "directory": try scratch.make("\(place)/name")
            default: scratch.link("\(place)/name", to: "what is \(place)")
            }
        }
        let (source, target) = (try scratch.directory("from"), try scratch.directory("to"))
        let before = try portrait(target)
        #expect(throws: TreeError.self) { _ = try self.copy(source, to: target, piece: 1 << 20) }
        #expect(try portrait(target) == before)
    }

    /// A directory with the set-group-id bit shares what is put there with its group, however closed the sender kept it; another does not.
    @Test func aDirectoryOfAGroupIsSharedWithIt() throws {
        let scratch = try TreeScratch()
        try scratch.make("from/sub")
        try scratch.put("from/closed", "closed", mode: 0o600)
        try scratch.put("from/sub/program", "program", mode: 0o700)
        scratch.link("from/link", to: "closed")
        chmod("\(scratch.path)/from/sub", 0o700)
        chmod("\(scratch.path)/from", 0o700)
        let scan = try TreeScanner.scan(scratch.directory("from"))
        let reader = TreeReader(try scratch.directory("from"), scan: scan)
        /// The permissions of a copy that is put into a directory with this mode: of the whole, what is closed, the directory, the program.
        func shared(_ mode: mode_t) throws -> [UInt32] {
            try scratch.make("group-\(mode)/to")
            chmod("\(scratch.path)/group-\(mode)", mode)
            let target = try scratch.directory("group-\(mode)/to")
            _ = try self.copy(scratch.directory("from"), to: target, piece: 1 << 20)
            let sharing = TreePermissions.Sharing(of: try scratch.directory("group-\(mode)").status())
            #expect((sharing == nil) == (mode & 0o2000 == 0))
            try TreePermissions.apply(reader.manifest, to: target, sharing: sharing)
            try TreePermissions.applyToRoot(reader.manifest, target, sharing: sharing)
            return try ["", "/closed", "/sub", "/sub/program"].map { name in
                try #require(FileStatus(path: "\(target.path)\(name)")).mode & 0o777
            }
        }
        #expect(try shared(0o750) == [0o700, 0o600, 0o700, 0o700])
        #expect(try shared(0o2750) == [0o750, 0o640, 0o750, 0o750])
        #expect(try shared(0o2770) == [0o770, 0o660, 0o770, 0o770])
        #expect(try shared(0o2700) == [0o700, 0o600, 0o700, 0o700])
    }

    /// With an access list, the group bits of a mode show the mask of the listed users and groups instead of the owning group's rights.
    @Test func aListOfRightsGivesTheGroupNone() throws {
        let scratch = try TreeScratch()
        try scratch.make("from/shared")
        try scratch.put("from/private", "private", mode: 0o600)
        chmod("\(scratch.path)/from/shared", 0o700)
        /// Version 2; tag, rights and id of the owner, the user 1234, the group, the mask and the others: `u::rwx,u:1234:rwx,g::---,m::rwx,o::---`.
        func list(_ rights: UInt8) -> [UInt8] {
            let none: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
            return [2, 0, 0, 0, 1, 0, rights, 0] + none + [2, 0, rights, 0, 0xD2, 4, 0, 0, 4, 0, 0, 0] + none
                + [0x10, 0, rights, 0] + none + [0x20, 0, 0, 0] + none
        }
        for (name, rights) in [("private", UInt8(6)), ("shared", 7)] {
            let value = list(rights)
            try #require(setListOfRights("\(scratch.path)/from/\(name)", "system.posix_acl_access", value, value.count, 0) == 0)
        }
        #expect(try #require(FileStatus(path: "\(scratch.path)/from/private")).mode & 0o777 == 0o660)
        let scan = try TreeScanner.scan(scratch.directory("from"))
        let modes = (1..<scan.manifest.count).map { (scan.manifest.pathText(of: $0), scan.manifest[$0].mode) }
        #expect(Dictionary(uniqueKeysWithValues: modes) == ["private": 0o600, "shared": 0o700])
        #expect(try TreeScanner.scan(scratch.directory("from/shared")).manifest[0].mode == 0o700)
    }

    @Test func whatCannotBeSentIsNamed() throws {
        let scratch = try TreeScratch()
        try scratch.make("pipe/sub")
        mkfifo("\(scratch.path)/pipe/sub/fifo", 0o600)
        #expect(throws: TreeError.unsupported(path: "\(scratch.path)/pipe/sub/fifo", what: "a named pipe")) {
            try TreeScanner.scan(SafeDirectory(path: "\(scratch.path)/pipe"))
        }
        // A file of the kernel's, which reports no size and has content.
        let version = "/proc/sys/kernel/random"
        #expect(refusal { _ = try TreeScanner.scan(SafeDirectory(path: version)) } == "unsupported")
        try scratch.make("absolute")
        scratch.link("absolute/out", to: "/etc/passwd")
        #expect(refusal { _ = try TreeScanner.scan(scratch.directory("absolute")) } == "name-rejected")
        try scratch.make("climbing/sub")
        scratch.link("climbing/sub/out", to: "../../secret")
        #expect(refusal { _ = try TreeScanner.scan(scratch.directory("climbing")) } == "name-rejected")
    }

    @Test func aDeepTreeIsRefusedAtTheLimit() throws {
        let scratch = try TreeScratch()
        var descriptor = open(scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        for _ in 0...TreeLimits.depth + 200 {
            mkdirat(descriptor, "d", 0o700)
            let next = openat(descriptor, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            close(descriptor)
            descriptor = next
        }
        close(descriptor)
        #expect(refusal { _ = try TreeScanner.scan(scratch.directory()) } == "too-large")
        #expect(try TreeRemoval.remove(SafeName("d"), from: scratch.directory()))
        #expect(access("\(scratch.path)/d", F_OK) != 0)
    }

    @Test func removalLeavesWhatLinksLeadTo() throws {
        let scratch = try TreeScratch()
        try scratch.make("kept")
        try scratch.put("kept/file", "stays")
        try scratch.odd("gone")
        scratch.link("gone/out", to: "../kept")
        #expect(try TreeRemoval.remove(SafeName("gone"), from: scratch.directory()))
        #expect(try !TreeRemoval.remove(SafeName("gone"), from: scratch.directory()))
        #expect(access("\(scratch.path)/gone", F_OK) != 0)
        #expect(access("\(scratch.path)/kept/file", F_OK) == 0)
    }

    /// A link can take the place of a directory while the directory is being removed.
    @Test func whatALinkLeadsToKeepsItsPermissions() throws {
        let scratch = try TreeScratch()
        for name in ["kept", "own"] {
            try scratch.make(name)
            chmod("\(scratch.path)/\(name)", 0o500)
        }
        scratch.link("out", to: "kept")
        let directory = try scratch.directory()
        for name in ["out", "own", "missing"] { TreeRemoval.unlock(name, in: directory.descriptor) }
        #expect(try scratch.directory("kept").status().mode == 0o500)
        #expect(try scratch.directory("own").status().mode == 0o700)
    }

    /// The removal gives permissions to a directory that may not be entered or written to.
    @Test func removalOpensWhatIsClosed() throws {
        let scratch = try TreeScratch()
        try scratch.make("gone/closed/deeper/deepest")
        try scratch.put("gone/closed/deeper/file", "x")
        for name in ["gone/closed/deeper/deepest", "gone/closed/deeper", "gone/closed", "gone"] { chmod("\(scratch.path)/\(name)", 0) }
        #expect(try TreeRemoval.remove(SafeName("gone"), from: scratch.directory()))
        #expect(access("\(scratch.path)/gone", F_OK) != 0)
    }

    @Test(arguments: ["longer", "shorter", "another", "a link", "a pipe", "gone", "a directory"])
    func aChangedSourceIsNoticed(change: String) throws {
        let scratch = try TreeScratch()
        try scratch.make("from/sub")
        try scratch.put("from/sub/file", "some content")
        try scratch.put("secret", "some content")
        let directory = try scratch.directory("from")
        let reader = TreeReader(directory, scan: try TreeScanner.scan(directory))
        let path = "\(scratch.path)/from/sub/file"
        switch change {
        case "longer": try scratch.put("from/sub/file", "some content and more")
        case "shorter": truncate(path, 4)
        case "another":
            try scratch.put("from/sub/other", "some content")
            rename("\(scratch.path)/from/sub/other", path)
        case "a link":
            unlink(path)
            scratch.link("from/sub/file", to: "../../secret")
        case "a pipe":
            unlink(path)
            mkfifo(path, 0o600)
        case "gone": unlink(path)
        default:
            unlink(path)
            rmdir("\(scratch.path)/from/sub")
            scratch.link("from/sub", to: "../")
        }
        #expect(refusal { _ = try reader.bytes(at: 0, count: Int(reader.manifest.size)) } == "source-changed")
    }

    /// A root whose directories and files turn into links and back while it is walked and read never gives away what is outside it.
    @Test func aSwappedSourceNeverLeadsOut() async throws {
        let scratch = try TreeScratch()
        try scratch.make("outside")
        try scratch.put("outside/file", "SECRET")
        try scratch.make("from/sub")
        try scratch.put("from/sub/file", "public")
        let path = scratch.path
        let isOver = Flag()
        let swapper = Thread {
            while !isOver.isSet {
                rename("\(path)/from/sub", "\(path)/aside")
                symlink("../outside", "\(path)/from/sub")
                unlink("\(path)/from/sub")
                rename("\(path)/aside", "\(path)/from/sub")
                rename("\(path)/from/sub/file", "\(path)/aside")
                symlink("../../outside/file", "\(path)/from/sub/file")
                unlink("\(path)/from/sub/file")
                rename("\(path)/aside", "\(path)/from/sub/file")
            }
            isOver.signal()
        }
        swapper.start()
        let directory = try scratch.directory("from")
        var whole = 0
        for _ in 0..<2000 {
            guard let scan = try? TreeScanner.scan(directory) else { continue }
            let reader = TreeReader(directory, scan: scan)
            guard let bytes = try? reader.bytes(at: UInt64(scan.manifest.bytes.count), count: 64) else { continue }
            #expect(bytes.isEmpty || bytes == Array("public".utf8))
            if !bytes.isEmpty { whole += 1 }
        }
        isOver.set()
        isOver.wait()
        #expect(whole > 0)
    }

    @Test func aStreamThatLiesLeavesNothingOutside() throws {
        let scratch = try TreeScratch()
        try scratch.make("to")
        for (name, entries, expected) in TreeFixtures.lies {
            let bytes = TreeFixtures.raw(entries)
            let size = UInt64(bytes.count) &+ entries.reduce(0) { $0 &+ ($1.dataLength ?? 0) }
            let writer = try TreeWriter(into: scratch.directory("to"), size: size)
            #expect(refusal { try self.write(bytes, to: writer) } == expected, "\(name)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(scratch.path)/to") == [])
        }
        let bytes = TreeFixtures.raw([TreeFixtures.root, TreeFixtures.file("a", in: 0, size: 2)])
        let size = UInt64(bytes.count) + 2
        #expect(refusal { try self.write(bytes, to: TreeWriter(into: scratch.directory("to"), size: size + 1)) } == "malformed")
        let writer = try TreeWriter(into: scratch.directory("to"), size: size)
        #expect(refusal { try self.write(bytes + [1, 2, 3], to: writer) } == "malformed")
        try scratch.make("short")
        let short = try TreeWriter(into: scratch.directory("short"), size: size)
        try self.write(bytes + [1], to: short)
        #expect(refusal { try short.finish() } == "malformed")
    }

    /// A disk that is full says so as itself.
    @Test func aFileThatCannotBeWritten() throws {
        let scratch = try TreeScratch()
        try scratch.make("to")
        let largest = UInt64(Int64.max)
        let bytes = TreeFixtures.raw([TreeFixtures.root, TreeFixtures.sparse("a", in: 0, size: largest, [(largest - 2, 1)])])
        let writer = try TreeWriter(into: scratch.directory("to"), size: UInt64(bytes.count) + 1)
        #expect(refusal { try self.write(bytes + [1], to: writer) } == "file")
    }

    @Test func aTreeOfNothing() throws {
        let scratch = try TreeScratch()
        try scratch.make("from")
        try scratch.make("to")
        chmod("\(scratch.path)/from", 0o500)
        _ = try self.copy(scratch.directory("from"), to: scratch.directory("to"), piece: 10)
        #expect(try portrait(scratch.directory("from")) == portrait(scratch.directory("to")))
    }
}

/// setxattr(2), which Swift's Glibc module lacks.
@_silgen_name("setxattr")
private func setListOfRights(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafeRawPointer, _ size: Int, _ flags: CInt
) -> CInt

/// A flag with which one thread tells another that it has ended.
private final class Flag: @unchecked Sendable {
    // Both sides hold the lock.
    private let condition = NSCondition()
    private var value = false
    private var ended = false
    var isSet: Bool { self.condition.withLock { self.value } }
    func set() { self.condition.withLock { self.value = true } }
    func signal() {
        self.condition.withLock {
            self.ended = true
            self.condition.broadcast()
        }
    }
    func wait() { self.condition.withLock { while !self.ended { self.condition.wait() } } }
}
