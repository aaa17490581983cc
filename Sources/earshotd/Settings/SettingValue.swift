internal import EarshotSafety

/// One setting's text with its place, and the readings that it allows.
struct SettingValue: Sendable, Hashable {
    let text: String
    let origin: SettingOrigin

    /// An error about this value: `ORIGIN: 'value' is not ...`.
    func error(_ expected: String) -> SettingsError {
        SettingsError(self.origin, "'\(INIFile.shown(self.text))' is not \(expected)")
    }

    /// `yes` or `no`, and systemd's other words for them.
    func boolean() throws(SettingsError) -> Bool {
        switch self.text.lowercased() {
        case "yes", "true", "on", "1": return true
        case "no", "false", "off", "0": return false
        default: throw self.error("yes or no")
        }
    }

    /// A whole number within limits.
    func number(_ range: ClosedRange<UInt64>) throws(SettingsError) -> UInt64 {
        guard let number = Self.digits(self.text[...]), range.contains(number) else {
            throw self.error("a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Bytes: a number with `K`, `M` or `G` (powers of 1024), or none.
    func size() throws(SettingsError) -> UInt64 {
        let units: [String: UInt64] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
        // Text, as what is one letter may be two in upper case.
        let unit = self.text.last.flatMap { units[$0.uppercased()] }
        let digits = unit == nil ? self.text[...] : self.text.dropLast()
        guard let number = Self.digits(digits[...]), number > 0 else { throw self.error("a size such as 512K, 256M or 20G") }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        // Offsets into files are signed in the kernel.
        guard !overflow, bytes <= UInt64(Int64.max) else { throw self.error("a size below 8589934592G") }
        return bytes
    }

    /// A time: numbers with `s`, `min`, `h` or `d`, several of which add up (`1h 30min`); a number alone is seconds.
    func duration(_ range: ClosedRange<Duration>) throws(SettingsError) -> Duration {
        let units: [Substring: UInt64] = ["s": 1, "min": 60, "h": 3600, "d": 86_400]
        var total: UInt64 = 0
        var overflows = false
        var rest = self.text[...]
        repeat {
            let digits = rest.prefix { $0.isASCII && $0.isWholeNumber }
            rest = rest[digits.endIndex...].drop { $0 == " " }
            let word = rest.prefix { $0.isLetter }
            rest = rest[word.endIndex...].drop { $0 == " " }
            let isAlone = word.isEmpty && rest.isEmpty && digits.endIndex == self.text.endIndex && digits.startIndex == self.text.startIndex
            guard let number = Self.digits(digits), let unit = units[word] ?? (isAlone ? 1 : nil) else {
                throw self.error("a time such as 30s, 5min, 2h, 30d or 1h 30min")
            }
            let product = number.multipliedReportingOverflow(by: unit)
            let sum = total.addingReportingOverflow(product.partialValue)
            overflows = overflows || product.overflow || sum.overflow
            total = sum.partialValue
        } while !rest.isEmpty
        guard !overflows, total <= UInt64(Int32.max), range.contains(.seconds(Int64(total))) else {
            throw self.error("a time from \(Self.shown(range.lowerBound)) to \(Self.shown(range.upperBound))")
        }
        return .seconds(Int64(total))
    }

    /// A share, such as `5%` or `2.5%`, as 0 up to, not including, 1.
    func percentage() throws(SettingsError) -> Double {
        guard self.text.hasSuffix("%"), self.text.utf8.count <= 10, let first = self.text.utf8.first,
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
            self.text.utf8.dropLast().allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") }),
            let number = Double(self.text.dropLast()), (0..<100).contains(number)
        else { throw self.error("a percentage from 0% to 99%") }
        return number / 100
    }

    /// One of a few words.
    func choice<Choice: RawRepresentable>(_ choices: [Choice]) throws(SettingsError) -> Choice where Choice.RawValue == String {
        guard let choice = choices.first(where: { $0.rawValue == self.text }) else {
            throw self.error("one of " + choices.map(\.rawValue).joined(separator: ", "))
        }
        return choice
    }

    /// ASCII digits only: `UInt64.init` would take a plus sign.
    private static func digits(_ text: Substring) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return UInt64(text)
    }

    /// Longest first. Kept outside the function that walks it: unrolled there, its compiled code was another one from build to build.
    private static let units: [(name: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("min", 60)]

    private static func shown(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        let unit = self.units.first { seconds >= $0.seconds && seconds % $0.seconds == 0 } ?? (name: "s", seconds: 1)
        return "\(seconds / unit.seconds)\(unit.name)"
    }
}
