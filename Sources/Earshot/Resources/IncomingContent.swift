internal import EarshotSafety
package import EarshotWire
import Synchronization

/// A resource that is being received. Its bytes go into the sink and the digest, in order, up to the declared size.
///
/// The thread that has the bytes writes them: the spool's or that of a data connection. Both may wait for a disk. After ``close()`` has
/// returned, nothing is written any more, whatever thread still holds a reference.
package final class IncomingContent: Sendable {
    private struct State {
        var isClosed = false
    }

    /// The destination of the bytes.
    package let sink: any ResourceSink
    /// The id of the resource.
    package let id: ResourceID
    /// The declared size, in bytes.
    package let size: UInt64
    private let state: Mutex<State>
    /// Changed only within `state.withLock`. Read without the lock, so that readers never wait for a disk.
    private let count: TransferCount
    /// Safe, although the compiler cannot verify it: used only within `state.withLock`.
    private nonisolated(unsafe) let hash: XXH3

    /// Creates a content that is empty, or that continues after its first `written` bytes, which `hash` has already consumed.
    init(_ sink: any ResourceSink, id: ResourceID, size: UInt64, written: UInt64 = 0, hash: sending XXH3) {
        self.sink = sink
        self.id = id
        self.size = size
        self.state = Mutex(State())
        self.count = TransferCount(written)
        self.hash = hash
    }

    /// The number of written bytes from the start.
    package var written: UInt64 { self.count.value }

    /// Returns the XXH3-128 of the written bytes.
    package func digest() -> [UInt8] { self.state.withLock { _ in self.hash.digest() } }

    /// Writes the next bytes, which start where the last ones ended. Returns the number of written bytes from the start.
    ///
    /// - Throws: `protocol-violation` for bytes at another offset and `too-large` beyond the declared size, with nothing written;
    ///   `no-space` or `storage` if the disk fails, after which the same bytes may be retried; `cancelled` after `close`.
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

    /// Copies a file as the whole content of a file in the spool, in the kernel if possible. The bytes are not in the digest. Ends early if
    /// the task is cancelled.
    /// - Throws: `no-space` or `storage` if a disk fails; `cancelled`.
    func copy(_ source: OpenFile) throws(EarshotError) {
        let result = self.state.withLock { state in
            Result { () throws(EarshotError) in
                guard !state.isClosed, let sink = self.sink as? SpoolFile else {
                    throw EarshotError(.cancelled, "the transfer of the resource \(self.id) has ended")
                }
                self.count.value = try sink.copy(source)
            }
        }
        return try result.get()
    }

    /// Prevents later writes, and waits for a write in progress.
    package func close() { self.state.withLock { $0.isClosed = true } }
}
