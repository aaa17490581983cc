/// An instant of the wall clock, which users set. Displayed and stored times use it. The core never reads this clock either.
package struct WallTime: Sendable, Hashable, Comparable {
    /// The milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// Returns a later time, to the millisecond. The result saturates at the bounds.
    package static func + (time: Self, duration: Duration) -> Self {
        let (sum, overflow) = time.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
        return Self(milliseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    /// Returns the time since the other one; negative if this one is earlier.
    package static func - (left: Self, right: Self) -> Duration { .milliseconds(left.milliseconds) - .milliseconds(right.milliseconds) }

    /// The time in UTC to the second, as displayed: `2026-08-01T12:00:00Z` (ISO 8601).
    package var text: String {
        let (day, second) = Self.parts(Self.parts(self.milliseconds, 1000).whole, 86_400)
        let (year, month, dayOfMonth) = Self.date(day)
        let time = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, 2) }.joined(separator: ":")
        return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(dayOfMonth, 2))T\(time)Z"
    }

    /// Returns the quotient, rounded down, and the remainder.
    private static func parts(_ value: Int64, _ divisor: Int64) -> (whole: Int64, rest: Int64) {
        let rest = (value % divisor + divisor) % divisor
        return (value / divisor - (value % divisor < 0 ? 1 : 0), rest)
    }

    /// Returns the Gregorian date of a day after 1970-01-01. Years are counted from March, so that a leap day is the last day of its year;
    /// 400 years have 146,097 days.
    private static func date(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // Counts days from 0000-03-01.
        let (era, dayOfEra) = Self.parts(day + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = era * 400 + yearOfEra
        let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
        return month < 10 ? (year, month + 3, dayOfMonth) : (year + 1, month - 9, dayOfMonth)
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Duration {
    /// The milliseconds of the duration, rounded towards zero. Values beyond 64 bits saturate.
    package var wholeMilliseconds: Int64 { Int64(clamping: self.attoseconds / 1_000_000_000_000_000) }
}
