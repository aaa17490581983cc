package import NIOCore

internal import EarshotSafety
internal import Glibc

/// An ordinary file that is being sent: held open, read at offsets, hashed as it is read, and known for changed if it changes meanwhile.
///
/// All of them share one thread of their own, because a read may wait for a disk or a server.
package actor SourceFile {
    /// The last component of the path, fit to be a file's name elsewhere.
    package nonisolated let name: String
    /// Bytes, when it was opened.
    package nonisolated let size: UInt64
    /// As it was given.
    package nonisolated let path: String

    private nonisolated let executor: ThreadExecutor
    private let file: OpenFile
    private let modified: [Int]
    private let hash: XXH3
    /// Bytes from the start that are in the hash.
    private var hashed: UInt64 = 0

    /// The thread of all source files; it lives as long as the process. `nil` when it could not be started.
    private static let executor: ThreadExecutor? = try? ThreadExecutor(name: "earshot-source")

    /// The thread of all source files.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Opens a file to send it.
    ///
    /// Throws `invalid-source` for what is no ordinary file that we may read, and `name-rejected` when its name could not be a file's name
    /// elsewhere.
    package init(path: String) throws(EarshotError) {
        guard let executor = Self.executor else {
            throw EarshotError(.unavailable, "cannot start a thread to read \(path.escapedForDisplay)")
        }
        self.executor = executor
        self.path = path
        self.name = try Self.name(path)
        self.file = try Self.open(path)
        do {
            let status = try self.file.status()
            try Self.check(status, path)
            self.size = status.size
            self.modified = status.modified
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.invalidSource, "\(error)", underlying: error)
        }
        self.hash = try XXH3()
    }

    private static func name(_ path: String) throws(EarshotError) -> String {
        // By bytes: "/" with a combining mark behind it is another Character, but the kernel's separator all the same.
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let last = String(path[start...])
        do {
            return try SafeName(last).description
        } catch {
            guard !last.isEmpty, last != ".", last != ".." else {
                throw EarshotError(.invalidSource, "\(path.escapedForDisplay) names no file; give the path of an ordinary file")
            }
            throw EarshotError(.nameRejected, "the name \"\(last.escapedForDisplay)\" \(error.reason); rename the file", underlying: error)
        }
    }

    private static func open(_ path: String) throws(EarshotError) -> OpenFile {
        guard !path.utf8.contains(0) else { throw EarshotError(.invalidSource, "a path has no NUL in it") }
        // Looked at before it is opened, because opening some devices does something; what counts is the look after.
        if let status = FileStatus(path: path) { try Self.check(status, path) }
        let descriptor = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            let error = FileError("open", path)
            throw EarshotError(.invalidSource, "\(error)", underlying: error)
        }
        return OpenFile(descriptor: descriptor, subject: path)
    }

    private static func check(_ status: FileStatus, _ path: String) throws(EarshotError) {
        let kind =
            switch status.kind {
            case .regular: String?.none
            case .directory: "a directory"
            case .namedPipe: "a named pipe"
            case .socket: "a socket"
            case .device: "a device"
            case .other: "something else"
            }
        guard let kind else { return }
        throw EarshotError(.invalidSource, "\(path.escapedForDisplay) is \(kind), not an ordinary file")
    }

    /// Reads up to `count` bytes at the offset; fewer, or none, only at the end of the size that it had when opened.
    ///
    /// Throws `source-changed` when the file has become shorter, `storage` when the disk fails.
    package func read(at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        guard offset < self.size else { return ByteBuffer() }
        let wanted = min(Int(clamping: self.size - offset), max(count, 0), Spool.readLimit)
        let buffer = try self.readExactly(wanted, at: offset)
        // Only what follows on what is hashed: a second reading of the same place must not count twice.
        if offset == self.hashed {
            self.hash.update(buffer)
            self.hashed += UInt64(buffer.readableBytes)
        }
        return buffer
    }

    private func readExactly(_ count: Int, at offset: UInt64) throws(EarshotError) -> ByteBuffer {
        let buffer: ByteBuffer
        do {
            buffer = try self.file.buffer(at: offset, count: count)
        } catch {
            throw EarshotError(.storage, "\(error)", underlying: error)
        }
        guard buffer.readableBytes == count else { throw self.changed() }
        return buffer
    }

    /// The XXH3-128 digest of the whole file, which must not have changed since it was opened; hashes what was not read yet.
    ///
    /// Throws `source-changed`.
    package func finish() throws(EarshotError) -> [UInt8] {
        while self.hashed < self.size { _ = try self.read(at: self.hashed, count: Spool.readLimit) }
        do {
            let status = try self.file.status()
            guard status.size == self.size, status.modified == self.modified else { throw self.changed() }
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.storage, "\(error)", underlying: error)
        }
        return self.hash.digest()
    }

    private func changed() -> EarshotError {
        EarshotError(.sourceChanged, "\(self.name.escapedForDisplay) changed while it was sent; send it again")
    }
}
