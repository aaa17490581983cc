/// A number of bytes as a person writes it: decimal digits, optionally with `K`, `M` or `G` (powers of 1024).
package enum SizeText: Sendable, Hashable {
    case bytes(UInt64)
    /// The number is at least 2^63. Offsets into files are signed in the kernel.
    case tooLarge
    case malformed

    package init(_ text: String) {
        let units: [String: UInt64] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
        // Compared as text, because the upper case of one letter may be two letters.
        let unit = text.last.flatMap { units[$0.uppercased()] }
        let digits = unit == nil ? text[...] : text.dropLast()
        // `UInt64.init` alone would accept a plus sign.
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = UInt64(digits)
        else {
            self = .malformed
            return
        }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        self = overflow || bytes > UInt64(Int64.max) ? .tooLarge : .bytes(bytes)
    }
}
