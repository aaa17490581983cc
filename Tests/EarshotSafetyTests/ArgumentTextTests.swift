import Testing

@testable import EarshotSafety

@Suite struct ArgumentTextTests {
    @Test func textIsLeftAlone() {
        #expect(ArgumentText.fault(in: []) == nil)
        #expect(ArgumentText.fault(in: ["send", "", "b\u{F6}b", "\u{1F600}\u{202E}", "a\u{FFFD}"].map { Array($0.utf8) }) == nil)
        #expect(ArgumentText.ofProcess.count == Int(CommandLine.argc) - 1)
        #expect(ArgumentText.fault() == nil)
    }

    @Test(arguments: [[0x61, 0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func whatIsNoTextIsNamed(_ bytes: [UInt8]) {
        #expect(ArgumentText.fault(in: [Array("send".utf8), bytes])?.hasPrefix("argument 2 is not valid UTF-8: ") == true)
    }
}
