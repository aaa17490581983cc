import EarshotSafety

/// JSON for display: the same document, without characters that a terminal would act on.
enum JSONText {
    /// Replaces every scalar that is escaped for display with JSON's own escape. In JSON, such scalars occur only inside strings.
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
