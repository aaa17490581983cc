internal import CLinux
internal import Glibc

/// What a file keeps on its way to another machine, beside its name and its bytes.
package struct FileAttributes: Sendable, Hashable {
    /// Whether the file's owner may execute it.
    package let isExecutable: Bool
    /// Whether the file has holes: runs of zeros that take no room on its disk.
    package let hasHoles: Bool
    /// When the content was last changed, in whole seconds since 1970-01-01T00:00:00Z.
    package let seconds: Int64
    /// The rest of that time: 0 to 999,999,999.
    package let nanoseconds: UInt32

    /// The largest rest of a time, in nanoseconds.
    package static let nanosecondsLimit: UInt32 = 999_999_999

    /// Attributes from their parts.
    package init(isExecutable: Bool = false, hasHoles: Bool = false, seconds: Int64, nanoseconds: UInt32) {
        self.isExecutable = isExecutable
        self.hasHoles = hasHoles
        self.seconds = seconds
        self.nanoseconds = min(nanoseconds, Self.nanosecondsLimit)
    }
}

extension OpenFile {
    /// The attributes of an ordinary file.
    package func attributes() throws(FileError) -> FileAttributes {
        let status = try self.status()
        let (seconds, nanoseconds) = (status.modified.first ?? 0, status.modified.last ?? 0)
        // Fewer bytes may be set aside also where the file system compresses, or has not set them aside yet.
        let mayHaveHoles = status.allocated < status.size
        let hole = mayHaveHoles ? earshot_seek_hole(self.descriptor, 0) : -1
        return FileAttributes(
            isExecutable: status.mode & 0o100 != 0, hasHoles: hole >= 0 && UInt64(hole) < status.size, seconds: Int64(seconds),
            nanoseconds: UInt32(clamping: nanoseconds))
    }

    /// Sets the time, and lets everybody execute the file who may read it if its owner could where it came from. A file system that keeps
    /// neither is no error. Holes are the affair of the writer.
    package func apply(_ attributes: FileAttributes) {
        if attributes.isExecutable, let mode = FileStatus(descriptor: self.descriptor)?.mode {
            _ = fchmod(self.descriptor, mode_t(mode & 0o777 | (mode & 0o444) >> 2))
        }
        let time = timespec(tv_sec: time_t(clamping: attributes.seconds), tv_nsec: Int(attributes.nanoseconds))
        // The time of access is that of the last change, for want of another.
        let times = [time, time]
        _ = futimens(self.descriptor, times)
    }

    /// The unit of holes, in bytes: the block of most file systems.
    private static let holeUnit: UInt64 = 4096

    /// Writes bytes that lie at or behind the end of the file. If `leavingHoles` is set, blocks of zeros are left out and become holes.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, leavingHoles: Bool) throws(FileError) {
        guard leavingHoles else { return try self.write(bytes, at: offset) }
        let (end, overflow) = offset.addingReportingOverflow(UInt64(bytes.count))
        guard !overflow, let length = off_t(exactly: end) else { throw FileError("write to", self.subject, code: EFBIG) }
        // The data that has been passed and is not written yet begins at `start`.
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
        // A hole at the end is part of the length too.
        guard start == bytes.count, try self.status().size < end else { return }
        guard ftruncate(self.descriptor, length) == 0 else { throw FileError("set the size of", self.subject) }
    }

    /// The same of an array.
    package func write(_ bytes: [UInt8], at offset: UInt64, leavingHoles: Bool) throws(FileError) {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(FileError) in try self.write(buffer, at: offset, leavingHoles: leavingHoles) }
        }
        try result.get()
    }

    private static func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let start = bytes.baseAddress, bytes.first == 0 else { return bytes.isEmpty }
        // Each byte equals the one before it.
        return memcmp(start, start + 1, bytes.count - 1) == 0
    }
}
