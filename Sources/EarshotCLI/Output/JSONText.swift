import EarshotSafety

/// JSON that is shown: the same document, with nothing in it that a terminal would obey.
enum JSONText {
    /// Replaces every scalar that is escaped for display by JSON's own escape; such scalars stand in JSON only inside of strings.
    static func escaped(_ json: [UInt8]) -> [UInt8] {
        guard json.contains(where: { $0 >= 0x7F || $0 < 0x20 }) else { return json }
        var result: [UInt8] = []
        result.reserveCapacity(json.count + 64)
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if scalar.isASCII, scalar != "\u{7F}" {
                result.append(UInt8(truncatingIfNeeded: scalar.value))
            } else if String(scalar).escapedForDisplay.unicodeScalars.first == scalar {
                result += Array(String(scalar).utf8)
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    result += Array("\\u".utf8) + Array(repeating: UInt8(ascii: "0"), count: 4 - digits.utf8.count) + Array(digits.utf8)
                }
            }
        }
        return result
    }
}
