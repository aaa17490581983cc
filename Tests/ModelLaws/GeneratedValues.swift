/// Makes values of models of a seed: within the documented limits, and otherwise as odd as peers may make them.
package protocol GeneratedValues {
    /// The generator's state, at first its seed.
    var state: UInt64 { get set }
}

extension GeneratedValues {
    package mutating func number() -> UInt64 {
        // SplitMix64.
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    package mutating func number(below limit: UInt64) -> UInt64 { self.number() % limit }
    package mutating func count() -> Int { Int(self.number(below: 10_000)) }
    package mutating func flag() -> Bool { self.number() & 1 == 0 }

    /// Small, large, and at the edge.
    package mutating func size() -> UInt64 { self.element([0, 1, 1 << 40, UInt64(Int64.max), self.number(below: 1 << 62)]) }

    package mutating func element<Element>(_ elements: [Element]) -> Element { elements[Int(self.number(below: UInt64(elements.count)))] }

    package mutating func optional<Value>(_ make: (inout Self) -> Value) -> Value? { self.flag() ? make(&self) : nil }

    package mutating func list<Value>(_ counts: ClosedRange<UInt64> = 0...3, _ make: (inout Self) -> Value) -> [Value] {
        let count = counts.lowerBound + self.number(below: counts.upperBound - counts.lowerBound + 1)
        return (0..<count).map { _ in make(&self) }
    }

    package mutating func text() -> String {
        self.element([
            "bob", "a b", "\u{202E}evil\u{200B}", "née ☎️", "\"quoted\" \\ back", "tab\tline\nend", "https://x/y?z=1&w",
            "\u{1F468}\u{200D}\u{1F469}", "ﬀ", "0",
        ])
    }

    package mutating func bytes() -> [UInt8] { self.list(0...40) { UInt8(truncatingIfNeeded: $0.number()) } }

    /// Pairs of an advertisement, by keys that a naming convention would change.
    package mutating func pairs() -> [String: String] {
        let keys = self.list(0...4) { $0.element(["room", "roomName", "room_name", "X-Y", "URL", "peerId", "a b", "_", "ID"]) }
        return Dictionary(keys.map { ($0, self.text()) }, uniquingKeysWith: { first, _ in first })
    }
}
