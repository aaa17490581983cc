package import EarshotSafety
internal import Glibc

/// A regular file that is being sent. It stays open, is read at offsets, and detects changes of the file.
package final class SourceFile: ResourceSource {
    /// The last component of the path, which is valid as a file name elsewhere.
    package let name: String
    /// The size in bytes when the file was opened.
    package let size: UInt64
    package let stamp: String
    package let attributes: FileAttributes?
    /// The identity of the file on its file system.
    let identity: FileStatus.Identity

    private let file: OpenFile
    private let modified: [Int]

    /// Opens a file for sending.
    ///
    /// - Throws: `invalid-source` if it is not a readable regular file, and `name-rejected` if its name is not valid as a file name
    ///   elsewhere.
    package convenience init(path: String) throws(EarshotError) {
        let name = try Self.name(path)
        try self.init(try Self.open(path), name: name)
    }

    /// Takes an open file for sending.
    ///
    /// - Throws: `invalid-source` if it is not a regular file, or is not open for reading.
    init(_ file: OpenFile, name: String) throws(EarshotError) {
        self.name = name
        self.file = file
        do {
            let status = try self.file.status()
            try Self.check(status, file.subject)
            guard try self.file.hasReportedSize(status) else {
                throw EarshotError(
                    .invalidSource,
                    "\(file.subject.escapedForDisplay) has another size than it reports, as files in /proc have; send its content as a body"
                )
            }
            self.size = status.size
            self.attributes = try self.file.attributes()
            self.modified = status.modified
            self.identity = status.identity
            let time = status.modified.map(String.init).joined(separator: ".")
            self.stamp = "file \(status.size) \(time) \(status.device):\(status.inode)"
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.invalidSource, "\(error)", underlying: error)
        }
    }

    /// Returns the last component of a path as a name for use elsewhere.
    static func name(_ path: String) throws(EarshotError) -> String {
        // Searches bytes: "/" with a combining mark is another Character, but still the kernel's separator.
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
        // Checked before opening, because opening some devices has side effects. The check after opening is the decisive one.
        if let status = FileStatus(path: path) { try Self.check(status, path) }
        let descriptor = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            let error = FileError("open", path)
            throw EarshotError(.invalidSource, "\(error)", underlying: error)
        }
        return OpenFile(descriptor: descriptor, subject: path)
    }

    private static func check(_ status: FileStatus, _ path: String) throws(EarshotError) {
        guard status.kind != .regular else { return }
        throw EarshotError(.invalidSource, "\(path.escapedForDisplay) is \(status.kind), not an ordinary file")
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int {
        guard offset < self.size else { return 0 }
        let wanted = min(buffer.count, Int(clamping: self.size - offset))
        let count: Int
        do {
            count = try self.file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
        } catch {
            throw EarshotError(.storage, "\(error)", underlying: error)
        }
        guard count == wanted else { throw self.changed() }
        return count
    }

    package func extent(at offset: UInt64, count: UInt64) -> FileExtent? {
        guard offset < self.size else { return nil }
        return FileExtent(file: self.file, offset: offset, count: min(count, self.size - offset))
    }

    package func verify() throws(EarshotError) {
        do {
            let status = try self.file.status()
            guard status.size == self.size, status.modified == self.modified else { throw self.changed() }
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.storage, "\(error)", underlying: error)
        }
    }

    private func changed() -> EarshotError {
        EarshotError(.sourceChanged, "\(self.name.escapedForDisplay) changed while it was sent; send it again")
    }
}
