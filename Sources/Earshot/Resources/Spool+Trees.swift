internal import EarshotSafety
internal import EarshotWire
internal import Glibc
internal import NIOCore

/// Received directories that are whole, in the spool.
extension Spool {
    /// Opens a completed resource's tree; it can be read as long as its files are there. Throws `not-found`.
    func openTree(_ id: ResourceID) throws(EarshotError) -> SpooledTree {
        let name = try Self.name(id)
        guard (try? self.complete.has(name)) == true else { throw Self.unknown(id) }
        return try SpooledTree(name, in: self.complete)
    }

    /// At most `count` of a tree's bytes at the offset; none at the end.
    func read(_ tree: SpooledTree, at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        try tree.read(at: offset, count: min(count, Self.readLimit))
    }

    /// The next bytes of a tree's archive; none at the end.
    func next(_ archive: TreeArchive, count: Int) throws(EarshotError) -> ByteBuffer {
        try archive.next(min(count, Self.readLimit))
    }

    /// Where a tree of which nothing is here any more was put, by an earlier run that was killed before it could record that.
    func placeOfTree(_ id: ResourceID) -> String? {
        guard let name = try? Self.name(id), let outer = try? self.complete.subdirectory(name),
            let tree = try? SafeName(SpooledTree.Part.tree), (try? outer.has(tree)) == false,
            let target = try? SpooledTree.read(SpooledTree.Part.target, of: outer)
        else { return nil }
        return String(decoding: target, as: UTF8.self)
    }
}
