import DequeModule

/// The wrong PINs of the last hour: few of one address and few in all, because a PIN may have six digits only. A value.
struct WrongPINs: Sendable, Hashable {
    private struct Entry: Sendable, Hashable {
        /// The address; `nil` after a right PIN from there.
        var origin: [UInt8]?
        let time: MonotonicInstant
    }

    /// At most `EarshotLimits.devicePINs`, the oldest first.
    private var entries: Deque<Entry> = []

    /// Whether no PIN of that address is checked any more.
    mutating func isLocked(_ origin: [UInt8], at now: MonotonicInstant) -> Bool {
        while let oldest = self.entries.first, now - oldest.time >= EarshotLimits.devicePINPeriod { self.entries.removeFirst() }
        return self.entries.count >= EarshotLimits.devicePINs
            || self.entries.count { $0.origin == origin } >= EarshotLimits.devicePINsPerAddress
    }

    var count: Int { self.entries.count }

    mutating func note(_ origin: [UInt8], at now: MonotonicInstant) { self.entries.append(Entry(origin: origin, time: now)) }

    /// Records a right PIN: its address may err again. The others still count for all addresses together.
    mutating func right(_ origin: [UInt8]) {
        for index in self.entries.indices where self.entries[index].origin == origin { self.entries[index].origin = nil }
    }
}

/// Compares secrets in a time that depends only on the length of `given`.
func areEqual(secret: String, _ given: String) -> Bool {
    let (own, other) = (Array(secret.utf8), Array(given.utf8))
    var difference: UInt8 = own.count == other.count ? 0 : 1
    for index in other.indices { difference |= other[index] ^ (own.isEmpty ? 0 : own[index % own.count]) }
    return difference == 0
}
