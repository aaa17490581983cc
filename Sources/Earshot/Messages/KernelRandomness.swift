#if canImport(Glibc)
    import Glibc
#endif

/// The system's randomness, fetched for several words at once: a call of the kernel for each took longer than all else that an unreliable
/// message needs.
struct KernelRandomness: RandomNumberGenerator, Sendable {
    /// As much as getentropy(3) gives at once, in words of 64 bits.
    private static let count = 32

    private var words: [UInt64] = []

    mutating func next() -> UInt64 {
        if self.words.isEmpty { self.words = Self.fetch() }
        if let word = self.words.popLast() { return word }
        var system = SystemRandomNumberGenerator()
        return system.next()
    }

    /// Fresh words; none where the kernel gives none so.
    private static func fetch() -> [UInt64] {
        [UInt64](unsafeUninitializedCapacity: Self.count) { buffer, count in
            count = getentropy(buffer.baseAddress, Self.count * MemoryLayout<UInt64>.size) == 0 ? Self.count : 0
        }
    }
}
