internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Glibc
internal import NIOCore

/// Received directories that are whole, in the spool.
extension Spool {
    /// Opens a completed resource's tree; it can be read as long as its files are there. Throws `not-found`.
    func openTree(_ id: ResourceID) throws(EarshotError) -> SpooledTree {
        let name = try Self.name(id)
        guard (try? self.complete.has(name)) == true else { throw Self.unknown(id) }
        let readers = self.readers(of: id)
        return try SpooledTree(name, in: self.complete, readers: readers)
    }

    /// The object that all readers of a tree hold, the next one too.
    private func readers(of id: ResourceID) -> TreeReaders.Hold {
        if let hold = self.treeReaders[id]?.hold { return hold }
        let hold = TreeReaders.Hold { [weak self] in
            Task { await self?.readersLeft(id) }
        }
        self.treeReaders[id] = TreeReaders(hold: hold)
        return hold
    }

    /// Whether a tree stays for now because it is being read: it is removed when its last reader has left, or swept at the next start.
    func outlivesRemoval(_ id: ResourceID) -> Bool {
        guard self.treeReaders[id]?.hold != nil else { return false }
        self.treeReaders[id]?.isUnwanted = true
        return true
    }

    private func readersLeft(_ id: ResourceID) {
        // Others may have come meanwhile, and hold it in turn.
        guard let readers = self.treeReaders[id], readers.hold == nil else { return }
        self.treeReaders[id] = nil
        // The next start sweeps everything that cannot be removed now.
        if readers.isUnwanted { try? self.remove(id) }
    }

    /// At most `count` of a tree's bytes at the offset; none at the end.
    func read(_ tree: SpooledTree, at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        try tree.read(at: offset, count: min(count, Self.readLimit))
    }

    /// The next bytes of a tree's archive; none at the end.
    func next(_ archive: TreeArchive, count: Int) throws(EarshotError) -> ByteBuffer {
        try archive.next(min(count, Self.readLimit))
    }

    /// Where a tree was put, or a copy of it, by an earlier run that was killed before it could record that.
    ///
    /// What lies in its place here then, if anything, is what it has replaced, or what was copied. The tree gets what it may lack of its
    /// permissions.
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

    /// Whether the tree has gone to the path, or changed places with what was there, or has its copy there. For these both have to say so: a
    /// file system may number its entries anew, and then nothing is thrown away.
    private static func isPlaced(at path: String, from outer: SafeDirectory) -> Bool {
        guard let tree = try? SafeName(SpooledTree.Part.tree) else { return false }
        guard let inode = try? outer.status(of: tree)?.inode else { return (try? outer.has(tree)) == false }
        return Self.inode(of: outer).map { $0 != inode } == true && Self.isTree(path, of: outer)
    }

    /// Whether what stands at the path is the tree that was here.
    private static func isTree(_ path: String, of outer: SafeDirectory) -> Bool {
        guard let inode = Self.inode(of: outer), let there = FileStatus(path: path) else { return false }
        return there.kind == .directory && there.inode == inode
    }

    private static func inode(of outer: SafeDirectory) -> UInt64? {
        (try? SpooledTree.read(SpooledTree.Part.inode, of: outer)).flatMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    }
}
