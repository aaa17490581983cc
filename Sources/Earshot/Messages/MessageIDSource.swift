import EarshotWire

#if canImport(Glibc)
    import Glibc
#endif

/// Makes ids for messages, with the system's randomness fetched for several at once: a call of the kernel for each took longer than all
/// else that an unreliable message needs.
struct MessageIDSource {
    /// As much as getentropy(3) gives at once, in words of 64 bits.
    private static let words = 32

    private var random: [UInt64] = []

    /// A fresh one that sorts by its time.
    mutating func next(secondsSince1970: Double) -> MessageID {
        if self.random.isEmpty { self.random = Self.fetch() }
        guard let random = self.random.popLast() else { return .timeOrdered(secondsSince1970: secondsSince1970) }
        return .timeOrdered(secondsSince1970: secondsSince1970, random: random)
    }

    /// Fresh words; none where the kernel gives none so.
    private static func fetch() -> [UInt64] {
        [UInt64](unsafeUninitializedCapacity: Self.words) { buffer, count in
            count = getentropy(buffer.baseAddress, Self.words * MemoryLayout<UInt64>.size) == 0 ? Self.words : 0
        }
    }
}
