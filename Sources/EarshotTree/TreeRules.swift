/// The rules for the entries of a manifest, checked entry by entry by the sender that builds it and the receiver that reads it.
///
/// An entry's directory precedes it, so nothing can be below a file or a link. The entries of one directory are adjacent and ordered by the
/// bytes of their names, so no name occurs twice. A name is a single component, so none can lead upwards.
struct TreeRules: Sendable {
    /// A violated rule.
    enum Fault: Error {
        case malformed(String)
        case rejected(String)
        case tooLarge(String)
    }

    private(set) var count = 0
    /// The bytes of data so far.
    private(set) var data: UInt64 = 0
    /// For each entry, the depth of a directory (1 for the root), or 0 for other entries.
    private var levels: [UInt16] = []
    /// For each entry, the length of its path below the root, in bytes.
    private var lengths: [UInt16] = []
    private var lastParent = 0
    private var lastName: [UInt8] = []

    mutating func add(_ entry: TreeEntry) throws(Fault) {
        guard self.count < TreeLimits.entries else { throw .tooLarge("it has more than \(TreeLimits.entries) entries") }
        guard entry.mode & ~TreeLimits.modeBits == 0 else { throw .malformed("an entry has a mode beyond the permissions") }
        guard entry.modified.nanoseconds < 1_000_000_000 else {
            throw .malformed("an entry has a time of more than a second's nanoseconds")
        }
        let length: Int
        if self.count == 0 {
            guard entry.isDirectory, entry.name.isEmpty, entry.parent == 0 else { throw .malformed("the first entry is not a root") }
            length = 0
        } else {
            length = try self.place(entry)
            try self.check(entry)
        }
        guard let bytes = entry.dataLength, bytes <= TreeLimits.size - self.data else {
            throw .tooLarge("its data is more than a file can hold")
        }
        self.data += bytes
        self.lastParent = entry.parent
        self.lastName = entry.name
        self.levels.append(entry.isDirectory ? (self.count == 0 ? 1 : self.levels[entry.parent] + 1) : 0)
        self.lengths.append(UInt16(length))
        self.count += 1
    }

    /// Checks the position of an entry. Returns the length of its path.
    private func place(_ entry: TreeEntry) throws(Fault) -> Int {
        guard entry.parent >= 0, entry.parent < self.count, self.levels[entry.parent] > 0 else {
            throw .malformed("an entry is in something that is no directory before it")
        }
        guard entry.parent >= self.lastParent else { throw .malformed("the entries are not in order") }
        // The order of memcmp(3): by bytes, with a prefix first.
        if self.count > 1, entry.parent == self.lastParent {
            guard self.lastName != entry.name else { throw .malformed("two entries have the same name") }
            guard self.lastName.lexicographicallyPrecedes(entry.name) else { throw .malformed("the entries are not in order") }
        }
        if let reason = Self.fault(inName: entry.name) { throw .rejected(reason) }
        let level = Int(self.levels[entry.parent])
        guard level <= TreeLimits.depth else { throw .tooLarge("it is more than \(TreeLimits.depth) directories deep") }
        let parentLength = Int(self.lengths[entry.parent])
        let length = parentLength + (parentLength > 0 ? 1 : 0) + entry.name.count
        guard length <= TreeLimits.pathBytes else { throw .tooLarge("it has a path longer than \(TreeLimits.pathBytes) bytes") }
        return length
    }

    private static func fault(inName name: [UInt8]) -> String? {
        if name.isEmpty { return "has an entry without a name" }
        if name.count > TreeLimits.nameBytes { return "has a name longer than \(TreeLimits.nameBytes) bytes" }
        if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { return "stands for a directory" }
        if name.contains(UInt8(ascii: "/")) { return "has a slash in one name" }
        return name.contains(0) ? "has a NUL in its name" : nil
    }

    private func check(_ entry: TreeEntry) throws(Fault) {
        switch entry.content {
        case .directory: break
        case .file(let size):
            guard size <= TreeLimits.size else { throw .tooLarge("an entry is larger than a file can be") }
        case .sparse(let size, let extents):
            guard size <= TreeLimits.size else { throw .tooLarge("an entry is larger than a file can be") }
            var end: UInt64 = 0
            for extent in extents {
                guard extent.length > 0, extent.offset >= end, extent.offset <= size, extent.length <= size - extent.offset else {
                    throw .malformed("the data of a sparse file is out of order or out of its size")
                }
                end = extent.offset + extent.length
            }
        case .link(let target):
            if let reason = LinkTarget.fault(target, depth: Int(self.levels[entry.parent]) - 1) { throw .rejected(reason) }
        }
    }
}
