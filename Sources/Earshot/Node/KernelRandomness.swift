#if canImport(Glibc)
    import Glibc
#endif

/// The system's random numbers, fetched in batches: a system call for each one took longer than the rest of sending an unreliable message.
struct KernelRandomness: RandomNumberGenerator, Sendable {
    /// The maximum size of one getentropy(3) call, in 64-bit words.
    private static let count = 32

    private var words: [UInt64] = []

    mutating func next() -> UInt64 {
        if self.words.isEmpty { self.words = Self.fetch() }
        if let word = self.words.popLast() { return word }
        var system = SystemRandomNumberGenerator()
        return system.next()
    }

    /// Returns new words; none if the kernel fails.
    private static func fetch() -> [UInt64] {
        [UInt64](unsafeUninitializedCapacity: Self.count) { buffer, count in
            count = getentropy(buffer.baseAddress, Self.count * MemoryLayout<UInt64>.size) == 0 ? Self.count : 0
        }
    }
}
