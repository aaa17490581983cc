import EarshotCoding
import Glibc

/// Archives: the first byte says whether the rest is a file's content, or a value whose file is changed in one place.
///
/// A file that is not taken is left as it is; what is taken is what was written; and every single change is noticed.
enum ArchiveHarness: Harness {
    private struct Value: Codable, Sendable, Equatable {
        var text: String
        var numbers: [Int]
    }

    static func run(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let rest = Array(input.dropFirst())
        if choice % 2 == 0 { self.anyFile(rest) } else { self.changedFile(rest) }
    }

    /// In memory: a fuzzer would wear a disk out.
    private static let path = "/dev/shm/earshot-fuzz-\(getpid())"
    private static let archive = Archive<Value>(path: Self.path, kind: "example.value", version: 2)

    private static func anyFile(_ content: [UInt8]) {
        self.put(content)
        do throws(ArchiveError) {
            let value = try self.archive.read()
            demand(value != nil, "there is a file")
        } catch {
            demand(error.path == self.path, "an error names the file")
            demand(self.content() == content, "what is not taken is left as it is")
            guard error.code != .noMigration, error.code != .undecodable else { return }
            do throws(ArchiveError) {
                try self.archive.write(Value(text: "", numbers: []))
                demand(false, "what is not known is not replaced")
            } catch {
                demand(self.content() == content, "what is not known is left as it is")
            }
        }
    }

    /// Two bytes say where and how; the others are the value's.
    private static func changedFile(_ bytes: [UInt8]) {
        guard bytes.count > 3 else { return }
        let value = Value(text: String(decoding: bytes.dropFirst(3), as: UTF8.self), numbers: bytes.dropFirst(3).map(Int.init))
        unlink(self.path)
        do throws(ArchiveError) {
            try self.archive.write(value)
            let read = try self.archive.read()
            demand(read == value, "what is written is read")
        } catch {
            demand(false, "a value is written and read: \(error)")
        }
        var content = self.content()
        let place = (Int(bytes[0]) << 8 | Int(bytes[1])) % content.count
        content[place] ^= max(1, bytes[2])
        self.put(content)
        do throws(ArchiveError) {
            let read = try self.archive.read()
            demand(false, "a change at \(place) is noticed, and not read as \(String(describing: read))")
        } catch {
            demand(self.content() == content, "what is damaged is left as it is")
        }
    }

    private static func put(_ content: [UInt8]) {
        let file = open(self.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        demand(file >= 0 && write(file, content, content.count) == content.count, "the file is written")
        close(file)
    }

    private static func content() -> [UInt8] {
        let file = open(self.path, O_RDONLY | O_CLOEXEC)
        var content = [UInt8](repeating: 0, count: 1 << 17)
        let count = read(file, &content, content.count)
        close(file)
        demand(count >= 0 && count < content.count, "the file is read")
        return Array(content.prefix(count))
    }
}
