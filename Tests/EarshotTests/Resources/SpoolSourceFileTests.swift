@testable import Earshot
import EarshotWire
import Foundation
import NIOCore
import Testing

@Suite struct SourceFileTests {
    private func write(_ text: String, to name: String, in directory: StateDirectory) throws -> String {
        let path = "\(directory.path)/\(name)"
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    private func code(_ path: String) -> (EarshotError.Code, String)? {
        do {
            _ = try SourceFile(path: path)
            return nil
        } catch {
            return (error.code, error.message)
        }
    }

    @Test func readsAndHashes() async throws {
        let directory = try StateDirectory()
        let file = try SourceFile(path: self.write("0123456789", to: "a file.txt", in: directory))
        #expect(file.name == "a file.txt")
        #expect(file.size == 10)
        let source = try SourceContent(file)
        #expect(try await source.read(at: 0, count: 4) == ByteBuffer(string: "0123"))
        #expect(try await source.read(at: 0, count: 4) == ByteBuffer(string: "0123"))
        #expect(try await source.read(at: 9, count: 4) == ByteBuffer(string: "9"))
        #expect(try await source.read(at: 10, count: 4).readableBytes == 0)
        #expect(try await source.read(at: .max, count: .max).readableBytes == 0)
        #expect(try await source.read(at: 4, count: -1).readableBytes == 0)
        let hash = try XXH3()
        hash.update(ByteBuffer(string: "0123456789"))
        // The rest is read automatically.
        #expect(try await source.finish(.xxh3) == hash.digest())
    }

    @Test func anEmptyFile() async throws {
        let directory = try StateDirectory()
        let file = try SourceFile(path: self.write("", to: "empty", in: directory))
        #expect(file.size == 0)
        let source = try SourceContent(file)
        #expect(try await source.finish(.xxh3) == XXH3().digest())
    }

    @Test func aChangeIsNoticed() async throws {
        let directory = try StateDirectory()
        for change in ["0123456789a", "012345678", "abcdefghij", ""] {
            let path = try self.write("0123456789", to: "f", in: directory)
            // The clock of file times is coarse. An old time distinguishes a change from the creation of the file.
            try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: path)
            let source = try SourceContent(SourceFile(path: path))
            _ = try await source.read(at: 0, count: 10)
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try handle.truncate(atOffset: UInt64(change.utf8.count))
            try handle.write(contentsOf: Data(change.utf8))
            try handle.close()
            let error = await #expect(throws: EarshotError.self) { try await source.finish(.xxh3) }
            #expect(error?.code == .sourceChanged, "\(change)")
        }
    }

    @Test func aFileThatShrinksWhileItIsReadIsNoticed() async throws {
        let directory = try StateDirectory()
        let path = try self.write("0123456789", to: "f", in: directory)
        let source = try SourceContent(SourceFile(path: path))
        try FileHandle(forWritingTo: URL(fileURLWithPath: path)).truncate(atOffset: 3)
        let error = await #expect(throws: EarshotError.self) { try await source.read(at: 0, count: 10) }
        #expect(error?.code == .sourceChanged)
    }

    @Test func onlyOrdinaryFiles() throws {
        let directory = try StateDirectory()
        #expect(mkfifo("\(directory.path)/pipe", 0o600) == 0)
        for (path, word) in [
            (directory.path, "a directory"), ("/", "names no file"), ("\(directory.path)/", "names no file"),
            ("\(directory.path)/..", "names no file"),
            ("\(directory.path)/pipe", "a named pipe"), ("/dev/null", "a device"), ("\(directory.path)/missing", "no such file"),
            ("", "names no file"), ("a\0b", "control character"), ("/a\0b/c", "NUL"),
        ] {
            let result = self.code(path)
            #expect(result?.0 == .invalidSource || result?.0 == .nameRejected, "\(path)")
            #expect(result?.1.contains(word) == true, "\(path): \(result?.1 ?? "opened")")
        }
        // A link in the sender's own path is followed, because the sending user named it.
        let path = try self.write("x", to: "real", in: directory)
        try FileManager.default.createSymbolicLink(atPath: "\(directory.path)/link", withDestinationPath: path)
        #expect(try SourceFile(path: "\(directory.path)/link").name == "link")
        let odd = try self.write("x", to: "bad\u{1B}name", in: directory)
        #expect(self.code(odd)?.0 == .nameRejected)
        #expect(self.code(odd)?.1.contains("\u{1B}") == false)
    }
}
