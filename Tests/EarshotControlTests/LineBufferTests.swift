import Testing

@testable import EarshotControl

struct LineBufferTests {
    @Test func linesAreTheSameHoweverTheBytesArrive() throws {
        let text = Array("one\n\ntwo\r\nthree".utf8)
        for size in 1...text.count {
            var buffer = LineBuffer(limit: 5)
            var lines: [String] = []
            for start in stride(from: 0, to: text.count, by: size) {
                buffer.append(text[start..<min(start + size, text.count)])
                while let line = try buffer.next() { lines.append(String(decoding: line, as: UTF8.self)) }
            }
            #expect(lines == ["one", "", "two"])
        }
    }

    @Test func aLineOfTheLimitIsReadAndOneByteMoreIsNot() throws {
        var buffer = LineBuffer(limit: 4)
        buffer.append("1234".utf8)
        #expect(try buffer.next() == nil)
        buffer.append("\n12345".utf8)
        #expect(try buffer.next() == Array("1234".utf8))
        #expect(throws: LineBuffer.LineTooLong.self) { try buffer.next() }
        var whole = LineBuffer(limit: 4)
        whole.append("12345\n".utf8)
        #expect(throws: LineBuffer.LineTooLong.self) { try whole.next() }
    }
}
