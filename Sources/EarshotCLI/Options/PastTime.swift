import ArgumentParser
import FoundationEssentials
import Glibc

/// A time in the past as a user writes it: a local date, such as `2026-11-21` or `2026-11-21 10:00:00`, or the time since then, such as `2h`.
struct PastTime: Hashable, Sendable, ExpressibleByArgument {
    private enum Form: Hashable {
        case date(Date)
        case ago(Seconds)
    }

    private let form: Form

    init?(argument: String) {
        if let time = Seconds(argument: argument) {
            self.form = .ago(time)
        } else if let date = Self.local(argument) {
            self.form = .date(date)
        } else {
            return nil
        }
    }

    /// Returns the time, seen from `now`.
    func date(at now: Date) -> Date {
        switch self.form {
        case .date(let date): date
        case .ago(let time): now - time.value
        }
    }

    /// Reads a local date with or without a time, as ``Words/time(_:)`` writes it.
    private static func local(_ text: String) -> Date? {
        guard let found = text.wholeMatch(of: /([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?/) else {
            return nil
        }
        func number(_ digits: Substring?) -> CInt { digits.flatMap { CInt($0) } ?? 0 }
        var parts = tm()
        parts.tm_year = number(found.1) - 1900
        parts.tm_mon = number(found.2) - 1
        parts.tm_mday = number(found.3)
        parts.tm_hour = number(found.4)
        parts.tm_min = number(found.5)
        parts.tm_sec = number(found.6)
        // Whether it is summer time is for the system to say.
        parts.tm_isdst = -1
        let given = parts
        let seconds = mktime(&parts)
        // A date or time that does not exist would become another one.
        guard parts.tm_mon == given.tm_mon, parts.tm_mday == given.tm_mday, parts.tm_min == given.tm_min, given.tm_hour < 24 else {
            return nil
        }
        return Date(timeIntervalSince1970: Double(seconds))
    }
}
