internal import Earshot
internal import EarshotSafety
internal import EarshotWire

/// Parses the text of a setting.
struct SettingParser<Value>: Sendable {
    /// The words that are accepted; empty if other values are.
    var choices: [String] = []
    /// Whether the value is never shown.
    var isSecret = false
    let parse: @Sendable (SettingValue) throws(SettingsError) -> Value

    /// `yes` or `no`, or one of systemd's synonyms.
    static func boolean() -> Self where Value == Bool {
        Self { value throws(SettingsError) in
            switch value.text.lowercased() {
            case "yes", "true", "on", "1": return true
            case "no", "false", "off", "0": return false
            default: throw value.error("yes or no")
            }
        }
    }

    /// A whole number within limits.
    static func number(_ range: ClosedRange<Value>) -> Self where Value: FixedWidthInteger & Sendable {
        Self { value throws(SettingsError) in
            guard let number = self.digits(value.text[...]).flatMap(Value.init(exactly:)), range.contains(number) else {
                throw value.error("a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }

    /// A size in bytes: a number, optionally with `K`, `M` or `G` (powers of 1024).
    static func size() -> Self where Value == UInt64 {
        Self { value throws(SettingsError) in
            switch SizeText(value.text) {
            case .bytes(0), .malformed: throw value.error("a size such as 512K, 256M or 20G")
            case .bytes(let bytes): return bytes
            case .tooLarge: throw value.error("a size below 8589934592G")
            }
        }
    }

    /// A rate of transfers in bytes per second, written like a size; 0 is no limit.
    static func rate() -> Self where Value == UInt64? {
        Self { value throws(SettingsError) in
            switch SizeText(value.text) {
            case .bytes(0): return nil
            case .bytes(let rate) where WireLimits.transferRate.contains(rate): return rate
            case .bytes, .tooLarge, .malformed:
                throw value.error("a rate such as 512K or 10M, in bytes per second from 1K to 1024G, or 0 for no limit")
            }
        }
    }

    /// A time: numbers with `s`, `min`, `h` or `d`, which are added up (`1h 30min`), or a number of seconds.
    static func duration(_ range: ClosedRange<Duration>) -> Self where Value == Duration {
        Self { value throws(SettingsError) in
            let units: [Substring: UInt64] = ["s": 1, "min": 60, "h": 3600, "d": 86_400]
            var total: UInt64 = 0
            var overflows = false
            var rest = value.text[...]
            repeat {
                let digits = rest.prefix { $0.isASCII && $0.isWholeNumber }
                rest = rest[digits.endIndex...].drop { $0 == " " }
                let word = rest.prefix { $0.isLetter }
                rest = rest[word.endIndex...].drop { $0 == " " }
                let isAlone = word.isEmpty && rest.isEmpty && digits == value.text[...]
                guard let number = self.digits(digits), let unit = units[word] ?? (isAlone ? 1 : nil) else {
                    throw value.error("a time such as 30s, 5min, 2h, 30d or 1h 30min")
                }
                let product = number.multipliedReportingOverflow(by: unit)
                let sum = total.addingReportingOverflow(product.partialValue)
                overflows = overflows || product.overflow || sum.overflow
                total = sum.partialValue
            } while !rest.isEmpty
            guard !overflows, total <= UInt64(Int32.max), range.contains(.seconds(Int64(total))) else {
                throw value.error("a time from \(self.shown(range.lowerBound)) to \(self.shown(range.upperBound))")
            }
            return .seconds(Int64(total))
        }
    }

    /// A percentage, such as `5%` or `2.5%`, as a number from 0 up to, but not including, 1.
    static func percentage() -> Self where Value == Double {
        Self { value throws(SettingsError) in
            let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
            let text = value.text.utf8
            guard value.text.hasSuffix("%"), text.count <= 10, let first = text.first, digits.contains(first),
                text.dropLast().allSatisfy({ digits.contains($0) || $0 == UInt8(ascii: ".") }),
                let number = Double(value.text.dropLast()), (0..<100).contains(number)
            else { throw value.error("a percentage from 0% to 99%") }
            return number / 100
        }
    }

    /// One of a few words.
    static func choice(_ choices: [Value]) -> Self where Value: RawRepresentable & Sendable, Value.RawValue == String {
        Self(choices: choices.map(\.rawValue)) { value throws(SettingsError) in
            guard let choice = choices.first(where: { $0.rawValue == value.text }) else {
                throw value.error("one of " + choices.map(\.rawValue).joined(separator: ", "))
            }
            return choice
        }
    }

    /// An absolute path. A relative path would depend on the directory in which the daemon was started.
    static func path() -> Self where Value == String {
        Self { value throws(SettingsError) in
            guard value.text.hasPrefix("/") else { throw value.error("an absolute path") }
            guard !value.text.utf8.contains(0) else { throw value.error("a path") }
            return value.text
        }
    }

    static func text() -> Self where Value == String { Self { $0.text } }

    /// A PIN. Its text is secret, so that the error does not quote it.
    static func pin(_ length: ClosedRange<Int>) -> Self where Value == String {
        Self(isSecret: true) { value throws(SettingsError) in
            guard length.contains(value.text.count) else {
                throw SettingsError(value.origin, "a PIN has \(length.lowerBound) to \(length.upperBound) characters")
            }
            return value.text
        }
    }

    /// The address of a peer.
    static func peer() -> Self where Value == ConfiguredPeer {
        Self { value throws(SettingsError) in
            do throws(EarshotError) {
                return try ConfiguredPeer(value.text)
            } catch {
                throw SettingsError(value.origin, error.message)
            }
        }
    }

    /// A label, such as a display name.
    static func label(_ make: @escaping @Sendable (String) throws(LabelError) -> Value) -> Self {
        Self { value throws(SettingsError) in
            do throws(LabelError) {
                return try make(value.text)
            } catch {
                throw SettingsError(value.origin, "'\(INIFile.shown(value.text))' is not valid: \(error.description)")
            }
        }
    }

    /// Values separated by commas; empty ones are skipped.
    static func list<Element>(of parser: SettingParser<Element>) -> Self where Value == [Element] {
        Self { value throws(SettingsError) in
            let parts = value.text.split(separator: ",").map { String($0).trimmingBlanks }.filter { !$0.isEmpty }
            return try parts.map { part throws(SettingsError) in try parser.parse(SettingValue(text: part, origin: value.origin)) }
        }
    }

    /// A value that can be absent.
    static func optional<Wrapped>(_ parser: SettingParser<Wrapped>) -> Self where Value == Wrapped? {
        Self(isSecret: parser.isSecret, parse: parser.parse)
    }

    /// Parses ASCII digits only: `UInt64.init` would accept a plus sign.
    private static func digits(_ text: Substring) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return UInt64(text)
    }

    private static func shown(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        let unit = durationUnits.first { seconds >= $0.seconds && seconds % $0.seconds == 0 } ?? (name: "s", seconds: 1)
        return "\(seconds / unit.seconds)\(unit.name)"
    }
}

/// Longest first. A global constant, because the compiler unrolled a local array in a different way in each build.
private let durationUnits: [(name: String, seconds: Int64)] = [("d", 86_400), ("h", 3600), ("min", 60)]
