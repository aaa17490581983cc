/// The limits of the tree format (`Trees` in the protocol's specification): a second implementation needs the same ones.
package enum TreeLimits {
    /// What a tree begins with.
    package static let magic: [UInt8] = Array("EARTREE1".utf8)
    /// Magic (8), number of entries (u32), bytes of the entries (u32), bytes of data (u64).
    package static let headerLength = 24
    /// Entries with the root itself: some hundred thousand small files are common, and each costs an inode at the receiver.
    package static let entries = 1 << 19
    /// Header and entries together, in bytes: held in memory on both sides.
    package static let manifestBytes = 32 * 1024 * 1024
    /// Directories between the root and an entry, the root's own entries having 1.
    package static let depth = 512
    /// The longest path below the root, in bytes: with its NUL it fits a system call (PATH_MAX), whatever directory it is relative to.
    package static let pathBytes = 4095
    /// The longest name of an entry, in bytes (NAME_MAX).
    package static let nameBytes = 255
    /// The longest target of a symbolic link, in bytes (PATH_MAX without its NUL).
    package static let linkBytes = 4095
    /// The largest size of a file, and of a whole tree, in bytes: offsets stay representable as a file offset.
    package static let size = UInt64(Int64.max)
    /// The permission bits that travel: no set-user-id, set-group-id or sticky bit.
    package static let modeBits: UInt16 = 0o777
    /// What a file system sets aside at a time, in bytes, at the least: by it the space that a tree will take is reckoned.
    package static let block: UInt64 = 4096
}
