import Crypto
import EarshotTree
import EarshotWire
import NIOCore

/// A resource that is forwarded while it arrives from a caller, without using the disk.
///
/// It has one reader and one offset. A body cannot be read twice, so the caller has to start a failed transfer again. The caller reads the
/// body (``BodyFeed``).
actor BodySource: OutgoingContent {
    nonisolated var source: (any ResourceSource)? { nil }

    /// The source of the bytes. The caller closes it when the transfer is over.
    nonisolated let feed = BodyFeed()
    private let size: UInt64
    private var rest = ByteBuffer()
    private var position: UInt64 = 0
    private let digest: XXH3
    /// The SHA-256 so far, if the transfer uses this algorithm.
    private var sha256: SHA256?
    /// The entries of a directory, once they have been read.
    private var tree: TreeManifest?

    init(size: UInt64, digest: ResourceEnd.DigestAlgorithm) throws(EarshotError) {
        self.digest = try XXH3()
        self.sha256 = digest == .sha256 ? SHA256() : nil
        self.size = size
    }

    func read(at offset: UInt64, count: Int) async throws(EarshotError) -> ByteBuffer {
        guard offset == self.position else {
            throw EarshotError(.unavailable, "a body that was streamed in cannot be read twice; send it again")
        }
        while self.rest.readableBytes == 0 {
            let next: ByteBuffer?
            do throws(EarshotError) {
                next = try await self.feed.next()
            } catch {
                guard error.code == .cancelled else { throw error }
                throw EarshotError(
                    .cancelled, "the body was cut off after \(self.position) of \(self.size) bytes", underlying: error.underlying)
            }
            guard let next else {
                throw EarshotError(
                    .invalidParameter, "the body ended after \(self.position) of the \(self.size) bytes that were announced")
            }
            self.rest = next
        }
        let slice = self.rest.readSlice(length: min(count, self.rest.readableBytes)) ?? ByteBuffer()
        self.position += UInt64(slice.readableBytes)
        self.digest.update(slice)
        slice.withUnsafeReadableBytes { self.sha256?.update(bufferPointer: $0) }
        return slice
    }

    /// Returns the entries of a directory, whose tree this is. Only the first call reads them.
    func manifest() async throws(EarshotError) -> TreeManifest {
        if let tree { return tree }
        let tree = try await self.readManifest()
        guard tree.size == self.size else {
            throw EarshotError(.invalidParameter, "the tree has \(tree.size) bytes instead of the \(self.size) that were announced")
        }
        self.tree = tree
        return tree
    }

    /// Reads and drops the bytes before an offset.
    func skip(to offset: UInt64) async throws(EarshotError) {
        while self.position < offset {
            _ = try await self.read(at: self.position, count: Int(clamping: offset - self.position))
        }
    }

    func send(
        from offset: UInt64, over connection: DataConnection, counting sent: TransferCount, at pacer: TransferPacer
    ) async throws(EarshotError) -> Bool {
        defer { connection.close() }
        var position = offset
        while position < self.size {
            let wanted = Int(min(UInt64(EarshotLimits.dataBlock), self.size - position))
            guard let room = await pacer.roomAwaited(for: wanted, until: { connection.isClosed }) else { return false }
            let bytes = try await self.read(at: position, count: room)
            pacer.moved(bytes.readableBytes)
            do throws(EarshotError) {
                try await connection.write(bytes)
            } catch {
                return false
            }
            position += UInt64(bytes.readableBytes)
            sent.value = position
        }
        return (try? await connection.finish()) != nil
    }

    func prefixDigest(_ count: UInt64) -> [UInt8]? { nil }

    func finish(_ algorithm: ResourceEnd.DigestAlgorithm) async throws(EarshotError) -> [UInt8] {
        while self.rest.readableBytes == 0 {
            guard let next = try? await self.feed.next() else {
                return self.sha256.map { Array($0.finalize()) } ?? self.digest.digest()
            }
            self.rest = next
        }
        throw EarshotError(.tooLarge, "the body has more than the \(self.size) bytes that were announced")
    }
}
