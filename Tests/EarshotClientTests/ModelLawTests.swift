import APIDocument
import EarshotCoding
import Foundation
import ModelLaws
import Testing

@testable import EarshotClient

/// The laws of the API's values, for generated values of every model: decoding returns the encoded value, values of other versions are
/// tolerated, and encoded values conform to the API's document.
@Suite struct ModelLawTests {
    /// A model by its name in the document, with the checks of its values.
    struct Model: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let check: @Sendable (inout GeneratedModels) throws -> Void

        init<Value: Codable & Hashable & Sendable>(_ name: String, _ make: @escaping @Sendable (inout GeneratedModels) -> Value) {
            self.testDescription = name
            self.check = { generated in
                let law = ModelLaw<Value>(name: name)
                let (value, other, third) = (make(&generated), make(&generated), make(&generated))
                #expect(try law.laws.roundTrip(value) == [])
                #expect(try law.laws.equivalence([value, other, third]) == [])
                #expect(try law.laws.fields(value, other) == [])
                #expect(try law.laws.unknownFields(value, own: ["discovery_info"]) == [])
                try law.names(value)
                try law.document(value)
                try law.tolerance(value)
                try law.absence(value)
                try law.refusals(value)
            }
        }
    }

    static let models: [Model] = [
        Model("Status") { $0.status() }, Model("Local") { $0.local() },
        Model("Discovery") { $0.discovery() }, Model("Counts") { $0.status().counts },
        Model("Peer") { $0.peer() }, Model("PeerList") { ControlAPI.PeerList(peers: $0.list { $0.peer() }) },
        Model("AliasRequest") { ControlAPI.AliasRequest(alias: $0.text()) },
        Model("TrustRequest") { $0.trustRequest() }, Model("Verification") { $0.verification() },
        Model("VerificationRequest") { ControlAPI.VerificationRequest(timeout: $0.optional { .seconds($0.count() % 3600) }) },
        Model("Outbox") { ControlAPI.Outbox(messages: $0.list { $0.outboxMessage() }) }, Model("OutboxMessage") { $0.outboxMessage() },
        Model("Setting") { $0.setting() },
        Model("SettingList") {
            ControlAPI.SettingList(
                configuration: $0.optional { $0.element(["/etc/earshot/earshotd.conf"]) }, settings: $0.list { $0.setting() })
        },
        Model("SettingsReload") { ControlAPI.SettingsReload(changed: $0.list { $0.text() }, needsRestart: $0.list { $0.text() }) },
        Model("PeerPing") { $0.ping() }, Model("PingStep") { $0.pingStep() },
        Model("PeerPolicy") { $0.policy() }, Model("PolicyDecision") { $0.decision() },
        Model("Invitation") { $0.invitation() }, Model("OfferedFile") { $0.offeredFile() }, Model("LocalSend") { $0.localSend() },
        Model("InvitationList") { ControlAPI.InvitationList(invitations: $0.list { $0.invitation() }) },
        Model("InvitationRequest") {
            ControlAPI.InvitationRequest(
                peer: $0.text(), context: $0.optional { Base64Bytes($0.bytes()) }, timeout: $0.optional { .seconds($0.count()) })
        },
        Model("InvitationResponse") {
            let decision = $0.word(ControlAPI.InvitationResponse.Decision.self)
            return ControlAPI.InvitationResponse(decision: decision, always: $0.optional { $0.flag() && decision == .accept })
        },
        Model("Session") { $0.session() }, Model("SessionList") { ControlAPI.SessionList(sessions: $0.list { $0.session() }) },
        Model("Group") { $0.group() }, Model("GroupList") { ControlAPI.GroupList(groups: $0.list { $0.group() }) },
        Model("GroupMember") { $0.groupMember() }, Model("GroupLabel") { $0.groupLabel(isInvitation: $0.flag()) },
        Model("GroupRequest") {
            ControlAPI.GroupRequest(
                name: $0.element(["team", "née ☎️"]), closed: $0.optional { $0.flag() }, unprotected: $0.optional { $0.flag() })
        },
        Model("GroupChange") { ControlAPI.GroupChange(name: $0.element(["team", "née ☎️"])) },
        Model("GroupInvitationRequest") {
            ControlAPI.GroupInvitationRequest(
                peers: $0.list(1...3) { $0.text() }, context: $0.optional { Base64Bytes($0.bytes()) },
                timeout: $0.optional { .seconds($0.count()) })
        },
        Model("Member") { $0.session().members.first ?? .init(peerID: $0.peerID(), name: "x", state: .known(.connected)) },
        Model("Message") { $0.message() }, Model("Sender") { $0.message().sender },
        Model("MessageList") { ControlAPI.MessageList(messages: $0.list { $0.message() }, next: $0.optional { "\($0.count())" }) },
        Model("ReadEntry") { ControlAPI.ReadRequest.Entry(id: $0.id(), from: $0.optional { $0.text() }) },
        Model("ReadRequest") {
            ControlAPI.ReadRequest(messages: $0.list { ControlAPI.ReadRequest.Entry(id: $0.id(), from: $0.optional { $0.text() }) })
        },
        Model("ReadResult") { ControlAPI.ReadResult(marked: $0.count()) },
        Model("MessageLineResult") { $0.messageLineResult() },
        Model("MessageRequest") { $0.messageRequest() },
        Model("MessageReceipt") { ControlAPI.MessageReceipt(messageID: $0.id(), recipients: $0.list { $0.recipient() }) },
        Model("Recipient") { $0.recipient() }, Model("Failure") { $0.failure() }, Model("Resource") { $0.resource() },
        Model("Stream") { $0.stream() },
        Model("StreamList") { ControlAPI.StreamList(streams: $0.list { $0.stream() }) },
        Model("ResourceList") { ControlAPI.ResourceList(resources: $0.list { $0.resource() }) },
        Model("ResourceRequest") { $0.resourceRequest() },
        Model("ResourceResponse") { ControlAPI.ResourceResponse(decision: $0.word(ControlAPI.ResourceResponse.Decision.self)) },
        Model("Problem") { $0.problem() },
        Model("Candidate") { ControlAPI.Candidate(id: $0.peerID(), name: $0.text()) }, Model("Event") { $0.event() },
    ]

    @Test(arguments: models) func theLawsHold(_ model: Model) throws {
        var generated = GeneratedModels(seed: 1)
        for _ in 0..<12 { try model.check(&generated) }
    }

    /// Schemas without a model in the client: parts of other schemas, and schemas that this version does not use.
    private static let withoutModel: Set<String> = ["PeerID", "Code"]

    @Test func everySchemaHasAModel() {
        let names = Set(APIDocument.shared.schemaNames.filter { !$0.hasSuffix("Event") || $0 == "Event" })
        #expect(names.subtracting(Self.withoutModel) == Set(Self.models.map(\.testDescription)))
    }

    @Test(arguments: ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.000Z", "2026-11-21T10:00:00.0Z", "2026-11-21T12:00:00+02:00"])
    func timesAreReadWithAndWithoutFraction(_ text: String) throws {
        let json = #"{"id":"00000000-0000-0000-0000-000000000000","members":[],"created_at":"\#(text)"}"#
        let session = try ControlJSON.decode(ControlAPI.Session.self, from: json.utf8)
        #expect(session.createdAt == Date(timeIntervalSince1970: 1_795_255_200))
    }

    @Test(arguments: ["2026-11-21T10:00:00", "2026-11-21", "now", "1795255200", ""]) func otherTimesAreRefused(_ text: String) {
        let json = #"{"id":"00000000-0000-0000-0000-000000000000","members":[],"created_at":"\#(text)"}"#
        #expect(throws: JSONProblem.self) { try ControlJSON.decode(ControlAPI.Session.self, from: json.utf8) }
    }

    @Test(arguments: ["A", "AA", "AA=", "A===", "AAAA=", "====", "A A=", "AA==AA==", "-_==", "AA==\\n", "\u{e9}"])
    func whatIsNotBase64IsRefused(_ text: String) {
        let json = #"{"peer":"bob","context":"\#(text)"}"#
        #expect(throws: JSONProblem.self) { try ControlJSON.decode(ControlAPI.InvitationRequest.self, from: json.utf8) }
    }
}

/// The laws for every model's values.
struct ModelLaw<Value: Codable & Hashable> {
    let name: String

    private func json(_ value: Value) throws -> JSONValue { try JSONValue(parsing: try ControlJSON.encode(value)) }
    private func decode(_ json: JSONValue) throws -> Value { try ControlJSON.decode(Value.self, from: try json.bytes()) }

    /// The laws for the models of both libraries.
    var laws: ValueLaws<Value> {
        ValueLaws(
            encode: { try ControlJSON.encode($0) }, decode: { try ControlJSON.decode(Value.self, from: $0) })
    }

    func names(_ value: Value) throws {
        for place in APIDocument.shared.places(try self.json(value), as: self.name) where place.schema["properties"] != nil {
            for key in place.value.members.keys { #expect(key.wholeMatch(of: /[a-z]+(_[a-z0-9]+)*/) != nil, "\(key)") }
        }
        // The keys that a peer chose stay unchanged.
        if let peer = value as? ControlAPI.Peer {
            #expect(try self.json(value)["discovery_info"] == .object(peer.discoveryInfo.mapValues { .string($0) }))
        }
    }

    func document(_ value: Value) throws {
        #expect(APIDocument.shared.faults(try ControlJSON.encode(value), as: self.name) == [])
    }

    /// Unknown words are kept.
    func tolerance(_ value: Value) throws {
        let json = try self.json(value)
        for place in APIDocument.shared.places(json, as: self.name) {
            let isOpen = place.schema["x-extensible-enum"] != nil || place.schema["enum"] != nil
            if isOpen, place.value.type == "string" {
                let newer = json.replacing(place.steps, with: .string("brand-new"))
                #expect(try self.json(self.decode(newer)) == newer)
            }
        }
    }

    /// An absent value may be written as `null`, and `null` may be left out.
    func absence(_ value: Value) throws {
        let json = try self.json(value)
        for place in APIDocument.shared.places(json, as: self.name) {
            for key in place.schema["properties"]?.members.keys.sorted() ?? [] {
                switch place.value[key] {
                case nil: #expect(try self.isRead(json.replacing(place.steps + [.key(key)], with: .null), as: value), "\(key)")
                case .null: #expect(try self.isRead(json.replacing(place.steps + [.key(key)], with: nil), as: value), "\(key)")
                default: break
                }
            }
        }
    }

    /// Whether the JSON is decoded to that value, in every field.
    private func isRead(_ json: JSONValue, as value: Value) throws -> Bool {
        try ControlJSON.encode(self.decode(json)) == ControlJSON.encode(value)
    }

    /// Required fields must be present and have their types; base64 must be valid.
    func refusals(_ value: Value) throws {
        let json = try self.json(value)
        for place in APIDocument.shared.places(json, as: self.name) {
            // A message's size is the size of its body, whatever the JSON says.
            let isMessage = place.schema["properties"]?["body_base64"] != nil
            for key in (place.schema["required"]?.elements ?? []).compactMap(\.string) where key != "size" || !isMessage {
                let field = place.steps + [.key(key)]
                guard let present = place.value[key], present != .null, !self.mayBeAbsent(place, key) else { continue }
                #expect(throws: JSONProblem.self, "\(key)") { try self.decode(json.replacing(field, with: nil)) }
                #expect(throws: JSONProblem.self, "\(key)") { try self.decode(json.replacing(field, with: .array([.array([])]))) }
            }
            if place.schema["contentEncoding"] == .string("base64"), place.value != .null {
                #expect(throws: JSONProblem.self) { try self.decode(json.replacing(place.steps, with: .string("%"))) }
            }
        }
    }

    /// Whether a client accepts the absence of a field that the daemon always writes.
    private func mayBeAbsent(_ place: APIDocument.Place, _ key: String) -> Bool {
        let property = place.schema["properties"]?[key]
        if property?["type"]?.elements.contains(.string("null")) == true { return true }
        if property?["oneOf"]?.elements.contains(where: { $0["type"] == .string("null") }) == true { return true }
        switch self.name {
        case "Problem": return ["type", "detail"].contains(key)
        // The type determines the fields that are present, and a client must accept unknown types.
        case "Event": return place.steps.isEmpty && !["epoch", "seq", "time", "type"].contains(key)
        default: return false
        }
    }
}
