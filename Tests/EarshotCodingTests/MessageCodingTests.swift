import EarshotCoding
import Foundation
import Testing

/// Values of a program's own types, encoded and decoded again.
@Suite struct MessageCodingTests {
    enum Unit: String, Codable { case celsius, kelvin }

    enum Command: Codable, Hashable {
        case stop
        case move(to: Double, speed: Int?)
    }

    struct Wrapper: Codable, Hashable {
        let text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws { self.text = try decoder.singleValueContainer().decode(String.self) }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self.text)
        }
    }

    struct Inner: Codable, Hashable {
        var maximumSpeed: Int?
        var unit: Unit
    }

    struct Everything: Codable, Hashable {
        var someText: String
        var nothing: String?
        var numbers: [Double]
        var inner: [String: Inner]
        var commands: [Command]
        var wrapped: Wrapper
        var when: Date
        var bytes: Data
    }

    static let everything = Everything(
        someText: "a \"b\" / \u{0} \u{1F600}", nothing: nil, numbers: [0, -0.5, 1e300, Double(Int64.max)],
        inner: ["x y": Inner(maximumSpeed: nil, unit: .kelvin), "plain": Inner(maximumSpeed: 3, unit: .celsius)],
        commands: [.stop, .move(to: 1.5, speed: nil), .move(to: 0, speed: .max)], wrapped: Wrapper("w"),
        when: Date(timeIntervalSince1970: 1_785_585_600.25), bytes: Data([0, 255, 10]))

    static let codings = MessageCoding.Keys.allCases.flatMap { keys in
        MessageCoding.Dates.allCases.flatMap { dates in
            [true, false].map { MessageCoding(keys: keys, dates: dates, sortsKeys: $0) }
        }
    }

    @Test(arguments: codings) func everythingComesBack(coding: MessageCoding) throws {
        let json = try coding.encode(Self.everything)
        #expect(try coding.decode(Everything.self, from: json) == Self.everything)
        #expect(!json.contains(UInt8(ascii: "\n")))
        if coding.sortsKeys { #expect(try coding.encode(coding.decode(Everything.self, from: json)) == json) }
    }

    @Test func keysAndDatesLookAsAsked() throws {
        struct Value: Codable {
            var maximumSpeed = 1
            var when = Date(timeIntervalSince1970: 1.5)
        }
        func text(_ coding: MessageCoding) throws -> String { String(decoding: try coding.encode(Value()), as: UTF8.self) }
        #expect(try text(.standard) == #"{"maximumSpeed":1,"when":"1970-01-01T00:00:01.500Z"}"#)
        #expect(try text(MessageCoding(keys: .snakeCase, dates: .secondsSince1970)) == #"{"maximum_speed":1,"when":1.5}"#)
        #expect(try text(MessageCoding(dates: .millisecondsSince1970)) == #"{"maximumSpeed":1,"when":1500}"#)
    }

    @Test func unknownFieldsAreIgnored() throws {
        let json = #"{"unit":"celsius","later":{"deep":[1,2]},"maximumSpeed":7}"#
        #expect(try MessageCoding.standard.decode(Inner.self, from: json.utf8) == Inner(maximumSpeed: 7, unit: .celsius))
    }

    /// If a document does not hold a value of the type, the error names the field.
    @Test(arguments: [
        (#"{"maximumSpeed":7}"#, "`unit` is missing"),
        (#"{"unit":"celsius","maximumSpeed":"7"}"#, "`maximumSpeed` is not a number"),
        (#"{"unit":null}"#, "`unit` is null and not a string"),
        ("", "not a JSON document"),
        ("{", "not a JSON document"),
        ("[1]", "`the document` is not an object"),
    ]) func problemsNameTheField(json: String, words: String) {
        let problem = #expect(throws: JSONProblem.self) { try MessageCoding.standard.decode(Inner.self, from: json.utf8) }
        #expect(problem?.description == words)
    }

    @Test func otherEncodingsAreRefused() {
        let json = Array(#"{"unit":"celsius"}"#.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] })
        for bytes in [json, [0xEF, 0xBB, 0xBF] + Array(#""\#u{FF}""#.utf8), [UInt8(ascii: "\""), 0xFF, UInt8(ascii: "\"")]] {
            #expect(throws: JSONProblem.self) { try MessageCoding.standard.decode(Inner.self, from: bytes) }
        }
    }

    /// A peer may nest as deep as a message is long: that ends in an error and not the stack.
    @Test func deepNestingIsRefused() {
        let deep = String(repeating: "[", count: 1 << 20)
        #expect(throws: JSONProblem.self) { try MessageCoding.standard.decode([Int].self, from: deep.utf8) }
        let objects = String(repeating: #"{"a":"#, count: 1 << 17)
        #expect(throws: JSONProblem.self) { try MessageCoding.standard.decode([String: Int].self, from: objects.utf8) }
    }

    @Test func whatIsNoNumberCannotBeSent() {
        #expect(throws: JSONProblem.self) { try MessageCoding.standard.encode([Double.infinity]) }
    }
}
