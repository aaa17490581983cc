import EarshotWire
import NIOCore

/// Receives the bytes of one transfer from its data connections, and writes and hashes them on a thread of its own.
///
/// For plaintext, a second thread reads the socket a few blocks ahead (``ReadAhead``). The blocks are still in a cache when they are
/// hashed and written. For TLS, the event loop decrypts, and this thread waits for the decrypted bytes.
actor DataReceiver {
    /// The end of a data connection.
    enum Outcome: Sendable {
        /// The connection ended with its last frame.
        case ended
        /// The connection ended before its last frame.
        case lost(EarshotError)
    }

    nonisolated let content: IncomingContent
    private nonisolated let executor: ThreadExecutor

    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(_ content: IncomingContent) throws(EarshotError) {
        self.content = content
        self.executor = try ThreadExecutor(name: "earshot-receive", isBulk: true)
    }

    deinit {
        self.executor.stop()
    }

    /// Receives all bytes of the connection, and closes it.
    /// - Throws: the error for bytes that are refused (`too-large`), the error of the disk (`no-space`, `storage`), `cancelled`.
    func receive(over connection: DataConnection) async throws(EarshotError) -> Outcome {
        defer { connection.close() }
        do throws(EarshotError) {
            if let reader = await connection.takeOver() {
                return try self.receive(from: reader)
            }
            while true {
                guard let bytes = try connection.readBlocking() else { return .ended }
                try self.write(bytes)
                connection.giveBack(bytes)
            }
        } catch let error where error.code == .notConnected {
            return .lost(error)
        }
    }

    private func write(_ bytes: ByteBuffer) throws(EarshotError) {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = bytes.withUnsafeReadableBytes { bytes in
            Result { () throws(EarshotError) in try self.content.write(bytes, at: self.content.written) }
        }
        _ = try result.get()
    }

    private func receive(from reader: DataSocketReader) throws(EarshotError) -> Outcome {
        let content = self.content
        try ReadAhead.read(reader) { block throws(EarshotError) in
            try content.write(block, at: content.written)
        }
        return .ended
    }
}
