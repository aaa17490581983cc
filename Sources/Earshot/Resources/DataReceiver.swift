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

    /// Receives all bytes of the connection at the rate of `pacer`, and closes the connection.
    /// - Throws: the error for bytes that are refused (`too-large`), the error of the disk (`no-space`, `storage`), `cancelled`.
    func receive(over connection: DataConnection, at pacer: TransferPacer) async throws(EarshotError) -> Outcome {
        defer { connection.close() }
        let pace = DataPace(pacer, of: connection)
        do throws(EarshotError) {
            if let reader = await connection.takeOver() {
                return try self.receive(from: reader, at: pace)
            }
            while true {
                guard let bytes = try connection.readBlocking() else { return .ended }
                try self.write(bytes, at: pace)
                connection.giveBack(bytes)
            }
        } catch let error where error.code == .notConnected {
            return .lost(error)
        }
    }

    /// Writes the bytes in as many pieces as their rate requires. The inbox fills meanwhile, and then the connection is no longer read.
    private func write(_ bytes: ByteBuffer, at pace: DataPace) throws(EarshotError) {
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = bytes.withUnsafeReadableBytes { bytes in
            Result { () throws(EarshotError) in
                var rest = bytes
                while !rest.isEmpty {
                    let count = try pace.room(for: rest.count)
                    try self.content.write(UnsafeRawBufferPointer(rebasing: rest[..<count]), at: self.content.written)
                    pace.moved(count)
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                }
            }
        }
        try result.get()
    }

    private func receive(from reader: DataSocketReader, at pace: DataPace) throws(EarshotError) -> Outcome {
        let content = self.content
        try ReadAhead.read(reader, at: pace) { block throws(EarshotError) in
            try content.write(block, at: content.written)
        }
        return .ended
    }
}
