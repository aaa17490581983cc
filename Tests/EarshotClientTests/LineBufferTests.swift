import NIOCore
import Testing

@testable import EarshotClient

struct LineBufferTests {
    @Test func linesAreTheSameHoweverTheBytesArrive() throws {
        let text = Array("one\n\ntwo\r\nthree".utf8)
        for size in 1...text.count {
            var buffer = LineBuffer(limit: 5)
            var lines: [String] = []
            for start in stride(from: 0, to: text.count, by: size) {
                buffer.append(ByteBuffer(bytes: text[start..<min(start + size, text.count)]))
                while let line = try buffer.next() { lines.append(String(buffer: line)) }
            }
            #expect(lines == ["one", "", "two"])
            #expect(buffer.rest().map { String(buffer: $0) } == "three")
            #expect(buffer.rest() == nil)
        }
    }

    @Test func aLineOfTheLimitIsReadAndOneByteMoreIsNot() throws {
        var buffer = LineBuffer(limit: 4)
        buffer.append(ByteBuffer(string: "1234"))
        #expect(try buffer.next() == nil)
        buffer.append(ByteBuffer(string: "\n12345"))
        #expect(try buffer.next() == ByteBuffer(string: "1234"))
        #expect(throws: LineBuffer.LineTooLong.self) { try buffer.next() }
        var whole = LineBuffer(limit: 4)
        whole.append(ByteBuffer(string: "12345\n"))
        #expect(throws: LineBuffer.LineTooLong.self) { try whole.next() }
    }
}
