/// Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (OOPSLA 2014). The same seed gives the same numbers.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { self.state = seed }

    /// Creates one of many generators of a seed. Its numbers do not depend on draws from the others.
    package init(seed: UInt64, _ purposes: UInt64...) {
        self.state = seed
        for purpose in purposes { self.state = self.next() ^ (purpose &* 0xD6E8_FEB8_6659_FD93) }
        self.state = self.next()
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// Returns a number from 0 to below `bound`, which must be positive. A slight bias to small numbers is harmless here.
    package mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: self.next() >> 1) % bound }

    /// Returns `true` with that probability in percent.
    package mutating func chance(_ percent: Int) -> Bool { self.below(100) < percent }

    package mutating func number(in range: ClosedRange<Int>) -> Int { range.lowerBound + self.below(range.count) }

    /// Returns one of the elements; there must be at least one.
    package mutating func one<Element>(of elements: [Element]) -> Element { elements[self.below(elements.count)] }
}
