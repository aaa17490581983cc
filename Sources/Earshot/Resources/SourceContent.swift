package import NIOCore

/// A ``ResourceSource`` read and hashed for whoever must not wait for a disk.
///
/// All of them share one thread of their own, because a read may wait for a disk or a server.
package actor SourceContent: OutgoingContent {
    /// What is read.
    package nonisolated let source: (any ResourceSource)?

    private nonisolated let executor: ThreadExecutor
    private let bytes: any ResourceSource
    private let hash: XXH3
    /// Bytes from the start that are in the hash.
    private var hashed: UInt64 = 0

    /// The thread of all sources; it lives as long as the process. `nil` when it could not be started.
    private static let executor: ThreadExecutor? = try? ThreadExecutor(name: "earshot-source")

    /// The thread of all sources.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Throws `unavailable` without memory or a thread.
    package init(_ source: any ResourceSource) throws(EarshotError) {
        guard let executor = Self.executor else { throw EarshotError(.unavailable, "cannot start a thread to read files") }
        self.executor = executor
        self.source = source
        self.bytes = source
        self.hash = try XXH3()
    }

    /// Reads up to `count` bytes at the offset; fewer, or none, only at the end of the size that it had when opened.
    ///
    /// Throws `source-changed` when the file has become shorter, `storage` when the disk fails.
    package func read(at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        guard offset < self.bytes.size else { return ByteBuffer() }
        let wanted = min(Int(clamping: self.bytes.size - offset), max(count, 0), Spool.readLimit)
        let bytes = self.bytes
        let buffer = try ByteBuffer.filled(count: wanted) { space throws(EarshotError) in try bytes.read(into: space, at: offset) }
        // Only what follows on what is hashed: a second reading of the same place must not count twice.
        if offset == self.hashed {
            self.hash.update(buffer)
            self.hashed += UInt64(buffer.readableBytes)
        }
        return buffer
    }

    /// The XXH3-128 digest of the whole, which must not have changed since it was opened; hashes what was not read yet.
    ///
    /// Throws `source-changed`.
    package func finish() throws(EarshotError) -> [UInt8] {
        while self.hashed < self.bytes.size {
            guard try self.read(at: self.hashed, count: Spool.readLimit).readableBytes > 0 else { break }
        }
        try self.bytes.verify()
        return self.hash.digest()
    }
}

extension ByteBuffer {
    /// A buffer of its own that `fill` has filled, which returns how many bytes it has put there.
    static func filled<Failure: Error>(
        count: Int, by fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: max(count, 0))
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        var failure: Failure?
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: max(count, 0)) { space in
            do throws(Failure) {
                return try fill(UnsafeMutableRawBufferPointer(rebasing: space[..<max(count, 0)]))
            } catch {
                failure = error
                return 0
            }
        }
        if let failure { throw failure }
        return buffer
    }
}
