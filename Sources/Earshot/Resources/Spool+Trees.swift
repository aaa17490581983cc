internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Glibc
internal import NIOCore

/// Complete received directories in the spool.
extension Spool {
    /// Opens a completed resource's tree, which can be read as long as its files exist.
    /// - Throws: `not-found`.
    func openTree(_ id: ResourceID) throws(EarshotError) -> SpooledTree {
        let name = try Self.name(id)
        guard (try? self.complete.has(name)) == true else { throw Self.unknown(id) }
        let readers = self.readers(of: id)
        return try SpooledTree(name, in: self.complete, readers: readers)
    }

    /// Returns the object that all current readers of a tree share.
    private func readers(of id: ResourceID) -> TreeReaders.Hold {
        if let hold = self.treeReaders[id]?.hold { return hold }
        let hold = TreeReaders.Hold { [weak self] in
            Task { await self?.readersLeft(id) }
        }
        self.treeReaders[id] = TreeReaders(hold: hold)
        return hold
    }

    /// Returns whether a tree has to stay because it is being read. If so, it is removed after its last reader, or by the sweep of the
    /// next start.
    func outlivesRemoval(_ id: ResourceID) -> Bool {
        guard self.treeReaders[id]?.hold != nil else { return false }
        self.treeReaders[id]?.isUnwanted = true
        return true
    }

    private func readersLeft(_ id: ResourceID) {
        // New readers may have come meanwhile and share a new object.
        guard let readers = self.treeReaders[id], readers.hold == nil else { return }
        self.treeReaders[id] = nil
        // A tree that cannot be removed now is swept at the next start.
        if readers.isUnwanted { try? self.remove(id) }
    }

    /// Returns at most `count` of a tree's bytes at the offset; none at the end.
    func read(_ tree: SpooledTree, at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        try tree.read(at: offset, count: min(count, Self.readLimit))
    }

    /// Returns the next bytes of a tree's archive; none at the end.
    func next(_ archive: TreeArchive, count: Int) throws(EarshotError) -> ByteBuffer {
        try archive.next(min(count, Self.readLimit))
    }

    /// Returns the path to which an earlier run moved or copied a tree, if it was killed before it could record that.
    ///
    /// A directory that is still in the tree's place in the spool is the replaced one, or the original of the copy. Permissions that the
    /// tree still lacks are applied.
    func placeOfTree(_ id: ResourceID) -> String? {
        guard let name = try? Self.name(id), let outer = try? self.complete.subdirectory(name),
            let target = try? SpooledTree.read(SpooledTree.Part.target, of: outer)
        else { return nil }
        let path = String(decoding: target, as: UTF8.self)
        guard Self.isPlaced(at: path, from: outer) else { return nil }
        if let bytes = try? SpooledTree.read(SpooledTree.Part.manifest, of: outer), let manifest = try? TreeManifest(decoding: bytes),
            Self.isTree(path, of: outer), let placed = try? SafeDirectory(path: path)
        {
            let around = FileStatus(path: "\(path)/..")
            let sharing = around.flatMap(TreePermissions.Sharing.init(of:))
            try? TreePermissions.apply(manifest, to: placed, sharing: sharing)
            try? TreePermissions.applyToRoot(manifest, placed, sharing: sharing)
        }
        return path
    }

    /// Whether the tree was moved to the path, was exchanged with the directory there, or has its copy there. For the last two, both
    /// inodes have to confirm it: a file system may renumber its entries, and then nothing is discarded.
    private static func isPlaced(at path: String, from outer: SafeDirectory) -> Bool {
        guard let tree = try? SafeName(SpooledTree.Part.tree) else { return false }
        guard let inode = try? outer.status(of: tree)?.inode else { return (try? outer.has(tree)) == false }
        return Self.inode(of: outer).map { $0 != inode } == true && Self.isTree(path, of: outer)
    }

    /// Whether the directory at the path is the tree that was in the spool.
    private static func isTree(_ path: String, of outer: SafeDirectory) -> Bool {
        guard let inode = Self.inode(of: outer), let there = FileStatus(path: path) else { return false }
        return there.kind == .directory && there.inode == inode
    }

    private static func inode(of outer: SafeDirectory) -> UInt64? {
        (try? SpooledTree.read(SpooledTree.Part.inode, of: outer)).flatMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    }
}
