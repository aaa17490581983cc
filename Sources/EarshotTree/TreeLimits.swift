/// The limits of the tree format (`Trees` in the protocol's specification), which every implementation must share.
package enum TreeLimits {
    /// The first bytes of a tree.
    package static let magic: [UInt8] = Array("EARTREE1".utf8)
    /// The length of the header: magic (8), number of entries (u32), bytes of the entries (u32), bytes of data (u64).
    package static let headerLength = 24
    /// The most entries, including the root. Some hundred thousand small files are common, and each costs an inode at the receiver.
    package static let entries = 1 << 19
    /// The longest header with entries, in bytes: both sides hold it in memory.
    package static let manifestBytes = 32 * 1024 * 1024
    /// The most levels of directories. The root's own entries are at level 1.
    package static let depth = 512
    /// The longest path below the root, in bytes. With its NUL it fits a system call (PATH_MAX), relative to any directory.
    package static let pathBytes = 4095
    /// The longest name of an entry, in bytes (NAME_MAX).
    package static let nameBytes = 255
    /// The longest target of a symbolic link, in bytes (PATH_MAX without its NUL).
    package static let linkBytes = 4095
    /// The largest size of a file, and of a whole tree, in bytes: offsets stay representable as file offsets.
    package static let size = UInt64(Int64.max)
    /// The transferred permission bits: no set-user-id, set-group-id or sticky bit.
    package static let modeBits: UInt16 = 0o777
    /// The smallest allocation unit of a file system, in bytes, for the estimate of a tree's space.
    package static let block: UInt64 = 4096
}
