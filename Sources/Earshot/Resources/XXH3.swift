internal import CLinux
internal import NIOCore

/// XXH3-128, fed piece by piece: finds faults of disks and programs at the speed of memory, and is no defence against people, which
/// is TLS's part.
///
/// Used by one thread at a time.
final class XXH3 {
    /// The digest's length in bytes.
    static let byteCount = 16

    private let state: OpaquePointer

    /// Fails only without memory.
    init() throws(EarshotError) {
        guard let state = earshot_xxh3_create() else { throw EarshotError(.unavailable, "out of memory") }
        self.state = state
    }

    deinit {
        earshot_xxh3_free(self.state)
    }

    /// Hashes more bytes.
    func update(_ bytes: UnsafeRawBufferPointer) {
        earshot_xxh3_update(self.state, bytes.baseAddress, bytes.count)
    }

    /// Hashes what is readable.
    func update(_ buffer: ByteBuffer) {
        buffer.withUnsafeReadableBytes { self.update($0) }
    }

    /// The digest of everything so far, in its canonical (big-endian) form.
    func digest() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            guard let start = buffer.baseAddress else { return }
            earshot_xxh3_digest(self.state, start)
            count = Self.byteCount
        }
    }
}

extension XXH3 {
    /// Tells two messages of one sender apart without their bodies; empty where there is no memory for it.
    static func fingerprint(_ draft: MessageDraft) -> [UInt8] {
        guard let hash = try? XXH3() else { return [] }
        hash.update(ByteBuffer(string: draft.contentType + "\n"))
        hash.update(draft.body)
        return hash.digest()
    }
}
