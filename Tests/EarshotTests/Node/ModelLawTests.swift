import APIDocument
import EarshotCoding
import EarshotWire
import Foundation
import ModelLaws
import Testing

@testable import Earshot
@testable import EarshotCore

/// The laws of the library's values, checked on random values of every model, because programs keep them in sets and archives.
@Suite struct ModelLawTests {
    /// A model, and the check of its values.
    struct Model: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Returns the number of replacements of JSON values by invalid ones.
        let check: @Sendable (inout GeneratedModels, MessageCoding) throws -> Int

        init<Value: Codable & Hashable & Sendable>(
            _ type: Value.Type, compared: @escaping @Sendable (JSONValue) -> JSONValue = { $0 },
            _ make: @escaping @Sendable (inout GeneratedModels) throws -> Value
        ) {
            self.testDescription = "\(type)"
            self.check = { generated, coding in
                let laws = ValueLaws<Value>(
                    encode: { try coding.encode($0) }, decode: { try coding.decode(Value.self, from: $0) }, compared: compared)
                let (value, other, third) = (try make(&generated), try make(&generated), try make(&generated))
                #expect(try laws.roundTrip(value) == [])
                #expect(try laws.equivalence([value, other, third]) == [])
                #expect(try laws.fields(value, other) == [])
                #expect(try laws.unknownFields(value, own: ["discoveryInfo", "discovery_info"]) == [])
                var refused = 0
                #expect(try laws.replacements(value, refused: &refused) == [])
                return refused
            }
        }
    }

    static let models: [Model] = [
        Model(Peer.self) { $0.peer() }, Model(Peer.Failure.self) { $0.failure() },
        Model(Invitation.self) { $0.invitation() }, Model(InvitedGroup.self) { $0.invitedGroup() },
        Model(Session.self) { $0.session() }, Model(Session.Member.self) { $0.sessionMember() },
        Model(Group.self) { $0.group() }, Model(Group.Member.self) { $0.groupMember() }, Model(GroupLabel.self) { $0.label() },
        Model(Message.self) { $0.message() }, Model(Message.Recipient.self) { $0.recipient() },
        Model(SentMessage.self) { SentMessage(id: $0.id(), recipients: $0.list { $0.recipient() }) },
        Model(MessagePage.self) {
            MessagePage(messages: $0.list { $0.message() }, next: $0.optional { Int64(bitPattern: $0.number()) })
        },
        Model(Resource.self) { $0.resource() }, Model(ByteStream.self) { $0.stream() },
        Model(OutboxMessage.self) { $0.outboxMessage() }, Model(PeerPing.self) { $0.ping() }, Model(PeerPing.Step.self) { $0.pingStep() },
        Model(Verification.self) { $0.verification() }, Model(PolicyDecision.self) { $0.decision() },
        Model(PeerPolicy.self) { $0.policy() }, Model(DiscoveryStatus.self) { $0.discovery() },
        Model(NodeStatus.self) { try $0.status() }, Model(NodeStatus.Counts.self) { $0.counts() },
        Model(NodeEvent.self) { $0.event() },
        Model(EarshotError.Candidate.self) { EarshotError.Candidate(id: $0.peerID(), name: $0.text()) },
        Model([PeerID].self) { $0.list { $0.peerID() } }, Model([MessageID].self) { $0.list { $0.id() } },
        Model([DisplayName].self) { [try $0.displayName()] }, Model([ServiceType].self) { [try $0.serviceType()] },
        Model([StreamName].self) { [try $0.streamName()] }, Model([ConfiguredPeer].self) { $0.list { $0.configuredPeer() } },
        Model(MessageCoding.self) {
            MessageCoding(keys: $0.word(MessageCoding.Keys.self), dates: $0.word(MessageCoding.Dates.self), sortsKeys: $0.flag())
        },
    ]

    private static let codings = [
        MessageCoding.standard, MessageCoding(keys: .snakeCase, dates: .iso8601), MessageCoding(dates: .secondsSince1970),
    ]

    @Test(arguments: models) func theLawsHold(_ model: Model) throws {
        for coding in Self.codings {
            var generated = GeneratedModels(seed: 1)
            var refused = 0
            for _ in 0..<(model.testDescription == "NodeEvent" ? 40 : 8) { refused += try model.check(&generated, coding) }
            #expect(refused > 0)
        }
    }

    /// A value that breaks every law: it compares one field, hashes another, and does not encode a third.
    private struct Lawless: Codable, Hashable {
        var name: String
        var count: Int
        var forgotten = 0

        private enum CodingKeys: String, CodingKey {
            case name, count
        }

        static func == (lhs: Self, rhs: Self) -> Bool { lhs.name == rhs.name }
        func hash(into hasher: inout Hasher) { hasher.combine(self.count) }
    }

    @Test func theLawsFindWhatBreaksThem() throws {
        let laws = ValueLaws<Lawless>(
            encode: { try MessageCoding.standard.encode($0) }, decode: { try MessageCoding.standard.decode(Lawless.self, from: $0) })
        let (one, other) = (Lawless(name: "a", count: 1, forgotten: 1), Lawless(name: "a", count: 2))
        #expect(try laws.roundTrip(one) == ["it.forgotten is not what was written"])
        #expect(try laws.fields(one, other) == ["`count` does not count"])
        let faults = try laws.equivalence([one, other])
        #expect(faults.contains { $0.hasPrefix("equal: ") } && faults.contains { $0.hasPrefix("hashes differ: ") })
    }

    /// Errors are compared by everything except the underlying error, which is for the log.
    @Test func errorsAreValues() {
        let candidates = [EarshotError.Candidate(id: peerID(1), name: "bob")]
        let error = EarshotError(.ambiguousPeer, "two", underlying: CancellationError(), candidates: candidates)
        let same = EarshotError(.ambiguousPeer, "two", candidates: candidates)
        #expect(error == same && error.hashValue == same.hashValue)
        let others = [
            EarshotError(.unknownPeer, "two", candidates: candidates), EarshotError(.ambiguousPeer, "2", candidates: candidates),
            EarshotError(.ambiguousPeer, "two"),
        ]
        #expect(Set([error, same] + others).count == 4)
    }

    // MARK: Unknown words

    private func decode<Value: Decodable>(_ type: Value.Type, _ json: String) throws -> Value {
        try MessageCoding.standard.decode(type, from: json.utf8)
    }

    private func json(_ value: some Encodable) throws -> JSONValue { try JSONValue(parsing: try MessageCoding.standard.encode(value)) }

    /// An unknown word of a later version is ignored if the value is optional there, and otherwise an error.
    @Test func wordsOfLaterVersions() throws {
        var generated = GeneratedModels(seed: 2)
        let peer = try self.json(generated.peer())
            .replacing([.key("error")], with: .object(["code": .string("brand-new"), "message": .string("x")]))
            .replacing([.key("sources")], with: .array([.string("avahi"), .string("brand-new"), .string("store")]))
            .replacing([.key("protection")], with: .string("brand-new")).replacing([.key("trustSource")], with: .string("brand-new"))
            .replacing([.key("verified")], with: .string("brand-new"))
        let read = try MessageCoding.standard.decode(Peer.self, from: try peer.bytes())
        #expect(read.error == nil && read.sources == [.avahi, .store] && read.protection == nil)
        #expect(read.trustSource == nil && read.verified == nil)
        for key in ["presence", "state", "trust"] {
            #expect(throws: JSONProblem.self) {
                try MessageCoding.standard.decode(Peer.self, from: try peer.replacing([.key(key)], with: .string("brand-new")).bytes())
            }
        }
        let resource = try self.json(generated.resource()).replacing([.key("error")], with: .string("brand-new"))
        #expect(try MessageCoding.standard.decode(Resource.self, from: try resource.bytes()).error == nil)
        let event = try self.json(generated.event()).replacing([.key("type")], with: .string("brand.new"))
        #expect(throws: JSONProblem.self) { try MessageCoding.standard.decode(NodeEvent.self, from: try event.bytes()) }
    }

    /// The type of an event determines its fields. Fields of other types are ignored.
    @Test func noTypeIsChosenByTheData() throws {
        let event = #"{"sequence":3,"time":5,"type":"gap","from":1,"to":3,"peer":7,"message":{"body":"%"}}"#
        #expect(try self.decode(NodeEvent.self, event).kind == .gap(1...3))
        #expect(throws: JSONProblem.self) { try self.decode(NodeEvent.self, event.replacing("gap", with: "peer.found")) }
    }

    // MARK: Limits

    /// A replacement of a field, and the expected error.
    struct Fault: Sendable {
        let value: JSONValue
        let words: String

        init(_ value: JSONValue, _ words: String) {
            self.value = value
            self.words = words
        }
    }

    private func expect<Value: Codable>(_ value: Value, _ key: String, refuses faults: [Fault]) throws {
        let json = try self.json(value)
        for fault in faults {
            let error = #expect(throws: JSONProblem.self, "\(fault.value)") {
                try MessageCoding.standard.decode(Value.self, from: try json.replacing([.key(key)], with: fault.value).bytes())
            }
            #expect(error?.description == fault.words)
        }
    }

    @Test func whatIsOutsideOfItsLimitsIsRefused() throws {
        var generated = GeneratedModels(seed: 3)
        let message = generated.message()
        let type = "`contentType`: a content type is 1 to 255 printable ASCII characters"
        try self.expect(
            message, "contentType", refuses: ["", "\n", "né", String(repeating: "x", count: 256)].map { Fault(.string($0), type) })
        let longBody = String(repeating: "AAAA", count: (1 << 20) / 3 + 1)
        try self.expect(
            message, "body",
            refuses: [
                Fault(.string("%"), "`body`: not base64"), Fault(.string(longBody), "`body`: a message has at most 1048576 bytes"),
            ])
        try self.expect(
            generated.invitation(), "context",
            refuses: [
                Fault(.string("A"), "`context`: not base64"),
                Fault(
                    .string(String(repeating: "AAAA", count: 2731)), "`context`: the context of an invitation has at most 8192 bytes"),
            ])
        try self.expect(
            generated.verification(), "digits",
            refuses: ["", "12345", "1234567", "12345x", "１２"].map { Fault(.string($0), "`digits`: the digits are six of 0 to 9") })
        let status = try generated.status()
        try self.expect(status, "reserve", refuses: [-0.1, 1.1].map { Fault(.number($0), "`reserve`: the reserve is 0 to 1") })
        try self.expect(status, "name", refuses: [Fault(.string(""), "`name`: a display name is 1 to 63 bytes of UTF-8, not 0")])
        try self.expect(
            status, "id", refuses: [Fault(.string("AAAA"), "`id`: a peer id is 52 characters of base32, after LS- for a device")])
        let event = NodeEvent(sequence: 1, time: Date(), kind: .gap(2...3))
        try self.expect(event, "sequence", refuses: [Fault(.number(0), "`sequence`: events are numbered from 1")])
        try self.expect(event, "to", refuses: [Fault(.number(1), "`to`: a gap ends where it begins or later, from 1 on")])
    }

    @Test(arguments: ["\"\"", "\"a\\u0000b\"", "\"\(String(repeating: "x", count: 256))\"", "7", "null", "{}", "[]"])
    func labelsOutsideOfTheirLimitsAreRefused(_ json: String) {
        #expect(throws: JSONProblem.self) { try self.decode([DisplayName].self, "[\(json)]") }
        #expect(throws: JSONProblem.self) { try self.decode([ServiceType].self, "[\(json)]") }
        #expect(throws: JSONProblem.self) { try self.decode([StreamName].self, "[\(json)]") }
        #expect(throws: JSONProblem.self) { try self.decode([ConfiguredPeer].self, "[\(json)]") }
        #expect(throws: JSONProblem.self) { try self.decode([ResourceID].self, "[\(json)]") }
        // Null stands for a LocalSend sender without an id.
        if json != "null" { #expect(throws: JSONProblem.self) { try self.decode([PeerID].self, "[\(json)]") } }
    }

    @Test(arguments: ["Chat", "1", "-a", "a-", "a--b", "a_b", "abcdefghijklmnop"]) func otherServiceTypesAreRefused(_ text: String) {
        #expect(throws: JSONProblem.self) { try self.decode([ServiceType].self, "[\"\(text)\"]") }
    }

    @Test(arguments: ["bob", "bob:0", "bob:65536", "fd00::7:1", ":1", "x@bob:1", "a b:1"]) func otherAddressesAreRefused(_ text: String) {
        #expect(throws: JSONProblem.self) { try self.decode([ConfiguredPeer].self, "[\"\(text)\"]") }
    }

    @Test(arguments: [
        String(repeating: "A", count: 51), String(repeating: "A", count: 51) + "1", String(repeating: "é", count: 26),
        String(repeating: "0", count: 31), String(repeating: "0", count: 31) + "g", "00000000-0000-0000-0000-00000000000",
        "00000000+0000-0000-0000-000000000000",
    ]) func otherIDsAreRefused(_ text: String) {
        #expect(throws: JSONProblem.self) { try self.decode([PeerID].self, "[\"\(text)\"]") }
        #expect(throws: JSONProblem.self) { try self.decode([SessionID].self, "[\"\(text)\"]") }
    }

    /// A program archives the models that it has seen.
    @Test func anArchiveOfModels() throws {
        var generated = GeneratedModels(seed: 4)
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        let archive = Archive<Set<Peer>>(path: directory.appending(path: "peers").path, kind: "example.peers")
        let peers = Set((0..<20).map { _ in generated.peer() })
        try archive.write(peers)
        #expect(try archive.read() == peers)
    }
}
