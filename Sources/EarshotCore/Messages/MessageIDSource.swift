package import EarshotWire

/// Makes ids for messages, of their time and of randomness that is handed in.
package struct MessageIDSource<Randomness: RandomNumberGenerator & Sendable>: Sendable {
    private var randomness: Randomness

    package init(_ randomness: Randomness) {
        self.randomness = randomness
    }

    /// A fresh one that sorts by its time.
    package mutating func next(secondsSince1970: Double) -> MessageID {
        .timeOrdered(secondsSince1970: secondsSince1970, random: self.randomness.next())
    }
}
