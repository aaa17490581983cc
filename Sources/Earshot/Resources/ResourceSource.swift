package import EarshotSafety
package import EarshotWire
package import NIOCore

/// The content of one outgoing resource, for a thread that may wait for a disk. Its bytes can be read at any offset, any number of times.
///
/// A file (``SourceFile``) or another sequence of bytes. Several threads may read at once: one that sends and one that hashes.
package protocol ResourceSource: Sendable {
    /// The total size in bytes, fixed when the source was opened.
    var size: UInt64 { get }

    /// A mark that identifies this version of the content. Equal stamps mean equal bytes, as far as that can be determined without reading
    /// them.
    var stamp: String { get }

    /// The attributes of a file; `nil` for other sources.
    var attributes: FileAttributes? { get }

    /// Fills `buffer` with the bytes at the offset. Returns their number, which is smaller only at the end.
    /// - Throws: `source-changed` if there are fewer bytes than `size`; `storage` if the disk fails.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int

    /// Returns the location of the bytes from the offset in an open file, for the kernel to send: at least one and at most `count` bytes.
    /// Returns `nil` if the bytes have to be read.
    /// - Throws: as `read`.
    func extent(at offset: UInt64, count: UInt64) throws(EarshotError) -> FileExtent?

    /// Checks that the source has not changed since it was opened. Called when everything has been read.
    /// - Throws: `source-changed`, `storage`.
    func verify() throws(EarshotError)
}

extension ResourceSource {
    package var attributes: FileAttributes? { nil }
}

/// A range of bytes in an open file.
package struct FileExtent: Sendable {
    /// The file, which is open while this value exists.
    package let file: OpenFile
    /// The start of the range, in bytes from the file's start.
    package let offset: UInt64
    /// The length of the range in bytes.
    package let count: UInt64

    /// Creates a range from its parts.
    package init(file: OpenFile, offset: UInt64, count: UInt64) {
        self.file = file
        self.offset = offset
        self.count = count
    }
}

/// The content of an outgoing resource for the node: read once, in order, and hashed while it is read.
package protocol OutgoingContent: Sendable {
    /// The source for a thread that may block; `nil` if the bytes can only be awaited.
    var source: (any ResourceSource)? { get }
    /// Returns at most `count` of the bytes at `offset`, which is the end of the last read.
    func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer
    /// Returns the XXH3-128 of the first `count` bytes, to compare with the receiver's; `nil` if they cannot be read again.
    func prefixDigest(_ count: UInt64) async throws(EarshotError) -> [UInt8]?
    /// Sends all bytes from the offset over a data connection, and closes it. Returns `false` if the connection is lost before all bytes
    /// were passed to the kernel. `sent` counts the progress, and `pacer` sets the rate.
    /// - Throws: as `read`.
    func send(
        from offset: UInt64, over connection: DataConnection, counting sent: TransferCount, at pacer: TransferPacer
    ) async throws(EarshotError) -> Bool
    /// Checks that the source has not changed, and returns the digest of the whole. Called when everything has been read.
    func finish(_ algorithm: ResourceEnd.DigestAlgorithm) async throws(EarshotError) -> [UInt8]
}
