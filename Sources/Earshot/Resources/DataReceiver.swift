import EarshotWire
import NIOCore

/// Receives the bytes of one transfer from its data connections, and writes and hashes them, on a thread of its own.
///
/// In plaintext a second thread has the socket and reads a few blocks ahead (``ReadAhead``): they are still in a cache when they are
/// hashed and written. Over TLS the event loop decrypts, and this thread waits for what is there and takes it.
actor DataReceiver {
    /// How a data connection has ended.
    enum Outcome: Sendable {
        /// With its last frame.
        case ended
        /// Before.
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

    /// Takes all that comes over the connection, and closes it.
    /// - Throws: what the bytes are refused for (`too-large`), what the disk says (`no-space`, `storage`), `cancelled`.
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
