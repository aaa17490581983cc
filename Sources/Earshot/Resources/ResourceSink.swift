internal import EarshotSafety
internal import EarshotTree
internal import Glibc

/// The storage of an incoming resource until it is complete, for a thread that may wait for a disk. It is written in order, each byte
/// once.
///
/// A file (`OpenFile`) or another destination for a sequence of bytes. It checks neither order nor size, which ``IncomingContent`` does.
package protocol ResourceSink: Sendable {
    /// Writes all the bytes, starting at the offset. Bytes that could not be written may be retried.
    /// - Throws: `no-space`, `storage`; another error if the bytes themselves are refused.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError)

    /// Fills `buffer` with written bytes from the offset. Returns their number, which is smaller only at the end of the written bytes.
    /// - Throws: `storage`.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int

    /// Returns the number of bytes from the start that this or an earlier process has written.
    /// - Throws: `storage`.
    func length() throws(EarshotError) -> UInt64

    /// Releases the disk space that is reserved for missing bytes, and counts the rest. Must not run concurrently with a write.
    /// - Throws: `storage`.
    func release() throws(EarshotError)

    /// Waits until all written bytes are on disk.
    /// - Throws: `no-space`, `storage`.
    func sync() throws(EarshotError)
}

/// An incoming file in the spool.
struct SpoolFile: ResourceSink {
    let file: OpenFile
    let blocks: DiskBlocks
    /// Counts the disk space in use: the space reserved at the start, or the written bytes.
    let spent: SpoolLedger.Spent
    /// The final attributes of the file, if its sender has sent them.
    private let attributes: FileAttributes?
    /// Whether the file system has reserved the space, so that its free space excludes the file. If it cannot (NFS, sshfs, ZFS), or if
    /// reserving takes as long as writing, the ledger counts the promised space. If other programs have filled the disk by then, the write
    /// fails.
    private let isReserved: Bool

    /// Reserves the whole size for an open file, if the file system can, and if the file has no holes.
    init(
        _ file: OpenFile, size: UInt64, _ attributes: FileAttributes? = nil, in directory: SafeDirectory, on blocks: DiskBlocks,
        _ spent: SpoolLedger.Spent
    ) throws(FileError) {
        self.file = file
        self.blocks = blocks
        self.spent = spent
        self.attributes = attributes
        self.isReserved = directory.isInMemory || attributes?.hasHoles == true ? false : try file.reserve(size)
        self.count(self.isReserved ? size : try file.status().size)
    }

    /// Opens an interrupted file for inspection.
    init(_ file: OpenFile, on blocks: DiskBlocks, _ spent: SpoolLedger.Spent) {
        self.file = file
        self.blocks = blocks
        self.spent = spent
        self.attributes = nil
        self.isReserved = false
    }

    private func count(_ bytes: UInt64) { self.spent.count(SpoolLedger.Room(file: bytes, on: self.blocks)) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError) {
        do {
            try self.file.write(bytes, at: offset, leavingHoles: self.attributes?.hasHoles == true)
            if !self.isReserved { self.count(offset + UInt64(bytes.count)) }
        } catch {
            throw Spool.error(error)
        }
    }

    /// Copies the content of a file into this empty one. Returns its number of bytes.
    /// - Throws: `no-space` or `storage` if a disk fails; `cancelled` if the task is cancelled.
    func copy(_ source: OpenFile) throws(EarshotError) -> UInt64 {
        do {
            return try self.file.copyContent(of: source) { (copied) throws(FileError) in
                guard !Task.isCancelled else { throw FileError("copy", source.subject, code: ECANCELED) }
                if !self.isReserved { self.count(copied) }
            }
        } catch {
            throw error.code == ECANCELED ? EarshotError(.cancelled, "the file was not copied to its end") : Spool.error(error)
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int {
        do {
            return try self.file.read(into: buffer, at: offset)
        } catch {
            throw Spool.error(error)
        }
    }

    func length() throws(EarshotError) -> UInt64 {
        do {
            return try self.file.status().size
        } catch {
            throw Spool.error(error)
        }
    }

    func release() throws(EarshotError) {
        do {
            try self.file.releaseReserve()
            self.count(try self.file.status().size)
        } catch {
            throw Spool.error(error)
        }
    }

    func sync() throws(EarshotError) {
        do {
            if let attributes = self.attributes { self.file.apply(attributes) }
            try self.file.sync(dataOnly: self.attributes == nil)
        } catch {
            throw Spool.error(error)
        }
    }
}
