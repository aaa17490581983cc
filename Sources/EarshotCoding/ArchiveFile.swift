import Crypto
import EarshotSafety
import Glibc

/// The first line of an archive's file, which identifies the archive and its content.
///
/// The form is `earshot-archive 1 KIND VERSION BYTES DIGEST`. BYTES is the length of the JSON after the line. DIGEST is the SHA-256, in
/// hexadecimal, of `KIND VERSION BYTES`, a line feed, and the JSON.
struct ArchiveHeader: Hashable {
    /// The first bytes of every archive's file; the number is that of the format.
    static let magic = "earshot-archive 1 "
    /// The longest header, in bytes: more than any that is written.
    static let limit = 256
    private static let kindLimit = 64

    let kind: String
    let version: UInt32
    let count: Int
    let digest: String

    /// Creates the header of this JSON.
    init(kind: String, version: UInt32, of json: some Collection<UInt8>) {
        self.kind = kind
        self.version = version
        self.count = json.count
        self.digest = Self.digest(kind: kind, version: version, json)
    }

    /// Parses the line without its end; `nil` if it is not a header.
    init?(line: some Collection<UInt8>) {
        guard let text = String(validating: line, as: UTF8.self), text.hasPrefix(Self.magic) else { return nil }
        let words = text.dropFirst(Self.magic.count).split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4, let version = UInt32(words[1]), let count = Int(words[2]), version > 0, count >= 0 else { return nil }
        self.kind = String(words[0])
        self.version = version
        self.count = count
        self.digest = String(words[3])
        // Refuses any other spelling: equal headers are equal bytes.
        guard Self.isKind(self.kind), Array(self.line.dropLast()) == Array(line) else { return nil }
    }

    /// The line with its end.
    var line: [UInt8] { Array("\(Self.magic)\(self.kind) \(self.version) \(self.count) \(self.digest)\n".utf8) }

    /// Whether the header belongs to this JSON.
    func fits(_ json: some Collection<UInt8>) -> Bool {
        self.count == json.count && self.digest == Self.digest(kind: self.kind, version: self.version, json)
    }

    private static func digest(kind: String, version: UInt32, _ json: some Collection<UInt8>) -> String {
        var hash = SHA256()
        hash.update(data: Array("\(kind) \(version) \(json.count)\n".utf8))
        hash.update(data: Array(json))
        return hash.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }

    /// Whether a text may be the kind of an archive.
    static func isKind(_ text: String) -> Bool {
        (1...Self.kindLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}

/// The file of an ``Archive``.
struct ArchiveFile {
    let path: String
    let kind: String
    /// The latest supported version.
    let version: UInt32

    /// Reads the JSON in the file, with its version; `nil` if there is no file.
    func read() throws(ArchiveError) -> (version: UInt32, json: [UInt8])? {
        guard let file = try self.reading(open) else { return nil }
        // Checked before the whole file is read, because a foreign file may be of any length.
        let first = try self.reading { () throws(FileError) in try file.bytes(at: 0, count: ArchiveHeader.limit) }
        guard first.starts(with: ArchiveHeader.magic.utf8) else { throw self.error(.foreign, "this is no archive") }
        guard let end = first.firstIndex(of: UInt8(ascii: "\n")), let header = ArchiveHeader(line: first[..<end]) else {
            throw self.error(.damaged, "its first line is no archive's")
        }
        guard header.kind == self.kind else { throw self.error(.foreign, "this is an archive of \(header.kind), not of \(self.kind)") }
        guard header.count <= ArchiveLimits.size else { throw self.error(.tooLarge, "it is longer than \(ArchiveLimits.size) bytes") }
        // Reads one byte more than expected, to detect a longer file.
        let json = try self.reading { () throws(FileError) in try file.bytes(at: UInt64(end + 1), count: header.count + 1) }
        guard json.count == header.count else { throw self.error(.damaged, "it has another length than it says") }
        guard header.fits(json) else { throw self.error(.damaged, "its content is not what was written") }
        guard header.version <= self.version else {
            throw self.error(.newer, "it is of version \(header.version), and this program knows \(self.version)")
        }
        return (header.version, json)
    }

    private func reading<Value>(_ read: () throws(FileError) -> Value) throws(ArchiveError) -> Value {
        do throws(FileError) {
            return try read()
        } catch {
            throw self.error(.unreadable, "cannot be read: \(error.reason)")
        }
    }

    private func open() throws(FileError) -> OpenFile? {
        let (directory, name) = try self.place()
        guard let status = try directory.status(of: name) else { return nil }
        // Does not follow a link or wait for a pipe.
        guard status.kind == .regular else { throw FileError("read", self.path, code: EINVAL) }
        return try directory.open(name)
    }

    /// Writes the JSON, atomically and durably.
    func write(_ json: [UInt8]) throws(ArchiveError) {
        guard json.count <= ArchiveLimits.size else { throw self.error(.tooLarge, "the value takes more than \(ArchiveLimits.size) bytes") }
        do throws(FileError) {
            let (directory, name) = try self.place()
            let file = try TemporaryFile(in: directory, mode: 0o600)
            try file.file.write(ArchiveHeader(kind: self.kind, version: self.version, of: json).line + json, at: 0)
            _ = try file.publish(as: name, onConflict: .overwrite)
        } catch {
            throw self.error(.unwritable, "cannot be written: \(error.reason)")
        }
    }

    /// Returns the directory, and the file's name in it.
    private func place() throws(FileError) -> (directory: SafeDirectory, name: SafeName) {
        let name = self.path.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        let directory = String(self.path.dropLast(name.count))
        let safe: SafeName
        do throws(NameRejected) {
            safe = try SafeName(name)
        } catch {
            throw FileError("open", self.path, code: EINVAL)
        }
        return (try SafeDirectory(path: directory.isEmpty ? "." : directory), safe)
    }

    private func error(_ code: ArchiveError.Code, _ reason: String) -> ArchiveError {
        ArchiveError(code, path: self.path, reason: reason)
    }
}
