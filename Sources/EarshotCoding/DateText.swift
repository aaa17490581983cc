package import FoundationEssentials

/// Times as text: ISO 8601 in UTC with milliseconds, such as `2026-11-21T10:00:00.250Z`.
package enum DateText {
    /// The first and the last second of years with four digits (RFC 3339 section 5.6), after 1970-01-01T00:00:00Z: every reader can read
    /// what lies between.
    private static let bounds = -62_135_596_800.0...253_402_300_799.999

    private static let output = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// The time as text, rounded to the nearest millisecond; one beyond the years 1 to 9999 as the nearest within.
    package static func string(from date: Date) -> String {
        let seconds = min(max(date.timeIntervalSince1970, Self.bounds.lowerBound), Self.bounds.upperBound)
        // The style cuts off instead of rounding, and most milliseconds have no exact binary fraction.
        return Self.output.format(Date(timeIntervalSince1970: (seconds.isNaN ? 0 : seconds) + 0.0005))
    }

    /// Reads a time with or without a fraction of a second, in UTC or with an offset; `nil` where the text is not one.
    package static func date(from text: String) -> Date? {
        if let date = try? Self.output.parse(text) { return date }
        return try? Date.ISO8601FormatStyle().parse(text)
    }

    /// Writes a time into a JSON document.
    package static func encode(_ date: Date, to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Self.string(from: date))
    }

    /// Reads a time in a JSON document.
    package static func decode(from decoder: any Decoder) throws -> Date {
        let container = try decoder.singleValueContainer()
        guard let date = Self.date(from: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time such as 2026-11-21T10:00:00Z")
        }
        return date
    }
}
