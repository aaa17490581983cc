internal import EarshotSafety

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

    /// Everything was written: waits until it is on disk.
    /// - Throws: `no-space`, `storage`.
    func sync() throws(EarshotError)
}

/// An incoming file, as the spool's own.
struct SpoolFile: ResourceSink {
    let file: OpenFile
    /// Counts what is written, where that was not set aside on the disk at the start.
    var spent: SpoolLedger.Spent?

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError) {
        do {
            try self.file.write(bytes, at: offset)
            self.spent?.bytes.value = offset + UInt64(bytes.count)
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

    func sync() throws(EarshotError) {
        do {
            try self.file.sync(dataOnly: true)
        } catch {
            throw Spool.error(error)
        }
    }
}
