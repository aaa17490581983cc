internal import EarshotSafety
internal import NIOCore

internal import EarshotTree
internal import Glibc

/// A tree in the spool: a directory under the resource's id with the manifest, the note of its space, and the tree itself.
///
/// Only the tree itself contains data from the peer. Its owner can read and write all of it, whatever permissions its entries will have.
package final class SpooledTree: Sendable {
    /// The tree itself.
    let directory: SafeDirectory
    let manifest: TreeManifest
    private let reader: Exclusive<TreeReader>
    /// Keeps the tree in the spool while this value exists.
    private let readers: TreeReaders.Hold?

    /// The names of the parts.
    enum Part {
        static let manifest = "manifest"
        static let room = "room"
        static let tree = "tree"
        /// The path to which the tree is being moved.
        static let target = "target"
        /// The inode of the tree, or of its copy if it is published on another file system. It distinguishes the tree from a directory
        /// with which it was exchanged.
        static let inode = "inode"
    }

    /// Opens a complete tree.
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

    /// The size of the whole tree, in bytes.
    package var size: UInt64 { self.manifest.size }

    /// Returns at most `count` of the bytes at `offset`; none at the end.
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

    /// Returns the tree as a tar archive with this name.
    func archive(named name: String) -> TreeArchive {
        TreeArchive(TarStream(TreeReader(self.directory, manifest: self.manifest), name: name), readers: self.readers)
    }

    // MARK: Parts

    /// Returns the content of a small part.
    static func read(_ part: String, of directory: SafeDirectory) throws -> [UInt8] {
        let file = try directory.open(SafeName(part))
        let size = try file.status().size
        guard size <= TreeLimits.manifestBytes else { throw FileError("read", file.subject, code: EFBIG) }
        return try file.bytes(at: 0, count: Int(size))
    }

    /// Writes a small part and syncs it.
    static func note(_ text: String, as part: String, in directory: SafeDirectory) throws {
        let file = try directory.open(SafeName(part), flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(Array(text.utf8), at: 0)
        try file.sync()
        try directory.sync()
    }

    /// Returns the part of the quota that an entry of the spool takes, in bytes: the blocks of a file, or the noted space of a tree.
    static func room(_ name: SafeName, in spool: SafeDirectory, on blocks: DiskBlocks) throws(FileError) -> UInt64 {
        if let size = try spool.size(of: name) { return blocks.file(size) }
        guard let outer = try? spool.subdirectory(name), let text = try? Self.read(Part.room, of: outer) else { return 0 }
        return UInt64(String(decoding: text, as: UTF8.self)) ?? 0
    }

    /// Removes an entry of the spool of any kind, and returns whether there was one. Anything that cannot be removed stays, and the first
    /// error is thrown.
    ///
    /// The place of the tree may contain the directory that it has replaced, with entries that only another user can remove. The note of
    /// the space stays with them, so that they count towards the quota. The manifest, which marks the tree as complete, is removed before
    /// the tree itself.
    @discardableResult
    static func remove(_ name: SafeName, from spool: SafeDirectory) throws -> Bool {
        if let outer = try? spool.subdirectory(name) {
            for part in [Part.manifest, Part.target, Part.inode, Part.tree] { try TreeRemoval.remove(SafeName(part), from: outer) }
        }
        return try TreeRemoval.remove(name, from: spool)
    }
}

/// A tree that is sent as a tar archive: read once, in order.
package final class TreeArchive: Sendable {
    private let stream: Exclusive<TarStream>
    /// Keeps the tree in the spool while this value exists.
    private let readers: TreeReaders.Hold?

    init(_ stream: sending TarStream, readers: TreeReaders.Hold?) {
        self.stream = Exclusive(stream)
        self.readers = readers
    }

    /// Returns at most `count` bytes; none at the end.
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
