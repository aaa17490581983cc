import ArgumentParser

/// A duration as a user writes it: `30`, `1.5`, `30s`, `2min`, `1h`, `7d`.
struct Seconds: Hashable, Sendable, ExpressibleByArgument {
    /// The duration in seconds, from 0 to a year.
    let value: Double

    var duration: Duration { .seconds(self.value) }

    /// The longest accepted duration: a year, in seconds.
    static let limit: Double = 366 * 86_400

    init?(argument: String) {
        let units: [(suffix: String, seconds: Double)] = [("ms", 0.001), ("min", 60), ("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        let text = argument.lowercased()
        let unit = units.first { text.hasSuffix($0.suffix) }
        let number = text.dropLast(unit?.suffix.count ?? 0)
        // Double's own parser would also accept "nan", "inf" and "0x1p3".
        guard !number.isEmpty, number.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") }),
            let parsed = Double(number)
        else { return nil }
        let value = parsed * (unit?.seconds ?? 1)
        guard value.isFinite, value <= Self.limit else { return nil }
        self.value = value
    }
}
