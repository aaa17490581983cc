internal import CLinux
internal import Glibc

/// The attributes of a file that are transferred with its name and content.
package struct FileAttributes: Sendable, Hashable {
    /// Whether the file's owner may execute it.
    package let isExecutable: Bool
    /// Whether the file has holes: runs of zeros that take no space on disk.
    package let hasHoles: Bool
    /// The time of the last change of the content, in whole seconds since 1970-01-01T00:00:00Z.
    package let seconds: Int64
    /// The nanoseconds of that time: 0 to 999,999,999.
    package let nanoseconds: UInt32

    /// The largest value of `nanoseconds`.
    package static let nanosecondsLimit: UInt32 = 999_999_999

    /// Creates attributes from their parts.
    package init(isExecutable: Bool = false, hasHoles: Bool = false, seconds: Int64, nanoseconds: UInt32) {
        self.isExecutable = isExecutable
        self.hasHoles = hasHoles
        self.seconds = seconds
        self.nanoseconds = min(nanoseconds, Self.nanosecondsLimit)
    }
}

extension OpenFile {
    /// Returns the attributes of a regular file.
    package func attributes() throws(FileError) -> FileAttributes {
        let status = try self.status()
        let (seconds, nanoseconds) = (status.modified.first ?? 0, status.modified.last ?? 0)
        let hole = status.mayHaveHoles ? earshot_seek_hole(self.descriptor, 0) : -1
        return FileAttributes(
            isExecutable: status.mode & 0o100 != 0, hasHoles: hole >= 0 && UInt64(hole) < status.size, seconds: Int64(seconds),
            nanoseconds: UInt32(clamping: nanoseconds))
    }

    /// Sets the time. If the sender's owner could execute the file, everyone who may read it may also execute it. A file system that keeps
    /// neither is no error. The writer takes care of holes.
    package func apply(_ attributes: FileAttributes) {
        if attributes.isExecutable, let mode = FileStatus(descriptor: self.descriptor)?.mode {
            _ = fchmod(self.descriptor, mode_t(mode & 0o777 | (mode & 0o444) >> 2))
        }
        let time = timespec(tv_sec: time_t(clamping: attributes.seconds), tv_nsec: Int(attributes.nanoseconds))
        // The access time is set to the same time, because the sender's is not known.
        let times = [time, time]
        _ = futimens(self.descriptor, times)
    }

    /// The unit of holes, in bytes: the block of most file systems.
    private static let holeUnit: UInt64 = 4096

    /// Writes bytes at or after the end of the file. If `leavingHoles` is set, blocks of zeros are skipped and become holes.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, leavingHoles: Bool) throws(FileError) {
        guard leavingHoles else { return try self.write(bytes, at: offset) }
        let (end, overflow) = offset.addingReportingOverflow(UInt64(bytes.count))
        guard !overflow, let length = off_t(exactly: end) else { throw FileError("write to", self.subject, code: EFBIG) }
        // The data that was scanned and is not written yet begins at `start`.
        var (start, position) = (0, 0)
        while position < bytes.count {
            let unit = Int(Self.holeUnit - (offset + UInt64(position)) % Self.holeUnit)
            let next = min(position + unit, bytes.count)
            if Self.isZero(UnsafeRawBufferPointer(rebasing: bytes[position..<next])) {
                try self.write(UnsafeRawBufferPointer(rebasing: bytes[start..<position]), at: offset + UInt64(start))
                start = next
            }
            position = next
        }
        try self.write(UnsafeRawBufferPointer(rebasing: bytes[start...]), at: offset + UInt64(start))
        // A hole at the end counts towards the file's size.
        guard start == bytes.count, try self.status().size < end else { return }
        guard ftruncate(self.descriptor, length) == 0 else { throw FileError("set the size of", self.subject) }
    }

    /// Writes an array in the same way.
    package func write(_ bytes: [UInt8], at offset: UInt64, leavingHoles: Bool) throws(FileError) {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(FileError) in try self.write(buffer, at: offset, leavingHoles: leavingHoles) }
        }
        try result.get()
    }

    private static func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress, bytes.first == 0 else { return bytes.isEmpty }
        // Compares each byte with the one before it.
        return memcmp(start, start + 1, bytes.count - 1) == 0
    }
}
