package import FoundationEssentials

/// Times as text: ISO 8601 in UTC with milliseconds, such as `2026-11-21T10:00:00.250Z`.
package enum DateText {
    /// The first and the last second of years with four digits (RFC 3339 section 5.6), relative to 1970-01-01T00:00:00Z. Every reader can
    /// parse the times between them.
    private static let bounds = -62_135_596_800.0...253_402_300_799.999

    private static let output = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// The first second, relative to 1970, of the Gregorian calendar. For times before 1582-10-15 the format style uses the Julian
    /// calendar, while ISO 8601 uses the Gregorian one for all years. The Gregorian calendar repeats every 400 years, so earlier times are
    /// formatted and parsed shifted by a multiple of that.
    private static let firstGregorianSecond = -12_219_292_800.0
    private static let firstGregorianYear = 1583
    private static let shift = (years: 2000, seconds: 5 * 146_097 * 86_400.0)

    /// Returns the time as text, rounded to the nearest millisecond. Times outside the years 1 to 9999 are clamped.
    package static func string(from date: Date) -> String {
        let seconds = min(max(date.timeIntervalSince1970, Self.bounds.lowerBound), Self.bounds.upperBound)
        // The style truncates instead of rounding, and most milliseconds have no exact binary fraction.
        let rounded = (seconds.isNaN ? 0 : seconds) + 0.0005
        guard rounded < Self.firstGregorianSecond else { return Self.output.format(Date(timeIntervalSince1970: rounded)) }
        let later = Self.output.format(Date(timeIntervalSince1970: rounded + Self.shift.seconds))
        return Self.withYear(later) { $0 - Self.shift.years } ?? later
    }

    /// Returns the text with another year.
    private static func withYear(_ text: String, _ change: (Int) -> Int) -> String? {
        guard let year = Int(text.prefix(4)), year > 0 else { return nil }
        let digits = String(change(year))
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits + text.dropFirst(4)
    }

    /// Parses a time with or without a fraction of a second, in UTC or with an offset; `nil` if the text is not a time.
    package static func date(from text: String) -> Date? {
        if let year = Int(text.prefix(4)), year > 0, year < Self.firstGregorianYear {
            return Self.withYear(text) { $0 + Self.shift.years }.flatMap(Self.parse)?.addingTimeInterval(-Self.shift.seconds)
        }
        return Self.parse(text)
    }

    private static func parse(_ text: String) -> Date? {
        if let date = try? Self.output.parse(text) { return date }
        return try? Date.ISO8601FormatStyle().parse(text)
    }

    /// Encodes a time in a JSON document.
    package static func encode(_ date: Date, to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Self.string(from: date))
    }

    /// Decodes a time in a JSON document.
    package static func decode(from decoder: any Decoder) throws -> Date {
        let container = try decoder.singleValueContainer()
        guard let date = Self.date(from: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time such as 2026-11-21T10:00:00Z")
        }
        return date
    }
}
