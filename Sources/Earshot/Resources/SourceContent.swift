package import EarshotWire
package import NIOCore

internal import Crypto

/// A ``ResourceSource`` read and hashed for callers that must not wait for a disk.
///
/// It runs on a thread of its own, because a read may wait for a disk, or for ever for a server that has gone: no other source is to wait
/// with it.
package actor SourceContent: OutgoingContent {
    /// What is read.
    package nonisolated let source: (any ResourceSource)?

    private nonisolated let executor: ThreadExecutor
    let bytes: any ResourceSource
    private let hash: XXH3
    /// Bytes from the start that are in the hash.
    private var hashed: UInt64 = 0

    /// The thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread. A large source may keep it busy for long.
    ///
    /// Throws `unavailable` without memory or a thread.
    package init(_ source: any ResourceSource) throws(EarshotError) {
        self.hash = try XXH3()
        self.source = source
        self.bytes = source
        let isLarge = source.size >= EarshotLimits.dataThreshold
        self.executor = try ThreadExecutor(name: isLarge ? "earshot-send" : "earshot-source", isBulk: isLarge)
    }

    deinit {
        self.executor.stop()
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

    /// Reads and hashes what was not hashed yet, up to an offset, through the caller's memory: one block for a whole transfer.
    func hash(upTo end: UInt64, through block: UnsafeMutableRawBufferPointer) throws(EarshotError) {
        while self.hashed < end {
            let wanted = min(UInt64(block.count), end - self.hashed)
            let count = try self.bytes.read(into: UnsafeMutableRawBufferPointer(rebasing: block[..<Int(wanted)]), at: self.hashed)
            guard count > 0 else { return }
            self.hash.update(UnsafeRawBufferPointer(rebasing: block[..<count]))
            self.hashed += UInt64(count)
        }
    }

    /// The XXH3-128 of the first `count` bytes; `nil` where more than these were read before, or there are fewer.
    ///
    /// Works in pieces, so that others read in between. Throws as `read`.
    package func prefixDigest(_ count: UInt64) async throws(EarshotError) -> [UInt8]? {
        guard self.hashed <= count, count <= self.bytes.size else { return nil }
        while self.hashed < count {
            let wanted = Int(clamping: min(count - self.hashed, UInt64(Spool.readLimit)))
            guard try self.read(at: self.hashed, count: wanted).readableBytes > 0 else { return nil }
            await Task.yield()
        }
        return self.hash.digest()
    }

    /// The digest of the whole, which must not have changed since it was opened; reads what was not read yet, and all of it once more for
    /// another algorithm than XXH3.
    ///
    /// Throws `source-changed`.
    package func finish(_ algorithm: ResourceEnd.DigestAlgorithm) async throws(EarshotError) -> [UInt8] {
        let digest: [UInt8]
        switch algorithm {
        case .xxh3:
            while self.hashed < self.bytes.size {
                guard try self.read(at: self.hashed, count: Spool.readLimit).readableBytes > 0 else { break }
                await Task.yield()
            }
            digest = self.hash.digest()
        case .sha256:
            var hash = SHA256()
            var offset: UInt64 = 0
            while offset < self.bytes.size {
                let piece = try self.read(at: offset, count: Spool.readLimit)
                guard piece.readableBytes > 0 else { break }
                piece.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
                offset += UInt64(piece.readableBytes)
                await Task.yield()
            }
            digest = Array(hash.finalize())
        }
        try self.bytes.verify()
        return digest
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
