import EarshotClient
import EarshotSafety
import EarshotTree
import Glibc
import NIOCore
import Synchronization

/// A file or directory that the user wants to send.
struct LocalSource: Sendable {
    /// The size of one read, in bytes.
    static let pieceSize = 256 * 1024

    /// The path as the user gave it.
    let path: String
    /// The last component of the path: the name that the receiver sees.
    let name: String
    /// The path without symbolic links, for the daemon, which has another working directory. `nil` if the bytes must be sent instead: a
    /// request cannot name a path that is not UTF-8, content that the kernel generates is read once, here, and a directory of which
    /// entries are excluded is walked here.
    let pathForDaemon: String?
    /// The file's device and inode.
    let device: UInt64
    let inode: UInt64
    /// The content of a file that does not have its reported size, as in /proc; `nil` for all others.
    private let madeUp: [UInt8]?
    /// Whether it is a file or a directory.
    let kind: ControlAPI.Resource.Kind
    /// The entries of a directory that are not sent; `nil` without patterns.
    private let exclusions: TreeExclusions?

    init(_ path: String, excluding patterns: [String] = []) throws(CommandFailure) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw CommandFailure(.noInput, FileError("open", path).description) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: self.kind = .file
        case S_IFDIR: self.kind = .directory
        default: throw CommandFailure(.noInput, "\(path.escapedForDisplay) is neither a file nor a directory")
        }
        guard access(path, self.kind == .directory ? R_OK | X_OK : R_OK) == 0 else {
            throw CommandFailure(.noInput, FileError("read", path).description)
        }
        guard let resolved = realpath(path, nil) else { throw CommandFailure(.noInput, FileError("open", path).description) }
        defer { free(resolved) }
        // Checked as bytes: for bytes that are not UTF-8, a String would silently make another path.
        let real = Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
        self.path = path
        // Takes the name that the user typed, not that of a link's target. `.` and `..` are not names.
        let typed = path.split(separator: "/").last.map(String.init) ?? path
        self.name = if typed == "." || typed == ".." { try Self.name(real) } else { typed }
        self.device = UInt64(status.st_dev)
        self.inode = UInt64(status.st_ino)
        self.madeUp = self.kind == .file ? try Self.madeUpContent(path) : nil
        self.exclusions = patterns.isEmpty ? nil : TreeExclusions(patterns, below: self.name)
        let isWhole = self.madeUp == nil && (self.kind == .file || patterns.isEmpty)
        self.pathForDaemon = isWhole ? String(validating: real, as: UTF8.self) : nil
    }

    /// Whether the patterns exclude the file or directory itself.
    var isExcluded: Bool { self.exclusions?.matches([]) == true }

    /// The most content, in bytes, that is sent of a file without its reported size.
    static let madeUpLimit = 16 * 1024 * 1024

    private static func madeUpContent(_ path: String) throws(CommandFailure) -> [UInt8]? {
        // Reading some of these files blocks until an event happens.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { throw CommandFailure(.noInput, FileError("open", path).description) }
        let file = OpenFile(descriptor: descriptor, subject: path)
        let content: [UInt8]?
        do throws(FileError) {
            guard try !file.hasReportedSize(try file.status()) else { return nil }
            content = try file.wholeContent(limit: Self.madeUpLimit)
        } catch {
            throw CommandFailure(.noInput, error.description)
        }
        guard let content else {
            let limit = Words.size(UInt64(Self.madeUpLimit))
            throw CommandFailure(
                .data, "\(path.escapedForDisplay) does not report its size, and has more than \(limit)",
                hint: "copy it to a file, and send that")
        }
        return content
    }

    /// The last component of a path; for the root directory, the whole path.
    private static func name(_ path: [UInt8]) throws(CommandFailure) -> String {
        let last = path.split(separator: UInt8(ascii: "/")).last ?? path[...]
        guard let name = String(validating: last, as: UTF8.self) else {
            let shown = String(decoding: last, as: UTF8.self).escapedForDisplay
            throw CommandFailure(
                .data, "the name \"\(shown)\" is not valid UTF-8", hint: "rename the directory, or send it by a link with another name")
        }
        return name
    }

    /// Whether the daemon runs as this user and can open the same files, so that a path is enough.
    static func daemonCanOpen(socketPath: String) -> Bool {
        var status = stat()
        return stat(socketPath, &status) == 0 && status.st_uid == geteuid()
    }

    /// The size in bytes, the content from its beginning (a directory's as its tree), and the attributes of a file.
    typealias Content = (size: UInt64, bytes: AsyncStreamOfBytes, attributes: FileAttributes?)

    /// The content; reports to `read` the number of bytes read so far.
    func content(read progress: @escaping @Sendable (UInt64) -> Void) throws(CommandFailure) -> Content {
        switch self.kind {
        case .file: try self.fileContent(read: progress)
        case .directory: try self.treeContent(read: progress)
        }
    }

    private func treeContent(read progress: @escaping @Sendable (UInt64) -> Void) throws(CommandFailure) -> Content {
        let tree = try SourceTree(self.path, excluding: self.exclusions)
        let position = Position()
        return (
            tree.size,
            AsyncStreamOfBytes {
                let offset = position.offset.withLock { $0 }
                guard let bytes = try tree.next(at: offset, count: Self.pieceSize) else { return nil }
                position.offset.withLock { $0 += UInt64(bytes.count) }
                progress(offset + UInt64(bytes.count))
                return ByteBuffer(bytes: bytes)
            }, nil
        )
    }

    private func fileContent(read progress: @escaping @Sendable (UInt64) -> Void) throws(CommandFailure) -> Content {
        if let content = self.madeUp {
            let position = Position()
            return (
                UInt64(content.count),
                AsyncStreamOfBytes {
                    let offset = Int(clamping: position.offset.withLock { $0 })
                    guard offset < content.count else { return nil }
                    let piece = content[offset...].prefix(Self.pieceSize)
                    position.offset.withLock { $0 += UInt64(piece.count) }
                    progress(UInt64(offset + piece.count))
                    return ByteBuffer(bytes: piece)
                }, nil
            )
        }
        let file = try self.openFile()
        let (opened, attributes): (FileStatus, FileAttributes)
        do throws(FileError) {
            (opened, attributes) = (try file.status(), try file.attributes())
        } catch {
            throw CommandFailure(.noInput, error.description)
        }
        let size = opened.size
        let position = Position()
        return (
            size,
            AsyncStreamOfBytes {
                let offset = position.offset.withLock { $0 }
                guard offset < size else { return nil }
                let wanted = Int(min(size - offset, UInt64(Self.pieceSize)))
                var buffer = ByteBufferAllocator().buffer(capacity: wanted)
                do {
                    try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { space throws(FileError) in
                        try file.read(into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(wanted)), at: offset)
                    }
                } catch let error as FileError {
                    throw ControlError.source(error.description)
                }
                guard buffer.readableBytes == wanted else {
                    throw ControlError.source("\(file.subject) became shorter while it was being sent")
                }
                // The last bytes are withheld if the file has changed, so that the daemon does not take the content for complete.
                if offset + UInt64(wanted) == size { try Self.check(file, isStill: opened) }
                position.offset.withLock { $0 += UInt64(wanted) }
                progress(offset + UInt64(wanted))
                return buffer
            }, attributes
        )
    }

    /// Whether the daemon can read the source by an open descriptor.
    var isPassable: Bool { self.kind == .file && self.madeUp == nil }

    /// Opens the file.
    func openFile() throws(CommandFailure) -> OpenFile {
        let descriptor = open(self.path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { throw CommandFailure(.noInput, FileError("open", self.path).description) }
        return OpenFile(descriptor: descriptor, subject: self.path)
    }

    /// Throws if the file has changed: the bytes that were read may mix old and new content.
    private static func check(_ file: OpenFile, isStill opened: FileStatus) throws(ControlError) {
        let now: FileStatus
        do throws(FileError) {
            now = try file.status()
        } catch {
            throw .source(error.description)
        }
        guard now.size == opened.size, now.modified == opened.modified else {
            throw .source("\(file.subject) changed while it was sent; send it again")
        }
    }

    /// The number of bytes read so far.
    private final class Position: Sendable {
        let offset = Mutex<UInt64>(0)
    }
}
