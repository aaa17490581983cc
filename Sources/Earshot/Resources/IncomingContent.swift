package import EarshotWire
import Synchronization

/// A resource as it comes in: its bytes go into the sink and into the digest, in order, up to the declared size and not beyond.
///
/// The thread that has the bytes writes them: one that may wait for a disk: the spool's, or that of a data connection. Once ``close()``
/// has returned, nothing is written any more, whatever thread still holds this.
package final class IncomingContent: Sendable {
    private struct State {
        var isClosed = false
    }

    /// Where it lies.
    package let sink: any ResourceSink
    /// Which resource's.
    package let id: ResourceID
    /// Declared, in bytes.
    package let size: UInt64
    private let state: Mutex<State>
    /// Changed only within `state.withLock`; looked at without, which never waits for a disk.
    private let count: TransferCount
    /// Safe although the compiler cannot see it: touched only within `state.withLock`.
    private nonisolated(unsafe) let hash: XXH3

    /// An empty one, or one that goes on behind the first `written` bytes, which `hash` has seen.
    init(_ sink: any ResourceSink, id: ResourceID, size: UInt64, written: UInt64 = 0, hash: sending XXH3) {
        self.sink = sink
        self.id = id
        self.size = size
        self.state = Mutex(State())
        self.count = TransferCount(written)
        self.hash = hash
    }

    /// Bytes from the start that are written.
    package var written: UInt64 { self.count.value }

    /// The XXH3-128 of the bytes that are written.
    package func digest() -> [UInt8] { self.state.withLock { _ in self.hash.digest() } }

    /// Writes the next bytes, which begin where the last ones ended, and returns how many there are now from the start.
    ///
    /// Throws `protocol-violation` for bytes out of place and `too-large` beyond the declared size, with nothing written; `no-space` or
    /// `storage` when the disk fails, after which the same bytes may be tried again; `cancelled` after `close`.
    @discardableResult
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError) -> UInt64 {
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in
                guard !state.isClosed else { throw EarshotError(.cancelled, "the transfer of the resource \(self.id) has ended") }
                let written = self.count.value
                guard offset == written else {
                    throw EarshotError(
                        .protocolViolation,
                        "bytes at offset \(offset) of the resource \(self.id) where \(written) was due; send it again")
                }
                guard UInt64(bytes.count) <= self.size - written else {
                    throw EarshotError(.tooLarge, "more than the declared \(self.size) bytes of the resource \(self.id); send it again")
                }
                try self.sink.write(bytes, at: offset)
                self.hash.update(bytes)
                self.count.value = written + UInt64(bytes.count)
                return written + UInt64(bytes.count)
            }
        }
        return try result.get()
    }

    /// Has nothing written any more; waits for a write that is under way.
    package func close() { self.state.withLock { $0.isClosed = true } }
}
