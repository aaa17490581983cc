/// An estimate of the disk space of stored content: data in whole blocks, and for each entry an inode and a name in its directory.
///
/// With it, a receiver computes from a list of entries how much space a directory will take, before it creates the first entry. The
/// estimate is an upper bound: no file system takes more for a tree, and most take a little less.
package struct DiskBlocks: Sendable, Hashable {
    /// The allocation unit of the file system, in bytes; at least 4,096.
    package let size: UInt64

    /// The size of an inode, in bytes: 256 in ext4, 512 in XFS, about 700 with its items in btrfs, and 1,000 bytes of memory in tmpfs.
    static let inode: UInt64 = 1024
    /// The space in a directory for an entry beside its name, in bytes: 8 to 12 in ext4, 11 to 16 in XFS.
    static let nameOverhead: UInt64 = 16
    /// The factor by which a directory may be larger than its names: a full block of a directory is split into two halves.
    static let nameFactor: UInt64 = 2
    /// The space of an extent, in bytes: 12 in ext4 and 16 in XFS, in blocks that may be half full.
    static let extent: UInt64 = 32
    /// The longest link target that is stored in the inode, in bytes (ext4).
    static let inlineTarget = 59
    /// The space of every tree beside its list and its entries, in blocks: the directory around it, four small files of the spool, and its
    /// row in the store.
    static let treeBase: UInt64 = 6
    /// The number of entries of every tree beside its own.
    package static let treeEntries: UInt64 = 5

    /// Creates an estimate with blocks of that size, in bytes.
    package init(size: UInt64) {
        // A file system that reports a smaller unit allocates more at a time.
        self.size = max(size, TreeLimits.block)
    }

    /// Returns a number of bytes rounded up to whole blocks.
    package func rounded(_ bytes: UInt64) -> UInt64 {
        let (blocks, rest) = bytes.quotientAndRemainder(dividingBy: self.size)
        let (result, overflow) = (rest == 0 ? blocks : blocks + 1).multipliedReportingOverflow(by: self.size)
        return overflow ? .max : result
    }

    /// Returns the space of a file in the spool without holes: its bytes, and a block for its inode, its name and its row in the store.
    package func file(_ bytes: UInt64) -> UInt64 { self.rounded(bytes).addingClamped(self.size) }

    /// Returns the space of a tree whose length, or received part, is known. This is an upper bound of the final space.
    package func tree(_ bytes: UInt64) -> UInt64 { self.rounded(bytes).addingClamped(Self.treeBase * self.size) }

    /// Returns the space of an entry without its data.
    func entry(_ entry: TreeEntry) -> UInt64 {
        let own = Self.inode + Self.nameFactor * (UInt64(entry.name.count) + Self.nameOverhead)
        switch entry.content {
        case .directory: return own.addingClamped(self.size)
        case .file: return own
        case .sparse(_, let extents): return own.addingClamped(UInt64(extents.count) * Self.extent)
        case .link(let target): return target.count <= Self.inlineTarget ? own : own.addingClamped(self.rounded(UInt64(target.count)))
        }
    }

    /// Returns the space of an entry with its data. The runs of a file with holes count in whole blocks, and a block shared by two runs
    /// counts once.
    func whole(_ entry: TreeEntry) -> UInt64 {
        let data: UInt64
        switch entry.content {
        case .directory, .link: data = 0
        case .file(let bytes): data = self.rounded(bytes)
        case .sparse(_, let extents):
            var runs = BlockRuns(of: self)
            for extent in extents { runs.add(at: extent.offset, count: extent.length) }
            data = runs.bytes
        }
        return self.entry(entry).addingClamped(data)
    }
}

/// The blocks of one file that its runs touch, each counted once. The runs must come in ascending order.
struct BlockRuns: Sendable, Hashable {
    private let size: UInt64
    private var count: UInt64 = 0
    /// The first block after the counted ones.
    private var next: UInt64 = 0

    init(of blocks: DiskBlocks) {
        self.size = blocks.size
    }

    /// The space of the blocks, in bytes.
    var bytes: UInt64 {
        let (bytes, overflow) = self.count.multipliedReportingOverflow(by: self.size)
        return overflow ? .max : bytes
    }

    mutating func add(at offset: UInt64, count: UInt64) {
        guard count > 0 else { return }
        let first = max(offset / self.size, self.next)
        let last = offset.addingClamped(count - 1) / self.size
        guard first <= last else { return }
        self.count += last - first + 1
        self.next = last + 1
    }
}

extension UInt64 {
    /// Returns the sum, clamped to the largest number.
    package func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
