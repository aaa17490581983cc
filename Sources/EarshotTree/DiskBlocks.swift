/// What a file system takes for what is put on it: data in whole blocks, and for each entry an inode and a name in its directory.
///
/// By it a receiver reckons from a list of entries what a directory will take, before the first of them is made. It errs upwards: no file
/// system takes more for a tree than this, and most take a little less.
package struct DiskBlocks: Sendable, Hashable {
    /// What the file system sets aside at a time, in bytes; at least 4,096.
    package let size: UInt64

    /// An inode, in bytes: ext4 has 256, XFS 512, btrfs about 700 with its items, and tmpfs takes 1,000 of the memory.
    static let inode: UInt64 = 1024
    /// What a directory takes for an entry beside its name, in bytes: ext4 8 to 12, XFS 11 to 16.
    static let nameOverhead: UInt64 = 16
    /// How much larger a directory may be than its names: a full block of a directory is split in two halves.
    static let nameFactor: UInt64 = 2
    /// What a file takes for each of its extents, in bytes: 12 in ext4 and 16 in XFS, in blocks that may be half full.
    static let extent: UInt64 = 32
    /// The longest target of a link that lies in its inode, in bytes (ext4).
    static let inlineTarget = 59
    /// What every tree takes beside its list and its entries, in blocks: the directory around it, four small files of the spool's, and its
    /// row in the store.
    static let treeBase: UInt64 = 6
    /// The same in entries.
    package static let treeEntries: UInt64 = 5

    /// Blocks of that size, in bytes.
    package init(size: UInt64) {
        // Smaller ones are told by file systems that set aside more at a time.
        self.size = max(size, TreeLimits.block)
    }

    /// A row of bytes in whole blocks.
    package func rounded(_ bytes: UInt64) -> UInt64 {
        let (blocks, rest) = bytes.quotientAndRemainder(dividingBy: self.size)
        let (result, overflow) = (rest == 0 ? blocks : blocks + 1).multipliedReportingOverflow(by: self.size)
        return overflow ? .max : result
    }

    /// A file of the spool's without holes: its bytes, and a block for its inode, its name and its row in the store.
    package func file(_ bytes: UInt64) -> UInt64 { self.rounded(bytes).addingClamped(self.size) }

    /// A tree of which no more is known than how long it is, or of which so much has come: at most what it takes in the end.
    package func tree(_ bytes: UInt64) -> UInt64 { self.rounded(bytes).addingClamped(Self.treeBase * self.size) }

    /// An entry without its data.
    func entry(_ entry: TreeEntry) -> UInt64 {
        let own = Self.inode + Self.nameFactor * (UInt64(entry.name.count) + Self.nameOverhead)
        switch entry.content {
        case .directory: return own.addingClamped(self.size)
        case .file: return own
        case .sparse(_, let extents): return own.addingClamped(UInt64(extents.count) * Self.extent)
        case .link(let target): return target.count <= Self.inlineTarget ? own : own.addingClamped(self.rounded(UInt64(target.count)))
        }
    }

    /// An entry with its data: of a file with holes each run in whole blocks, those that two runs share once.
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

/// The blocks of one file that runs of bytes touch, each block counted once; the runs come in ascending order.
struct BlockRuns: Sendable, Hashable {
    private let size: UInt64
    private var count: UInt64 = 0
    /// The first block behind those that are counted.
    private var next: UInt64 = 0

    init(of blocks: DiskBlocks) {
        self.size = blocks.size
    }

    /// In whole blocks.
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
    /// The sum, or the largest number where it is larger.
    package func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
