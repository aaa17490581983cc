import APIDocument
import EarshotCoding
import Foundation
import ModelLaws
import Testing

@testable import EarshotClient

/// A client skips what it cannot read: a single fault, anywhere in an answer or an event, affects only the value that contains it.
@Suite struct UnreadableAnswerTests {
    /// Values that can occur in place of others.
    private static let junk: [JSONValue] = [
        .null, .string(""), .string("-4712-01-01T12:00:00.000Z"), .number(-1), .number(1e60), .number(0.5), .bool(true), .array([]),
        .object([:]),
    ]

    /// A list of the API whose elements a client reads one by one.
    struct List: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let check: @Sendable (inout GeneratedModels) throws -> Void

        init<Value: Codable & Hashable & Sendable, Element: Hashable & Sendable>(
            _ key: String, _ elements: @escaping @Sendable (Value) -> [Element],
            _ make: @escaping @Sendable (inout GeneratedModels) -> Value
        ) {
            self.testDescription = key
            self.check = { generated in
                let value = make(&generated)
                let json = try JSONValue(parsing: try ControlJSON.encode(value))
                let whole = elements(value)
                try #require(whole.count == 3)
                let list = try #require(json[key]?.elements)
                // The middle element as a whole, each of its fields, and everything in them.
                for (steps, place) in list[1].everyPlace {
                    for junk in UnreadableAnswerTests.junk where junk != place {
                        let broken = json.replacing([.key(key), .index(1)] + steps, with: junk)
                        let (read, unreadable) = try ControlJSON.read(Value.self, from: try broken.bytes())
                        let left = elements(read)
                        #expect(left.first == whole.first && left.last == whole.last, "\(steps): \(junk)")
                        #expect(left.count == 3 || left.count == 2 && unreadable.count == 1, "\(steps): \(junk): \(unreadable)")
                        // The strict decoder, which senders and tests use, reports the fault.
                        if left.count == 2 {
                            #expect(throws: JSONProblem.self) { try ControlJSON.decode(Value.self, from: try broken.bytes()) }
                        }
                    }
                }
            }
        }
    }

    static let lists: [List] = [
        List("peers", { (list: ControlAPI.PeerList) in list.peers }) { .init(peers: $0.list(3...3) { $0.peer() }) },
        List("invitations", { (list: ControlAPI.InvitationList) in list.invitations }) {
            .init(invitations: $0.list(3...3) { $0.invitation() })
        },
        List("sessions", { (list: ControlAPI.SessionList) in list.sessions }) { .init(sessions: $0.list(3...3) { $0.session() }) },
        List("messages", { (list: ControlAPI.MessageList) in list.messages }) { .init(messages: $0.list(3...3) { $0.message() }) },
        List("resources", { (list: ControlAPI.ResourceList) in list.resources }) { .init(resources: $0.list(3...3) { $0.resource() }) },
        List("streams", { (list: ControlAPI.StreamList) in list.streams }) { .init(streams: $0.list(3...3) { $0.stream() }) },
    ]

    @Test(arguments: lists) func oneElementCostsNoOther(_ list: List) throws {
        var generated = GeneratedModels(seed: 7)
        for _ in 0..<4 { try list.check(&generated) }
    }

    /// The subject of an event may be unknown, but its type and its position are not.
    @Test func oneFieldCostsNoEvent() throws {
        var generated = GeneratedModels(seed: 8)
        for _ in 0..<40 {
            let event = generated.event()
            let json = try JSONValue(parsing: try ControlJSON.encode(event))
            for (steps, place) in json.everyPlace where steps.count > 1 || steps == [.key("time")] {
                for junk in Self.junk where junk != place {
                    let broken = try json.replacing(steps, with: junk).bytes()
                    let isList = steps.first == .key("changed") || steps.first == .key("needs_restart")
                    if isList { continue }
                    let (read, _) = try ControlJSON.read(ControlAPI.Event.self, from: broken)
                    #expect(read.seq == event.seq && read.epoch == event.epoch && read.type == event.type, "\(steps): \(junk)")
                }
            }
        }
    }

    /// An invalid time is unknown, but its text remains in the JSON.
    @Test(arguments: ["-4712-01-01T12:00:00.000Z", "", "now", "33658-09-27", "\u{202E}"]) func aTimeThatIsNoneIsUnknown(text: String) throws
    {
        let message = ControlJSONTests.message(Array("x".utf8), "text/plain")
        let json = try JSONValue(parsing: try ControlJSON.encode(message)).replacing([.key("sent_at")], with: .string(text))
        let (read, unreadable) = try ControlJSON.read(ControlAPI.Message.self, from: try json.bytes())
        #expect(read.sentAt == nil && read.body == message.body && unreadable == [])
        #expect(try JSONValue(parsing: try ControlJSON.encode(read)) == json)
        #expect(throws: JSONProblem.self) { try ControlJSON.decode(ControlAPI.Message.self, from: try json.bytes()) }
    }

    @Test func theWordsSayWhichFieldAndAreFew() throws {
        let good = try JSONValue(parsing: try ControlJSON.encode(ControlJSONTests.session))
        let broken = good.replacing([.key("members")], with: .string("x"))
        let list = JSONValue.object(["sessions": .array([good, broken] + Array(repeating: .null, count: 20))])
        let (read, unreadable) = try ControlJSON.read(ControlAPI.SessionList.self, from: try list.bytes())
        #expect(read.sessions == [ControlJSONTests.session])
        #expect(unreadable.first == "`sessions[1].members` is not a list")
        #expect(unreadable.count == UnreadableParts.limit + 1 && unreadable.last == "\(21 - UnreadableParts.limit) more")
    }

    /// Every time is written in a form that every reader can parse.
    @Test(arguments: [
        -Double.infinity, -1e300, -62_135_596_800.001, -62_135_596_800, 0, 253_402_300_799.9996, 253_402_300_800, 1e300, .infinity, .nan,
    ])
    func everyTimeIsWrittenReadably(seconds: Double) throws {
        let text = DateText.string(from: Date(timeIntervalSince1970: seconds))
        #expect(text.utf8.count == "2026-11-21T10:00:00.000Z".utf8.count, "\(text)")
        let read = try #require(DateText.date(from: text))
        #expect(DateText.string(from: read) == text)
    }
}

extension JSONValue {
    /// This value and all values in it, each with its path.
    var everyPlace: [(steps: [Step], value: JSONValue)] {
        let own: [(steps: [Step], value: JSONValue)] = [([], self)]
        let inner: [(Step, JSONValue)] =
            self.members.sorted { $0.key < $1.key }.map { (.key($0.key), $0.value) } + self.elements.enumerated().map { (.index($0), $1) }
        return own + inner.flatMap { step, value in value.everyPlace.map { ([step] + $0.steps, $0.value) } }
    }
}
