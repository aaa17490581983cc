/// RFC 4648 section 6 base32, without padding: the text form of peer ids.
package enum Base32 {
    private static let alphabet: [UInt8] = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// Returns the upper-case base32 of `bytes`, without `=`.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var accumulator: UInt16 = 0
        var bits = 0
        for byte in bytes {
            accumulator = (accumulator << 8) | UInt16(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int((accumulator >> bits) & 0x1F)])
            }
            accumulator &= 0xFF
        }
        if bits > 0 {
            text.append(alphabet[Int((accumulator << (5 - bits)) & 0x1F)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of `text`, in either case; `nil` for a foreign character, an impossible length, or nonzero padding bits (so that
    /// each value has one spelling except for case).
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var accumulator: UInt16 = 0
        var bits = 0
        for character in text.utf8 {
            let value: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): value = character - UInt8(ascii: "2") + 26
            default: return nil
            }
            accumulator = (accumulator << 5) | UInt16(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: accumulator >> bits))
                accumulator &= (1 << bits) - 1
            }
        }
        return bits < 5 && accumulator == 0 ? bytes : nil
    }
}
