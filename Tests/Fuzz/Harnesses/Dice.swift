/// The input as a source of choices, for harnesses whose input is a story and not a format.
struct Dice {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

    /// Whether choices are left.
    var isEmpty: Bool { self.bytes.isEmpty }

    /// The next byte; 0 at the end.
    mutating func byte() -> UInt8 { self.bytes.popFirst() ?? 0 }

    /// A number below `limit`.
    mutating func number(below limit: UInt8) -> UInt64 { UInt64(self.byte() % limit) }

    /// Removes and returns up to `count` bytes.
    mutating func take(_ count: Int) -> [UInt8] {
        let piece = Array(self.bytes.prefix(count))
        self.bytes = self.bytes.dropFirst(count)
        return piece
    }

    /// Bytes behind a length of two bytes.
    mutating func block() -> [UInt8] {
        let high = Int(self.byte())
        return self.take(high << 8 | Int(self.byte()))
    }
}
