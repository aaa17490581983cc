internal import EarshotSafety
internal import NIOCore

internal import EarshotTree
internal import Glibc

/// A tree in the spool: a directory under the resource's id with the manifest, the room it takes, and the tree itself.
///
/// What a peer sent lies only in the last of them; the owner can read and write all of it whatever permissions its entries are to have.
package final class SpooledTree: Sendable {
    /// The tree itself.
    let directory: SafeDirectory
    let manifest: TreeManifest
    private let reader: Exclusive<TreeReader>
    /// Keeps the tree in the spool while this is used.
    private let readers: TreeReaders.Hold?

    /// The names of its parts.
    enum Part {
        static let manifest = "manifest"
        static let room = "room"
        static let tree = "tree"
        /// Where it was about to be put, while it is.
        static let target = "target"
        /// Which directory of its file system is the tree, or its copy where that has to be put elsewhere: for telling it from one with which
        /// it changed places.
        static let inode = "inode"
    }

    /// Opens a tree that is whole.
    /// - Throws: `storage`.
    init(_ name: SafeName, in spool: SafeDirectory, readers: TreeReaders.Hold? = nil) throws(EarshotError) {
        self.readers = readers
        do {
            let outer = try spool.subdirectory(name)
            let manifest = try TreeManifest(decoding: try Self.read(Part.manifest, of: outer))
            self.directory = try outer.subdirectory(SafeName(Part.tree))
            self.manifest = manifest
            self.reader = Exclusive(TreeReader(self.directory, manifest: manifest))
        } catch {
            throw Spool.error(error)
        }
    }

    /// Bytes of the whole tree.
    package var size: UInt64 { self.manifest.size }

    /// At most `count` of the bytes at `offset`; none at the end.
    func read(at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        guard offset < self.size else { return ByteBuffer() }
        let wanted = min(count, Int(clamping: self.size - offset))
        return try ByteBuffer.filled(count: wanted) { space throws(EarshotError) in
            let result = self.reader.use { reader in
                Result { () throws(TreeError) in try reader.read(into: space, at: offset) }
            }
            do {
                return try result.get()
            } catch {
                throw Spool.error(error)
            }
        }
    }

    /// The tree as a tar archive, under that name.
    func archive(named name: String) -> TreeArchive {
        TreeArchive(TarStream(TreeReader(self.directory, manifest: self.manifest), name: name), readers: self.readers)
    }

    // MARK: Parts

    /// The whole of one of its small files.
    static func read(_ part: String, of directory: SafeDirectory) throws -> [UInt8] {
        let file = try directory.open(SafeName(part))
        let size = try file.status().size
        guard size <= TreeLimits.manifestBytes else { throw FileError("read", file.subject, code: EFBIG) }
        return try file.bytes(at: 0, count: Int(size))
    }

    /// Writes a small part and brings it to disk.
    static func note(_ text: String, as part: String, in directory: SafeDirectory) throws {
        let file = try directory.open(SafeName(part), flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(Array(text.utf8), at: 0)
        try file.sync()
        try directory.sync()
    }

    /// How much of a quota an entry of the spool takes, in bytes: a file its blocks, a tree what was reckoned when its manifest came.
    static func room(_ name: SafeName, in spool: SafeDirectory, on blocks: DiskBlocks) throws(FileError) -> UInt64 {
        if let size = try spool.size(of: name) { return blocks.file(size) }
        guard let outer = try? spool.subdirectory(name), let text = try? Self.read(Part.room, of: outer) else { return 0 }
        return UInt64(String(decoding: text, as: UTF8.self)) ?? 0
    }

    /// Removes an entry of the spool, whatever it is; whether there was one. What cannot be removed is left, and the first reason thrown.
    ///
    /// In the place of a tree there may lie the directory that it has replaced, and in that what only another user may remove: the note of
    /// its room stays with it, so that it goes on counting. What says that the tree is whole goes before that itself.
    @discardableResult
    static func remove(_ name: SafeName, from spool: SafeDirectory) throws -> Bool {
        if let outer = try? spool.subdirectory(name) {
            for part in [Part.manifest, Part.target, Part.inode, Part.tree] { try TreeRemoval.remove(SafeName(part), from: outer) }
        }
        return try TreeRemoval.remove(name, from: spool)
    }
}

/// A tree on its way out as a tar archive: read once, in order.
package final class TreeArchive: Sendable {
    private let stream: Exclusive<TarStream>
    /// Keeps the tree in the spool while this is used.
    private let readers: TreeReaders.Hold?

    init(_ stream: sending TarStream, readers: TreeReaders.Hold?) {
        self.stream = Exclusive(stream)
        self.readers = readers
    }

    /// At most `count` bytes; none at the end.
    func next(_ count: Int) throws(EarshotError) -> ByteBuffer {
        let result = self.stream.use { stream in
            Result { () throws(TreeError) in try stream.next(count) }
        }
        do {
            return ByteBuffer(bytes: try result.get())
        } catch {
            throw Spool.error(error)
        }
    }
}
