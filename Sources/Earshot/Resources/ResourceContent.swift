package import EarshotSafety
import EarshotTree
public import NIOCore

/// The bytes of a received resource, read in pieces.
public struct ResourceContent: Sendable {
    /// The name from the sender, which is untrusted.
    public let name: String
    /// The size in bytes.
    public let size: UInt64
    /// The digest as `ALGORITHM:HEX`.
    public let digest: String?
    /// The kind of the resource. The bytes of a directory are its tree (`Trees` in the protocol's specification).
    public let kind: Resource.Kind
    private let bytes: Bytes
    private let spool: Spool

    /// The location of the bytes.
    enum Bytes: Sendable {
        case file(OpenFile)
        case tree(SpooledTree)
    }

    init(_ row: Resource, _ bytes: Bytes, spool: Spool) {
        self.name = row.name
        self.size = row.size
        self.digest = row.digest
        self.kind = row.kind
        self.bytes = bytes
        self.spool = spool
    }

    /// Returns at most `count` bytes from `offset`; none at the end. Reading continues to work if the resource is deleted meanwhile.
    /// - Throws: `storage` if the spool cannot be read.
    public func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer {
        switch self.bytes {
        case .file(let file): try await self.spool.read(file, at: offset, count: count)
        case .tree(let tree): try await self.spool.read(tree, at: offset, count: count)
        }
    }

    /// The open file, which cannot be written; `nil` for a directory.
    package var file: OpenFile? {
        switch self.bytes {
        case .file(let file): file
        case .tree: nil
        }
    }

    /// Returns a file's attributes; `nil` for a directory. If the sender sent no time, the time is that of the file's arrival.
    /// - Throws: `storage` if the spool cannot be read.
    package func attributes() async throws(EarshotError) -> FileAttributes? {
        switch self.bytes {
        case .file(let file): try await self.spool.attributes(file)
        case .tree: nil
        }
    }

    /// Returns a directory as a tar archive (POSIX.1-2001 `pax`); `nil` for a file.
    public func archive() -> ResourceArchive? {
        switch self.bytes {
        case .file: nil
        case .tree(let tree): ResourceArchive(archive: tree.archive(named: self.name), spool: self.spool)
        }
    }
}

/// A received directory as a tar archive, read in pieces, once and in order.
public struct ResourceArchive: Sendable {
    let archive: TreeArchive
    let spool: Spool

    /// Returns at most `count` bytes; none at the end.
    /// - Throws: `storage` if the spool cannot be read.
    public func next(count: Int) async throws(EarshotError) -> ByteBuffer {
        try await self.spool.next(self.archive, count: count)
    }
}
