import NIOCore
import Testing

@testable import EarshotClient

struct StreamAnswerTests {
    private func view(_ text: String) -> ByteBufferView { ByteBuffer(string: text).readableBytesView }

    @Test func aHeadEndsWithItsEmptyLine() throws {
        let head = "HTTP/1.1 200 OK\r\nEarshot-Stream: x\r\nContent-Length: 12\r\n\r\n"
        for count in 0..<head.utf8.count {
            #expect(StreamAnswer.length(of: self.view(head).prefix(count)) == nil)
        }
        #expect(StreamAnswer.length(of: self.view(head + "body\r\n\r\n")) == head.utf8.count)
        let answer = try #require(StreamAnswer(ByteBuffer(string: head)))
        #expect(answer.status == 200 && answer.contentLength == 12 && answer.fields["earshot-stream"] == "x")
    }

    @Test(arguments: ["", "HTTP/1.1", "HTTP/1.1 x", "HTTP/1.1 99", "SSH-2.0 200", "HTTP/1.1 200 OK\r\nx"])
    func whatIsNoHead(_ text: String) {
        #expect(StreamAnswer(ByteBuffer(string: text + "\r\n\r\n")) == nil)
    }

    /// Decided from the first byte on: another kind of server may never end its line.
    @Test func whatSpeaksNoHTTP() {
        for text in ["", "H", "HTTP/1.", "HTTP/1.1 200 OK\r\n"] { #expect(StreamAnswer.mayBegin(self.view(text))) }
        for text in ["S", "SSH-2.0-OpenSSH\r\n", "HTTP/2", "http/1.1", "\u{0}"] { #expect(!StreamAnswer.mayBegin(self.view(text))) }
    }

    @Test func aNegativeLengthIsNone() throws {
        #expect(try #require(StreamAnswer(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"))).contentLength == nil)
    }

    @Test func aChunksLine() {
        #expect(ChunkHead.length(of: self.view("1a"), isFirst: true) == nil)
        #expect(ChunkHead.length(of: self.view("1a\r\nabc"), isFirst: true) == 4)
        #expect(ChunkHead.length(of: self.view("\r\n1a\r"), isFirst: false) == nil)
        #expect(ChunkHead.length(of: self.view("\r\n1a\r\nabc"), isFirst: false) == 6)
        #expect(ChunkHead.chunk(self.view("1a\r\n"), isFirst: true) == 26)
        #expect(ChunkHead.chunk(self.view("\r\n1A;x=y\r\n"), isFirst: false) == 26)
        #expect(ChunkHead.chunk(self.view("0\r\n"), isFirst: true) == 0)
    }

    @Test(arguments: ["\r\n", "-1\r\n", "x\r\n", "1 \r\n", "1ffffffffffffffff\r\n", "+1\r\n", "1\n"])
    func whatIsNoChunksLine(_ text: String) {
        #expect(ChunkHead.chunk(self.view(text), isFirst: true) == nil)
        #expect(ChunkHead.chunk(self.view(text), isFirst: false) == nil)
    }
}
