internal import CLinux
internal import NIOCore

/// An incremental XXH3-128. It detects faults of disks and programs at memory speed. It does not protect against attackers; TLS does.
///
/// Not thread-safe.
final class XXH3 {
    /// The length of the digest in bytes.
    static let byteCount = 16

    private let state: OpaquePointer

    /// Creates a hash. Fails only without memory.
    init() throws(EarshotError) {
        guard let state = earshot_xxh3_create() else { throw EarshotError(.unavailable, "out of memory") }
        self.state = state
    }

    deinit {
        earshot_xxh3_free(self.state)
    }

    /// Adds bytes to the hash.
    func update(_ bytes: UnsafeRawBufferPointer) {
        earshot_xxh3_update(self.state, bytes.baseAddress, bytes.count)
    }

    /// Adds the readable bytes of a buffer to the hash.
    func update(_ buffer: ByteBuffer) {
        buffer.withUnsafeReadableBytes { self.update($0) }
    }

    /// Returns the digest of all bytes so far, in its canonical (big-endian) form.
    func digest() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            guard let start = buffer.baseAddress else { return }
            earshot_xxh3_digest(self.state, start)
            count = Self.byteCount
        }
    }
}

extension XXH3 {
    /// Returns a fingerprint that distinguishes messages of one sender without their bodies. Empty if there is no memory for it.
    static func fingerprint(_ draft: MessageDraft) -> [UInt8] {
        guard let hash = try? XXH3() else { return [] }
        hash.update(ByteBuffer(string: draft.contentType + "\n"))
        hash.update(draft.body)
        return hash.digest()
    }
}
