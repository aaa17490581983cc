import EarshotClient
import EarshotSafety
import Foundation
import Glibc
import NIOCore
import Testing

@testable import EarshotCLI

/// Files and directories to send, as this process reads them.
@Suite struct LocalSourceTests {
    /// A change of a file after its first bytes were read.
    enum Change: CaseIterable, Sendable {
        case nothing, written, longer, shorter

        func happen(to path: String) throws {
            switch self {
            case .nothing: break
            // Written in place, as a database does. The time is set, so that the test does not depend on the clock's resolution.
            case .written: try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path)
            case .longer: try #require(truncate(path, off_t(3 * LocalSource.pieceSize)) == 0)
            case .shorter: try #require(truncate(path, off_t(LocalSource.pieceSize)) == 0)
            }
        }

        /// The end of the error.
        var fault: String? {
            switch self {
            case .nothing: nil
            case .written, .longer: "changed while it was sent; send it again"
            case .shorter: "became shorter while it was being sent"
            }
        }
    }

    /// The last bytes are then withheld: the daemon receives less than announced, and discards it.
    @Test(arguments: Change.allCases) func aFileThatChanges(_ change: Change) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID())").path
        let size = 2 * LocalSource.pieceSize
        try #require(FileManager.default.createFile(atPath: path, contents: Data(repeating: 0x41, count: size)))
        defer { unlink(path) }
        let content = try LocalSource(path).content { _ in }
        #expect(content.size == UInt64(size))
        var read: [Int] = []
        var failure: ControlError?
        do {
            for try await piece in content.bytes {
                read.append(piece.readableBytes)
                if read.count == 1 { try change.happen(to: path) }
            }
        } catch let error as ControlError {
            failure = error
        }
        let expected = change.fault.map { ControlError.source("\(path) \($0)") }
        #expect(failure == expected)
        #expect(read.reduce(0, +) == (failure == nil ? size : LocalSource.pieceSize))
        if let failure { #expect(FailureReport(failure).status == ExitStatus(code: "source-changed").rawValue) }
    }

    /// A path that is not UTF-8 would name another file for the daemon, so the bytes are sent.
    @Test func aPathThatIsNoText() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID())").path
        // "café" in Latin-1.
        let odd = (Array("\(place)/caf".utf8) + [0xE9, 0]).map { CChar(bitPattern: $0) }
        let link = "\(place)/link"
        let made = [mkdir(place, 0o700), mkdir(odd, 0o700), symlink(odd, link)]
        try #require(made == [0, 0, 0])
        defer {
            unlink("\(link)/file")
            unlink(link)
            rmdir(odd)
            rmdir(place)
        }
        let descriptor = open("\(link)/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0 && ftruncate(descriptor, 1) == 0)
        close(descriptor)
        let source = try LocalSource("\(link)/file")
        #expect(source.pathForDaemon == nil && source.name == "file")
        let content = try source.content { _ in }
        #expect(content.size == 1)
        // A link has a valid name of its own; its target's name cannot be sent.
        #expect(try LocalSource(link).name == "link")
        let failure = #expect(throws: CommandFailure.self) { try LocalSource("\(link)/.") }
        #expect(failure?.status == .data && failure?.message?.hasSuffix("is not valid UTF-8") == true)
    }

    /// A link is sent under its own name, with the content of its target.
    @Test func aPathThatTheDaemonCanUse() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID())").path
        let (plain, link) = ("\(place)/plain", "\(place)/link")
        let made = [mkdir(place, 0o700), mkdir(plain, 0o700), symlink("plain", link)]
        try #require(made == [0, 0, 0])
        defer {
            unlink(link)
            rmdir(plain)
            rmdir(place)
        }
        for path in [plain, "\(plain)/", "\(plain)/.", "\(link)/."] {
            let source = try LocalSource(path)
            #expect(source.name == "plain" && source.pathForDaemon?.hasSuffix("/plain") == true, "\(path)")
        }
        for path in [link, "\(link)/", "\(link)//"] {
            let linked = try LocalSource(path)
            #expect(linked.name == "link" && linked.pathForDaemon?.hasSuffix("/plain") == true, "\(path)")
        }
    }

    /// The kernel generates the content of some files when they are read: they report 0 bytes, or a whole page.
    @Test(arguments: ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"]) func aFileWithoutItsSize(path: String) async throws {
        try #require(access(path, R_OK) == 0, "\(path) can be read")
        let content = try String(contentsOfFile: path, encoding: .utf8)
        let source = try LocalSource(path)
        #expect(source.pathForDaemon == nil)
        let (size, bytes, _) = try source.content { _ in }
        #expect(size == UInt64(content.utf8.count))
        var read = ""
        for try await piece in bytes { read += String(buffer: piece) }
        #expect(read == content && !read.isEmpty)
    }

    @Test func filesWithTheirSize() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID())").path
        try #require(mkdir(place, 0o700) == 0)
        defer { try? FileManager.default.removeItem(atPath: place) }
        for (name, size) in [("empty", 0), ("hollow", 4096), ("large", 1 << 30)] {
            let descriptor = open("\(place)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            try #require(descriptor >= 0 && ftruncate(descriptor, off_t(size)) == 0)
            close(descriptor)
            #expect(try LocalSource("\(place)/\(name)").pathForDaemon != nil, "\(name)")
        }
        // An endless file, which reports no size either.
        let limit = LocalSource.madeUpLimit
        let file = OpenFile(descriptor: open("\(place)/large", O_RDONLY | O_CLOEXEC), subject: "large")
        #expect(try file.wholeContent(limit: limit) == nil)
        try #require(truncate("\(place)/large", off_t(limit + 1)) == 0)
        #expect(try file.wholeContent(limit: limit) == nil)
        try #require(truncate("\(place)/large", off_t(limit)) == 0)
        #expect(try file.wholeContent(limit: limit)?.count == limit)
    }
}
