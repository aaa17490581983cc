package import FoundationEssentials

/// Times as the API writes them: ISO 8601 in UTC with milliseconds, such as `2026-11-21T10:00:00.250Z`.
package enum ControlDate {
    private static let output = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// The time as text, rounded to the nearest millisecond.
    package static func string(from date: Date) -> String {
        // The style cuts off instead of rounding, and most milliseconds have no exact binary fraction.
        Self.output.format(Date(timeIntervalSince1970: date.timeIntervalSince1970 + 0.0005))
    }

    /// Reads a time with or without a fraction of a second, in UTC or with an offset; `nil` where the text is not one.
    package static func date(from text: String) -> Date? {
        if let date = try? Self.output.parse(text) { return date }
        return try? Date.ISO8601FormatStyle().parse(text)
    }
}
