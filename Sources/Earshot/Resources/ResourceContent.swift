package import EarshotSafety
import EarshotTree
public import NIOCore

/// The bytes of a received resource, for reading in pieces.
public struct ResourceContent: Sendable {
    /// As the sender gave it: untrusted.
    public let name: String
    /// Bytes.
    public let size: UInt64
    /// `ALGORITHM:HEX`.
    public let digest: String?
    /// A directory's bytes are its tree (`Trees` in the protocol's specification).
    public let kind: Resource.Kind
    private let bytes: Bytes
    private let spool: Spool

    /// Where it lies.
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

    /// At most `count` bytes from `offset` on; none at the end. Goes on when the resource is deleted meanwhile.
    /// - Throws: `storage` where the spool cannot be read.
    public func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer {
        switch self.bytes {
        case .file(let file): try await self.spool.read(file, at: offset, count: count)
        case .tree(let tree): try await self.spool.read(tree, at: offset, count: count)
        }
    }

    /// A file's attributes; `nil` for a directory. A time that its sender has not told is that of its arrival.
    /// - Throws: `storage` where the spool cannot be read.
    package func attributes() async throws(EarshotError) -> FileAttributes? {
        switch self.bytes {
        case .file(let file): try await self.spool.attributes(file)
        case .tree: nil
        }
    }

    /// A directory as a tar archive (POSIX.1-2001 `pax`); `nil` for a file.
    public func archive() -> ResourceArchive? {
        switch self.bytes {
        case .file: nil
        case .tree(let tree): ResourceArchive(archive: tree.archive(named: self.name), spool: self.spool)
        }
    }
}

/// A received directory as a tar archive, for reading in pieces, once and in order.
public struct ResourceArchive: Sendable {
    let archive: TreeArchive
    let spool: Spool

    /// At most `count` bytes; none at the end.
    /// - Throws: `storage` where the spool cannot be read.
    public func next(count: Int) async throws(EarshotError) -> ByteBuffer {
        try await self.spool.next(self.archive, count: count)
    }
}
