internal import Glibc

/// What the kernel knows of an entry that is not followed where it is a link.
struct EntryStatus: Equatable {
    enum Kind: Equatable {
        case file, directory, link
        /// Named for people.
        case other(String)
    }

    let kind: Kind
    /// Bytes.
    let size: UInt64
    /// Fewer bytes are set aside than it has: some of them may be holes.
    let mayHaveHoles: Bool
    let mode: UInt16
    let modified: TreeEntry.Time
    let inode: UInt64
    let device: UInt64

    private init(_ status: stat) {
        self.kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .link
            case S_IFIFO: .other("a named pipe")
            case S_IFSOCK: .other("a socket")
            case S_IFCHR, S_IFBLK: .other("a device")
            default: .other("no file")
            }
        self.size = UInt64(clamping: status.st_size)
        self.mayHaveHoles = UInt64(clamping: status.st_blocks) < (UInt64(clamping: status.st_size) + 511) / 512
        self.mode = UInt16(status.st_mode & 0o7777) & TreeLimits.modeBits
        self.modified = TreeEntry.Time(
            seconds: Int64(status.st_mtim.tv_sec), nanoseconds: UInt32(clamping: min(max(status.st_mtim.tv_nsec, 0), 999_999_999)))
        self.inode = UInt64(status.st_ino)
        self.device = UInt64(status.st_dev)
    }

    /// Of an open file; `nil` with `errno` set where the kernel refuses.
    init?(descriptor: CInt) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Of an entry of an open directory; `nil` with `errno` set where the kernel refuses.
    init?(of name: [UInt8], in directory: CInt) {
        var status = stat()
        guard name.withCString({ fstatat(directory, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else { return nil }
        self.init(status)
    }
}
