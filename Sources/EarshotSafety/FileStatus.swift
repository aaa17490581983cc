internal import CLinux
import Glibc

/// The kernel's status of a file (fstat(2)), as a value of our own: `struct stat` has no module that every target can import.
package struct FileStatus: Sendable, Hashable {
    /// The kind of a file.
    package enum Kind: Sendable, Hashable, CustomStringConvertible {
        case regular, directory, link, namedPipe, socket, device, other

        /// The kind as users read it.
        package var description: String {
            switch self {
            case .regular: "an ordinary file"
            case .directory: "a directory"
            case .link: "a symbolic link"
            case .namedPipe: "a named pipe"
            case .socket: "a socket"
            case .device: "a device"
            case .other: "something else"
            }
        }
    }

    package let kind: Kind
    /// Whether it is /dev/null (null(4)), in whatever directory.
    package let isNull: Bool
    /// The size in bytes.
    package let size: UInt64
    /// The allocated bytes.
    package let allocated: UInt64
    /// The permission bits.
    package let mode: UInt32
    package let owner: UInt32
    package let group: UInt32
    /// The device number of its file system.
    package let device: UInt64
    /// The inode number within the file system.
    package let inode: UInt64
    /// The number of its names.
    package let links: UInt64
    /// The seconds and nanoseconds of the last change of the content.
    package let modified: [Int]
    /// The seconds of the last change of the content or the status, which no program can choose.
    package let changed: Int

    private init(_ status: stat) {
        self.kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .link
            case S_IFIFO: .namedPipe
            case S_IFSOCK: .socket
            case S_IFCHR, S_IFBLK: .device
            default: .other
            }
        // The numbers of null(4): major 1, minor 3.
        self.isNull = status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 1 << 8 | 3
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

    /// Reads the status of an open file; `nil` with `errno` set if the kernel refuses.
    package init?(descriptor: CInt) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the status of the entry of that name in a directory, without following a link; `nil` with `errno` set if the kernel refuses.
    package init?(of name: UnsafePointer<CChar>, in directory: CInt) {
        var status = stat()
        guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the status of the file at a path, following links; `nil` with `errno` set if there is none.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The identity of a file, independent of its names.
    package struct Identity: Sendable, Hashable {
        let device: UInt64
        let inode: UInt64

        /// Creates an identity with the numbers of stat(2).
        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// Whether fewer bytes are allocated than the size, so that some may be holes. The file system may also compress, or allocate later.
    package var mayHaveHoles: Bool { self.allocated < self.size }

    /// The identity of the file.
    package var identity: Identity { Identity(device: self.device, inode: self.inode) }
}
