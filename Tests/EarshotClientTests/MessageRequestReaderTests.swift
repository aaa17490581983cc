import EarshotCoding
import Foundation
import ModelLaws
import NIOCore
import Testing

@testable import EarshotClient

/// The quick reader of requests returns the decoder's result, or leaves the line to the decoder.
struct MessageRequestReaderTests {
    private func expectSame(_ lines: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        // The same reader for all lines: its memory of one line must not affect another.
        var reader = MessageRequestReader()
        for line in lines {
            let quick = Result { () throws(JSONProblem) in try reader.read(ByteBuffer(string: line)) }
            let slow = Result { () throws(JSONProblem) in try ControlJSON.decode(ControlAPI.MessageRequest.self, from: line.utf8) }
            #expect(quick == slow, "\(line)", sourceLocation: sourceLocation)
        }
    }

    @Test func generatedRequestsAreReadAsTheDecoderReadsThem() throws {
        var models = GeneratedModels(seed: 4)
        let lines = try (0..<500).map { _ in String(decoding: try ControlJSON.encode(models.messageRequest()), as: UTF8.self) }
        self.expectSame(lines)
    }

    @Test func oddLinesAreReadAsTheDecoderReadsThem() {
        self.expectSame([
            #"{"to":["bob"],"body":"x"}"#, #" { "to" : [ "bob" , "carol" ] , "body" : "x" } "#, #"{"to":"all","body":""}"#,
            #"{"body":"x","to":["bob"],"queue":true,"mode":"unreliable"}"#, #"{"to":["bob"],"body":"a\"b\\c\/\b\f\n\r\t"}"#,
            #"{"to":["bob"],"body":"\u0041\ud83d\ude00"}"#, #"{"to":["bob"],"body":"é😀"}"#, "{\"to\":[\"bob\"],\"body\":\"a\tb\"}",
            #"{"to":["bob"],"body":"x","body":"y"}"#, #"{"to":["bob"],"body":"x","to":["carol"]}"#, #"{"to":[],"body":"x"}"#,
            #"{"to":["bob"],"body":null}"#, #"{"to":["bob"]}"#, #"{"body":"x"}"#, #"{"to":"bob","body":"x"}"#, #"{}"#, #"[]"#, "", " ",
            #"{"to":["bob"],"body":"x"}}"#, #"{"to":["bob"],"body":"x",}"#, #"{"to":["bob"],"body":"x""#, #"{"to":["bob"],"body":"x"#,
            #"{"to":["bob"],"body":"\x"}"#, #"{"to":["bob"],"body":"x","mode":"odd"}"#, #"{"to":["bob"],"body":"x","queue":1}"#,
            #"{"to":["bob"],"body":"x","queue":truefalse}"#, #"{"to":["bob"],"body":"x","timeout_seconds":1.5}"#,
            #"{"to":["bob"],"body_base64":"AP8="}"#, #"{"to":["bob"],"body":"x","body_base64":"AP8="}"#,
            #"{"to":["bob"],"body":"x","new":{"a":[1]}}"#, #"{"to":["bob"],"body":"x","content_type":"","message_id":""}"#,
            #"{"to":["bob"],"body":"x","content_type":"text/html","message_id":"nonsense"}"#, #"{"to":[1],"body":"x"}"#,
            #"{"to":["b\"ob"],"body":"x"}"#, #"{"to":["bob"],"body":"x"} {"#, #"{"group":"team","body":"x"}"#,
            #"{"body":"x","queue":true,"group":"a\"b"}"#, #"{"group":"","body":"x"}"#, #"{"group":"te\u0061m","body":"x"}"#,
            #"{"group":"team","to":["bob"],"body":"x"}"#, #"{"to":"all","group":"team","body":"x"}"#, #"{"group":["team"],"body":"x"}"#,
            #"{"group":"a","group":"b","body":"x"}"#, #"{"group":null,"to":["bob"],"body":"x"}"#,
            #"{"to":["bob"],"body":"x","in_reply_to":"1f9ee1a4-8c5f-a6ff-30a8-a1a1b7a9a4bb"}"#,
            #"{"to":["bob"],"body":"x","in_reply_to":"1F9EE1A48C5FA6FF30A8A1A1B7A9A4BB","in_reply_to":null}"#,
            #"{"to":["bob"],"body":"x","in_reply_to":null}"#, #"{"to":["bob"],"body":"x","in_reply_to":"the last one"}"#,
            #"{"group":"team","to":null,"body":"x"}"#, #"{"group":null,"body":"x"}"#, #"{"group":"team"}"#,
        ])
    }

    /// Exactly one of the two fields names the recipients; `null` counts as absent.
    @Test func aMessageIsForPeersOrForAGroup() throws {
        var reader = MessageRequestReader()
        func to(_ members: String) throws -> ControlAPI.MessageRequest.Recipients {
            try reader.read(ByteBuffer(string: #"{\#(members),"body":"x"}"#)).to
        }
        #expect(try to(#""group":"team""#) == .group("team"))
        #expect(try to(#""group":"team","to":null"#) == .group("team"))
        #expect(try to(#""group":null,"to":["bob"]"#) == .peers(["bob"]))
        for both in [#""group":"team","to":["bob"]"#, #""to":"all","group":"team""#, #""group":null"#] {
            #expect(throws: JSONProblem.self, "\(both)") { try to(both) }
        }
    }

    @Test func brokenUTF8IsRefused() {
        var reader = MessageRequestReader()
        for bytes in [[0xC3], [0xFF], [0xED, 0xA0, 0x80], [0xC0, 0x80]] as [[UInt8]] {
            for escape in ["", #"\n"#] {
                var line = ByteBuffer(string: #"{"to":["bob"],"body":"\#(escape)"#)
                line.writeBytes(bytes)
                line.writeString(#""}"#)
                #expect(throws: JSONProblem.self) { try reader.read(line) }
            }
        }
    }

    @Test func textIsWrittenAsJSON() throws {
        var models = GeneratedModels(seed: 9)
        let all = String(String.UnicodeScalarView((0..<0x180).compactMap { Unicode.Scalar($0) }))
        for text in (0..<50).map({ _ in models.text() }) + [all, ""] {
            var buffer = ByteBuffer(string: "[")
            buffer.writeJSONString(text.utf8)
            buffer.writeString("]")
            #expect(try JSONDecoder().decode([String].self, from: Data(buffer.readableBytesView)) == [text])
            buffer.clear()
            buffer.writeString("[")
            buffer.writeJSONString(ByteBuffer(string: text).readableBytesView)
            buffer.writeString("]")
            #expect(try JSONDecoder().decode([String].self, from: Data(buffer.readableBytesView)) == [text])
        }
    }
}
