internal import CLinux
import Glibc

/// What the kernel knows of a file (fstat(2)), as a value of our own: `struct stat` has no module that every target can name.
package struct FileStatus: Sendable, Hashable {
    /// What kind of file it is.
    package enum Kind: Sendable, Hashable {
        case regular, directory, namedPipe, socket, device, other
    }

    package let kind: Kind
    /// Bytes.
    package let size: UInt64
    /// Bytes that the file system has set aside for it.
    package let allocated: UInt64
    /// The permission bits.
    package let mode: UInt32
    package let owner: UInt32
    package let group: UInt32
    /// Which file system it lies on.
    package let device: UInt64
    /// Which file it is there.
    package let inode: UInt64
    /// How many names it has.
    package let links: UInt64
    /// Seconds and nanoseconds of the last change of the content.
    package let modified: [Int]
    /// Seconds of the last change of the content or of what the kernel knows of the file: no program can choose it.
    package let changed: Int

    private init(_ status: stat) {
        self.kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFIFO: .namedPipe
            case S_IFSOCK: .socket
            case S_IFCHR, S_IFBLK: .device
            default: .other
            }
        self.size = UInt64(clamping: status.st_size)
        self.allocated = UInt64(clamping: status.st_blocks).multipliedReportingOverflow(by: 512).partialValue
        self.mode = UInt32(status.st_mode & 0o7777)
        self.owner = status.st_uid
        self.group = status.st_gid
        self.device = UInt64(status.st_dev)
        self.inode = UInt64(status.st_ino)
        self.links = UInt64(status.st_nlink)
        self.modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
        self.changed = status.st_ctim.tv_sec
    }

    /// Of an open file; `nil` with `errno` set where the kernel refuses.
    package init?(descriptor: CInt) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Of the entry of that name in a directory, a link itself and not what it leads to; `nil` with `errno` set where the kernel refuses.
    init?(of name: SafeName, in directory: CInt) {
        var status = stat()
        guard fstatat(directory, name.description, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        self.init(status)
    }

    /// Of whatever the path leads to, links followed; `nil` with `errno` set where it leads nowhere.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// By what a file is known, under whatever names.
    package struct Identity: Sendable, Hashable {
        let device: UInt64
        let inode: UInt64

        /// An identity as stat(2) has it.
        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// Which file it is.
    package var identity: Identity { Identity(device: self.device, inode: self.inode) }
}
