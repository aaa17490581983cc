internal import EarshotSafety
internal import EarshotTree

/// Where an incoming resource lies until it is whole, for a thread that may wait for a disk: written in order, each byte once.
///
/// A file (`OpenFile`) or anything else that takes one row of bytes. It checks neither order nor size: that is ``IncomingContent``'s part.
package protocol ResourceSink: Sendable {
    /// Writes all the bytes, the first of them at the offset. Bytes that could not be written may be written again.
    /// - Throws: `no-space`, `storage`; what else the bytes themselves are refused for.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError)

    /// Fills `buffer` with what was written at the offset and returns how many bytes; fewer only at the end of what was written.
    /// - Throws: `storage`.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int

    /// How many bytes from the start were written, by this process or an earlier one.
    /// - Throws: `storage`.
    func length() throws(EarshotError) -> UInt64

    /// Gives back what was set aside on the disk for bytes that have not come, and counts what is there; nothing is written meanwhile.
    /// - Throws: `storage`.
    func release() throws(EarshotError)

    /// Everything was written: waits until it is on disk.
    /// - Throws: `no-space`, `storage`.
    func sync() throws(EarshotError)
}

/// An incoming file, as the spool's own.
struct SpoolFile: ResourceSink {
    let file: OpenFile
    let blocks: DiskBlocks
    /// Counts what is on the disk: what was set aside there at the start, or what is written.
    let spent: SpoolLedger.Spent
    /// What the file has once it is whole, where its sender has told that.
    private let attributes: FileAttributes?
    /// Whether the file system has set it aside, so that what is free there is without it. Where it cannot (NFS, sshfs, ZFS), or takes as
    /// long for it as for writing, the ledger counts what is promised; the write that does not fit then, because others have filled the disk,
    /// is the one that fails.
    private let isReserved: Bool

    /// Has the whole size set aside for an open file, where the file system can, and the file is to have no holes.
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

    /// One that was interrupted, to be looked at.
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
