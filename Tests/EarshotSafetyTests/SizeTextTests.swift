import EarshotSafety
import Testing

@Suite struct SizeTextTests {
    @Test(
        arguments: [
            ("0", .bytes(0)), ("1", .bytes(1)), ("1k", .bytes(1024)), ("512K", .bytes(512 << 10)), ("256M", .bytes(256 << 20)),
            ("20G", .bytes(20 << 30)), ("9223372036854775807", .bytes(UInt64(Int64.max))), ("8589934591G", .bytes(8_589_934_591 << 30)),
            ("9223372036854775808", .tooLarge), ("8589934592G", .tooLarge), ("18446744073709551615G", .tooLarge),
            ("", .malformed), ("K", .malformed), ("1T", .malformed), ("1KB", .malformed), ("1 K", .malformed), ("+1", .malformed),
            ("-1", .malformed), ("1.5M", .malformed), ("20ß", .malformed), ("١K", .malformed), ("18446744073709551616", .malformed),
        ] as [(String, SizeText)])
    func sizes(_ text: String, _ size: SizeText) { #expect(SizeText(text) == size) }
}
