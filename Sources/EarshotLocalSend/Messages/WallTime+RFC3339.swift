import EarshotCore

extension WallTime {
    /// Creates a time from a timestamp with its zone (RFC 3339 section 5.6), to the millisecond; `nil` for any other text.
    init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        // At most nanoseconds and a numeric zone: `2026-08-01T10:20:30.123456789+02:00`.
        guard bytes.count >= 20, bytes.count <= 40 else { return nil }
        let marks = [(4, "-"), (7, "-"), (13, ":"), (16, ":")].allSatisfy { [bytes[$0.0]] == Array($0.1.utf8) }
        guard marks, [UInt8(ascii: "T"), UInt8(ascii: "t"), UInt8(ascii: " ")].contains(bytes[10]),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]), let day = Self.number(bytes[8..<10]),
            let hour = Self.number(bytes[11..<13]), let minute = Self.number(bytes[14..<16]), let second = Self.number(bytes[17..<19]),
            year >= 1, (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var rest = bytes[19...]
        var milliseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard !digits.isEmpty, let fraction = Self.number((Array(digits) + Array("00".utf8)).prefix(3)) else { return nil }
            milliseconds = fraction
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offset(rest) else { return nil }
        let minutes = (Self.days(year, month, day) * 24 + hour) * 60 + minute - offset
        self.init(milliseconds: (minutes * 60 + second) * 1000 + milliseconds)
    }

    /// Returns the minutes east of UTC; `nil` if this is no zone.
    private static func offset(_ zone: ArraySlice<UInt8>) -> Int64? {
        if zone.count == 1, zone.first == UInt8(ascii: "Z") || zone.first == UInt8(ascii: "z") { return 0 }
        let bytes = Array(zone)
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let hours = self.number(bytes[1..<3]),
            let minutes = self.number(bytes[4..<6]),
            hours < 24, minutes < 60
        else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "+"): return hours * 60 + minutes
        case UInt8(ascii: "-"): return -(hours * 60 + minutes)
        default: return nil
        }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// Returns the days from 1970-01-01 to a date of the Gregorian calendar, with years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let start = month <= 2 ? year - 1 : year
        let era = start / 400
        let yearOfEra = start - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
