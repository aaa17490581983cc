package import EarshotWire
package import NIOCore

internal import Crypto

/// A ``ResourceSource`` that is read and hashed for callers that must not wait for a disk.
///
/// It has a thread of its own. A read may wait for a disk, or forever for a server that is gone, and must not block other sources.
package actor SourceContent: OutgoingContent {
    /// The source that is read.
    package nonisolated let source: (any ResourceSource)?

    private nonisolated let executor: ThreadExecutor
    let bytes: any ResourceSource
    private let hash: XXH3
    /// The number of bytes from the start that are in the hash.
    private var hashed: UInt64 = 0

    /// The executor of the thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread. A large source may keep it busy for a long time.
    ///
    /// - Throws: `unavailable` without memory or a thread.
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

    /// Reads up to `count` bytes at the offset. Returns fewer, or none, only at the end of the size at which the source was opened.
    ///
    /// - Throws: `source-changed` if the file has become shorter, `storage` if the disk fails.
    package func read(at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        guard offset < self.bytes.size else { return ByteBuffer() }
        let wanted = min(Int(clamping: self.bytes.size - offset), max(count, 0), Spool.readLimit)
        let bytes = self.bytes
        let buffer = try ByteBuffer.filled(count: wanted) { space throws(EarshotError) in try bytes.read(into: space, at: offset) }
        // Hash only the bytes that follow the hashed ones: a second read of the same place must not count twice.
        if offset == self.hashed {
            self.hash.update(buffer)
            self.hashed += UInt64(buffer.readableBytes)
        }
        return buffer
    }

    /// Reads and hashes the remaining bytes up to an offset. `block` is the caller's buffer, which is allocated once per transfer.
    func hash(upTo end: UInt64, through block: UnsafeMutableRawBufferPointer) throws(EarshotError) {
        while self.hashed < end {
            let wanted = min(UInt64(block.count), end - self.hashed)
            let count = try self.bytes.read(into: UnsafeMutableRawBufferPointer(rebasing: block[..<Int(wanted)]), at: self.hashed)
            guard count > 0 else { return }
            self.hash.update(UnsafeRawBufferPointer(rebasing: block[..<count]))
            self.hashed += UInt64(count)
        }
    }

    /// Returns the XXH3-128 of the first `count` bytes. Returns `nil` if more bytes have already been hashed, or if the source has fewer.
    ///
    /// Works in pieces, so that other reads run in between. Throws as `read`.
    package func prefixDigest(_ count: UInt64) async throws(EarshotError) -> [UInt8]? {
        guard self.hashed <= count, count <= self.bytes.size else { return nil }
        while self.hashed < count {
            let wanted = Int(clamping: min(count - self.hashed, UInt64(Spool.readLimit)))
            guard try self.read(at: self.hashed, count: wanted).readableBytes > 0 else { return nil }
            await Task.yield()
        }
        return self.hash.digest()
    }

    /// Checks that the source has not changed since it was opened, and returns the digest of the whole. Reads the remaining bytes, or all
    /// bytes again for an algorithm other than XXH3.
    ///
    /// - Throws: `source-changed`.
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
    /// Returns a new buffer that `fill` has filled. `fill` returns the number of bytes.
    static func filled<Failure: Error>(
        count: Int, by fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: max(count, 0))
        // Stored instead of thrown: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
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
