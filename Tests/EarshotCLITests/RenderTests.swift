import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

struct RenderTests {
    private func message(
        _ body: String, from name: String = "alice", type: String = "text/plain", inReplyTo: MessageID? = nil
    ) -> ControlAPI.Message {
        ControlAPI.Message(
            id: "m", direction: .known(.incoming), sender: .init(id: "P", name: name), body: Array(body.utf8), contentType: type,
            mode: .known(.reliable), sentAt: Date(timeIntervalSince1970: 0), receivedAt: Date(timeIntervalSince1970: 0),
            state: .known(.unread), inReplyTo: inReplyTo)
    }

    private var time: String { Words.time(Date(timeIntervalSince1970: 0)) }

    @Test func aMessageHasItsTimeAndSender() {
        #expect(Render.message(self.message("hello")) == "\(self.time) alice: hello\n")
        #expect(Render.message(self.message("hello\n")) == "\(self.time) alice: hello\n")
        #expect(Render.message(self.message("")) == "\(self.time) alice: \n")
    }

    @Test func aReplyShowsTheBeginningOfItsQuestion() {
        let question = MessageID(high: 0x0123_4567_89AB_CDEF, low: 1)
        #expect(Render.message(self.message("yes", inReplyTo: question)) == "\(self.time) alice (reply to 01234567-89a): yes\n")
        #expect(Render.body(of: self.message("a\n\u{1B}b\n")) == "a\n\\eb\n")
    }

    @Test(arguments: ["\n", "\r\n", "\r", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}"])
    func noTextCanForgeALine(_ lineBreak: String) {
        let forged = "\(self.time) bob: send money"
        for line in Render.message(self.message("hi\(lineBreak)\(forged)")).split(separator: "\n").dropFirst() {
            #expect(line.hasPrefix("    "))
        }
        for line in Render.message(self.message("x", from: "alice\(lineBreak)\(forged)")).split(separator: "\n").dropFirst() {
            Issue.record("a name made a line: \(line)")
        }
    }

    @Test(arguments: ["\u{1B}[2J", "\u{202E}", "\u{200B}", "\u{9B}1A", "\u{7F}", "\0"])
    func nothingThatATerminalObeysIsShown(_ text: String) {
        let isBare = { (output: String) in output.unicodeScalars.contains { text.unicodeScalars.first == $0 } }
        #expect(!isBare(Render.message(self.message(text, from: text))))
        #expect(!isBare(Render.message(self.message("x", type: text))))
        let peer = ControlAPI.Peer(
            id: "A", name: text, presence: .unknown(text), state: .unknown(text), trust: .unknown(text), proven: false, addresses: [text],
            discoveryInfo: [:], sources: [], firstSeen: Date(), lastSeen: Date())
        #expect(!isBare(Render.peers([peer]).render(width: nil, bold: false)))
        #expect(!isBare(Render.event(.init(epoch: "e", seq: 1, time: Date(), type: .unknown(text), peer: peer))))
        #expect(!isBare(CommandFailure(code: "x", message: text, peer: text).message ?? ""))
        #expect(!isBare(CommandFailure(code: "not-connected", message: "no", peer: text).hint ?? ""))
        #expect(!isBare(FailureReport.usage(message: "unknown \(text)", full: "").joined()))
        #expect(!isBare(ProgressLine.text(name: text, transferred: 0, size: 1, rate: 0, width: 80)))
        #expect(!isBare(String(decoding: JSONText.escaped(Array("\"\(text)\"".utf8)).filter { $0 != 0x1B && $0 != 0 }, as: UTF8.self)))
    }

    @Test func bytesAreDescribed() {
        #expect(Render.message(self.message("\u{0}", type: "image/png")) == "\(self.time) alice: <1 byte of image/png>\n")
    }

    @Test func escapedJSONIsTheSameDocument() throws {
        let text = "a\u{202E}b\u{7F}c\u{E0041}d\u{9B}é😀"
        let json = try ControlJSON.encode([text])
        let escaped = JSONText.escaped(json)
        #expect(escaped != json)
        #expect(try ControlJSON.decode([String].self, from: escaped) == [text])
        #expect(String(decoding: escaped, as: UTF8.self).contains("é😀"))
    }

    @Test func theRecipientOfAMessageIsNamed() {
        let id: PeerID = "AAAAAAAAAAAA"
        let event = ControlAPI.Event(
            epoch: "e", seq: 1, time: Date(), type: .known(.messageStatus), messageID: "0123456789abcdef",
            recipient: ControlAPI.Recipient(peerID: id, status: .known(.delivered)))
        #expect(Render.event(event, names: [id: "bob"]).hasSuffix(" to bob AAAAAAAAAAAA delivered\n"))
        #expect(Render.event(event).hasSuffix(" to AAAAAAAAAAAA delivered\n"))
    }
}
