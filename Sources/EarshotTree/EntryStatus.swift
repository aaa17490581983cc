internal import CLinux
internal import Glibc

/// The kernel's status of an entry, without following links.
struct EntryStatus: Equatable {
    enum Kind: Equatable {
        case file, directory, link
        /// Any other kind, with its name for users.
        case other(String)
    }

    let kind: Kind
    /// The size in bytes.
    let size: UInt64
    /// Whether fewer bytes are allocated than the size, so that some may be holes.
    let mayHaveHoles: Bool
    let mode: UInt16
    let modified: TreeEntry.Time
    let inode: UInt64
    let device: UInt64

    /// Creates a status. `listed` returns the owning group's permissions in the entry's access control list, or -1. With such a list, the
    /// group bits of the mode are the maximum of all listed users and groups. Without the list at the receiver, that maximum would become
    /// the group's own permissions.
    private init(_ status: stat, listed: () -> CInt) {
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
        let mode = UInt16(status.st_mode & 0o7777) & TreeLimits.modeBits
        let mayBeListed = mode & 0o070 != 0 && (self.kind == .file || self.kind == .directory)
        let group = mayBeListed ? listed() : -1
        self.mode = group < 0 ? mode : mode & ~0o070 | UInt16(group & 7) << 3
        self.modified = TreeEntry.Time(
            seconds: Int64(status.st_mtim.tv_sec), nanoseconds: UInt32(clamping: min(max(status.st_mtim.tv_nsec, 0), 999_999_999)))
        self.inode = UInt64(status.st_ino)
        self.device = UInt64(status.st_dev)
    }

    /// Reads the status of an open file; `nil` with `errno` set if the kernel refuses.
    init?(descriptor: CInt) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status) { earshot_listed_group_rights(descriptor) }
    }

    /// Reads the status of an entry of an open directory; `nil` with `errno` set if the kernel refuses.
    init?(of name: [UInt8], in directory: CInt) {
        var status = stat()
        guard name.withCString({ fstatat(directory, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else { return nil }
        self.init(status) { name.withCString { earshot_listed_group_rights_at(directory, $0) } }
    }
}
