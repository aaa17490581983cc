package import EarshotSafety
package import EarshotWire
package import NIOCore

/// What is sent as one resource, for a thread that may wait for a disk: its bytes at any offset, as often as needed.
///
/// A file (``SourceFile``) or anything else that is laid out as one row of bytes. Several threads may read at once: one that sends, and
/// one that hashes.
package protocol ResourceSource: Sendable {
    /// Bytes in all, fixed when the source was opened.
    var size: UInt64 { get }

    /// What tells this content from another one at the same place: equal stamps, the same bytes as far as can be told without reading them.
    var stamp: String { get }

    /// A file's attributes; `nil` of anything else.
    var attributes: FileAttributes? { get }

    /// Fills `buffer` with the bytes at the offset and returns how many; fewer only at the end.
    /// - Throws: `source-changed` where there are fewer bytes than `size` said; `storage` when the disk fails.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int

    /// Where the bytes from the offset on lie in an open file, for the kernel to send: at most `count`, at least one; `nil` where they
    /// must be read.
    /// - Throws: as `read`.
    func extent(at offset: UInt64, count: UInt64) throws(EarshotError) -> FileExtent?

    /// Makes sure that nothing has changed since it was opened; called once everything was read.
    /// - Throws: `source-changed`, `storage`.
    func verify() throws(EarshotError)
}

extension ResourceSource {
    package var attributes: FileAttributes? { nil }
}

/// A run of bytes in an open file.
package struct FileExtent: Sendable {
    /// The file; open while this value lives.
    package let file: OpenFile
    /// Where the run begins, in bytes from the file's start.
    package let offset: UInt64
    /// Its length in bytes.
    package let count: UInt64

    /// A run from its parts.
    package init(file: OpenFile, offset: UInt64, count: UInt64) {
        self.file = file
        self.offset = offset
        self.count = count
    }
}

/// Where the bytes of an outgoing resource come from as the node reads them: once, in order, hashed on the way.
package protocol OutgoingContent: Sendable {
    /// The same for a thread that may block; `nil` where the bytes can only be awaited.
    var source: (any ResourceSource)? { get }
    /// At most `count` of the bytes at `offset`, which is where the last read ended.
    func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer
    /// The XXH3-128 of the first `count` bytes, to compare with what the receiver holds; `nil` where they cannot be read again.
    func prefixDigest(_ count: UInt64) async throws(EarshotError) -> [UInt8]?
    /// Sends all from the offset on over a data connection, and closes it; `false` where that is lost before everything was handed to the
    /// kernel. `sent` is how far it has come.
    /// - Throws: as `read`.
    func send(from offset: UInt64, over connection: DataConnection, counting sent: TransferCount) async throws(EarshotError) -> Bool
    /// All was read: the digest of the whole, once the source has been found unchanged.
    func finish(_ algorithm: ResourceEnd.DigestAlgorithm) async throws(EarshotError) -> [UInt8]
}
