internal import CLinux
import Glibc

/// An owned file descriptor, closed with the last reference. It reads and writes at offsets, so several threads may use it at once.
package final class OpenFile: Sendable {
    /// `open` flags, for callers that do not import the C library.
    package static let readWrite = O_RDWR
    /// A flag like `readWrite`.
    package static let create = O_CREAT

    /// The descriptor, valid while this object lives.
    package let descriptor: CInt
    /// The file's name in errors.
    package let subject: String

    /// Takes ownership of an open descriptor.
    package init(descriptor: CInt, subject: String) {
        self.descriptor = descriptor
        self.subject = subject
    }

    deinit {
        close(self.descriptor)
    }

    /// Returns the kernel's status of the open file.
    package func status() throws(FileError) -> FileStatus {
        guard let status = FileStatus(descriptor: self.descriptor) else { throw FileError("look at", self.subject) }
        return status
    }

    /// Writes all bytes at the offset, in bytes from the start.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(FileError) {
        var written = 0
        while written < bytes.count {
            guard let start = off_t(exactly: offset), !start.addingReportingOverflow(off_t(written)).overflow else {
                throw FileError("write to", self.subject, code: EFBIG)
            }
            let count = pwrite(self.descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written, start + off_t(written))
            if count < 0 {
                if errno == EINTR { continue }
                throw FileError("write to", self.subject)
            }
            written += count
        }
    }

    /// Writes all bytes at the offset.
    package func write(_ bytes: [UInt8], at offset: UInt64) throws(FileError) {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(FileError) in try self.write(buffer, at: offset) }
        }
        try result.get()
    }

    /// Reads up to `buffer.count` bytes at the offset and returns their number; fewer only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(FileError) -> Int {
        var total = 0
        while total < buffer.count {
            guard let start = off_t(exactly: offset), !start.addingReportingOverflow(off_t(total)).overflow else {
                throw FileError("read", self.subject, code: EINVAL)
            }
            let count = pread(self.descriptor, buffer.baseAddress?.advanced(by: total), buffer.count - total, start + off_t(total))
            if count < 0 {
                if errno == EINTR { continue }
                throw FileError("read", self.subject)
            }
            if count == 0 { break }
            total += count
        }
        return total
    }

    /// Reads up to `count` bytes at the offset; fewer only at the end of the file.
    package func bytes(at offset: UInt64, count: Int) throws(FileError) -> [UInt8] {
        // With no capacity this would be the empty array that all threads share, and its count would be written.
        guard count > 0 else { return [] }
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(FileError) {
                initialized = try self.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Whether the file has as many bytes as its status says. Files that the kernel generates while they are read (proc(5), sysfs(5))
    /// report 0 bytes and have more, or report a whole page and have fewer.
    package func hasReportedSize(_ status: FileStatus) throws(FileError) -> Bool {
        guard status.size == 0 || (status.allocated == 0 && status.size <= Self.doubtfulSize) else { return true }
        guard try self.bytes(at: status.size, count: 1).isEmpty else { return false }
        guard status.size > 0 else { return true }
        return try !self.bytes(at: status.size - 1, count: 1).isEmpty
    }

    /// The largest size that such files report without having it, in bytes: the largest page size of any machine.
    private static let doubtfulSize: UInt64 = 64 * 1024

    /// Returns the whole content, read to its end regardless of the reported size.
    /// - Returns: `nil` if that is more than `limit` bytes.
    package func wholeContent(limit: Int) throws(FileError) -> [UInt8]? {
        var content: [UInt8] = []
        while content.count <= limit {
            let piece = try self.bytes(at: UInt64(content.count), count: min(Self.contentPiece, limit + 1 - content.count))
            guard !piece.isEmpty else { return content }
            content += piece
        }
        return nil
    }

    private static let contentPiece = 64 * 1024

    /// Waits until the content is on disk. With `dataOnly`, metadata such as times may follow later.
    package func sync(dataOnly: Bool = false) throws(FileError) {
        guard (dataOnly ? fdatasync(self.descriptor) : fsync(self.descriptor)) == 0 else { throw FileError("save", self.subject) }
    }

    /// Changes the file's group, if the kernel permits that. Returns whether it did.
    @discardableResult
    package func setGroup(_ group: UInt32) -> Bool { fchown(self.descriptor, uid_t.max, group) == 0 }

    /// Reserves blocks for the file, without changing its size. Returns whether the file system did; if not, a later write may still fail.
    @discardableResult
    package func reserve(_ size: UInt64) throws(FileError) -> Bool {
        guard size > 0 else { return true }
        guard earshot_reserve(self.descriptor, size) == 0 else {
            let code = errno
            guard [EOPNOTSUPP, ENOSYS, EINVAL].contains(code) else { throw FileError("reserve space for", self.subject, code: code) }
            return false
        }
        // Some file systems check for room, report success and reserve nothing (ZFS).
        return try self.status().allocated >= size
    }

    /// Releases the blocks that are reserved beyond the written content.
    package func releaseReserve() throws(FileError) {
        var status = stat()
        // Truncating to the present size releases the blocks beyond it (ext4, XFS and btrfs).
        guard fstat(self.descriptor, &status) == 0, ftruncate(self.descriptor, status.st_size) == 0 else {
            throw FileError("give back space of", self.subject)
        }
    }

    /// Sets the permission bits.
    package func setMode(_ mode: UInt32) throws(FileError) {
        guard fchmod(self.descriptor, mode) == 0 else { throw FileError("set the permissions of", self.subject) }
    }
}
