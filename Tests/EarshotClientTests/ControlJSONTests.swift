import EarshotCoding
import Foundation
import ModelLaws
import Testing

@testable import EarshotClient

/// The laws of the API's values: decoding returns the encoded value, and values of other versions are tolerated.
struct ControlJSONTests {
    static let date = Date(timeIntervalSince1970: 1_795_255_200.25)

    static let peer = ControlAPI.Peer(
        id: "AAAAAAAAAAAA", name: "al\u{202E}ice", presence: .known(.nearby), state: .known(.notConnected),
        trust: .unknown("revered"), proven: true, addresses: ["[fe80::1%eth0]:47110"], discoveryInfo: ["room": "kitchen"],
        sources: ["avahi"], firstSeen: date, lastSeen: date)
    static let failure = ControlAPI.Failure(code: "declined", message: "no")
    static let invitation = ControlAPI.Invitation(
        id: "i", direction: .known(.incoming), peerID: "P", peerName: "bob", context: Base64Bytes([0, 255]), state: .known(.timedOut),
        error: failure, createdAt: date, expiresAt: date, sessionID: "s")
    static let session = ControlAPI.Session(
        id: "s", members: [.init(peerID: "P", name: "bob", state: .known(.connected), protection: .known(.encrypted))], createdAt: date)
    static let recipient = ControlAPI.Recipient(peerID: "P", status: .known(.unconfirmed), error: failure)
    static let resource = ControlAPI.Resource(
        id: "r", direction: .known(.outgoing), peerID: "P", peerName: "bob", name: "a/b", kind: .known(.file), size: .max, transferred: 1,
        bytesPerSecond: 2, state: .known(.paused), createdAt: date)

    static func message(_ body: [UInt8], _ type: String) -> ControlAPI.Message {
        ControlAPI.Message(
            id: "m", direction: .known(.incoming), sender: .init(id: "P", name: "bob"), body: body, contentType: type,
            mode: .known(.reliable), sentAt: Self.date, state: .known(.unread))
    }

    private func roundTrip<Value: Codable & Equatable>(_ value: Value) throws {
        #expect(try ControlJSON.decode(Value.self, from: ControlJSON.encode(value)) == value)
    }

    private func object(_ value: some Encodable) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(ControlJSON.encode(value))) as? [String: Any])
    }

    @Test func everyValueComesBackEqual() throws {
        try self.roundTrip(Self.peer)
        try self.roundTrip(Self.invitation)
        try self.roundTrip(Self.session)
        try self.roundTrip(Self.recipient)
        try self.roundTrip(Self.resource)
        try self.roundTrip(Self.message(Array("hällo".utf8), "text/plain; charset=utf-8"))
        try self.roundTrip(Self.message([0xFF, 0], "text/plain"))
        try self.roundTrip(Self.message([], "application/x"))
        try self.roundTrip(ControlAPI.InvitationRequest(peer: "bob", context: Base64Bytes([1]), timeout: .seconds(1.5)))
        try self.roundTrip(ControlAPI.InvitationResponse(decision: .known(.block)))
        try self.roundTrip(ControlAPI.TrustRequest(trust: .known(.trusted)))
        try self.roundTrip(ControlAPI.ResourceRequest(to: ["bob"], path: "/x"))
        try self.roundTrip(ControlAPI.ResourceRequest(group: "team", path: "/x", limit: 1024))
        try self.roundTrip(
            ControlAPI.MessageRequest(to: .all, body: [0], contentType: "a/b", messageID: "m", queue: true, timeout: .seconds(3)))
        try self.roundTrip(ControlAPI.MessageReceipt(messageID: "m", recipients: [Self.recipient]))
        try self.roundTrip(
            ControlAPI.Problem(title: "Conflict", status: 409, code: "ambiguous-peer", candidates: [.init(id: "P", name: "bob")]))
        try self.roundTrip(ControlAPI.Event(epoch: "e", seq: 7, time: Self.date, type: .unknown("moon.rose"), peer: Self.peer))
        try self.roundTrip(ControlAPI.Event(epoch: "e", seq: .max, time: Self.date, type: .known(.gap), from: 1, to: 2))
        try self.roundTrip(
            ControlAPI.Status(
                name: "a", peerID: "P", version: "1", serviceType: "earshot", encryption: "required", addresses: [],
                discovery: .init(backend: "avahi", state: "running"),
                counts: .init(peers: 1, connected: 2, sessions: 3, invitations: 4, unread: 5, transfers: 6), startedAt: Self.date))
    }

    @Test func theKeysAreTheDesigns() throws {
        #expect(
            Set(try self.object(Self.peer).keys) == [
                "id", "name", "presence", "state", "trust", "protection", "proven", "addresses", "discovery_info", "sources", "first_seen",
                "last_seen",
            ])
        #expect(
            Set(try self.object(Self.invitation).keys) == [
                "id", "direction", "peer_id", "peer_name", "context", "state", "error", "created_at", "expires_at", "session_id",
                "group",
            ])
        #expect(
            Set(try self.object(Self.resource).keys) == [
                "id", "direction", "peer_id", "peer_name", "name", "kind", "size", "transferred", "bytes_per_second", "state", "digest",
                "created_at", "group",
            ])
        #expect(
            Set(try self.object(Self.message([65], "text/plain")).keys) == [
                "id", "direction", "from", "body", "content_type", "size", "mode", "sent_at", "received_at", "state",
                "group",
            ])
        #expect(Set(try self.object(ControlAPI.MessageReceipt(messageID: "m", recipients: [])).keys) == ["message_id", "recipients"])
    }

    @Test func whatTheDesignWritesAsNullIsNullAndTheRestIsAbsent() throws {
        #expect(try self.object(Self.peer)["protection"] is NSNull)
        #expect(try self.object(Self.resource)["digest"] is NSNull)
        #expect(try self.object(Self.message([65], "text/plain"))["group"] is NSNull)
        #expect(try self.object(Self.resource)["path"] == nil)
        #expect(try self.object(Self.resource)["group"] is NSNull)
        #expect(try self.object(Self.resource)["share_id"] == nil)
    }

    @Test(arguments: ["", #","protection":null"#])
    func nullAndAbsentAreReadAlike(_ field: String) throws {
        let json = #"{"peer_id":"\#("P" as PeerID)","name":"bob","state":"connected"\#(field)}"#
        let member = try ControlJSON.decode(ControlAPI.Member.self, from: json.utf8)
        #expect(member == ControlAPI.Member(peerID: "P", name: "bob", state: .known(.connected)))
    }

    @Test func unknownKeysAreIgnoredAndUnknownValuesKept() throws {
        let json = #"{"peer_id":"\#("P" as PeerID)","name":"bob","state":"meditating","mood":{"x":[1]},"protection":"quantum"}"#
        let member = try ControlJSON.decode(ControlAPI.Member.self, from: json.utf8)
        #expect(member.state == .unknown("meditating"))
        #expect(member.protection == .unknown("quantum"))
        #expect(try self.object(member)["state"] as? String == "meditating")
    }

    @Test func everyKnownValueIsKnown() {
        for value in ControlAPI.Event.Kind.allCases { #expect(Tolerant(rawValue: value.rawValue) == .known(value)) }
        for value in ControlAPI.Invitation.State.allCases { #expect(Tolerant(rawValue: value.rawValue) == .known(value)) }
    }

    @Test func aWrongFieldIsNamed() {
        let wrong: [(String, String)] = [
            (#"{"to":["b"],"body":7}"#, "`body` is not a string"),
            (#"{"body":"x"}"#, "`to` is missing"),
            (#"{"to":["b"]}"#, "`body` is missing"),
            (#"{"to":["b"],"body":"x","body_base64":"AA=="}"#, "`body_base64`: given together with `body`; give one of them"),
            (#"{"to":["b"],"body_base64":"%"}"#, "`body_base64`: not base64 (RFC 4648)"),
            (#"{"to":"everyone","body":""}"#, "`to`: neither a list of peers nor \"all\""),
            ("{", "not a JSON document"), ("", "not a JSON document"),
        ]
        for (json, sentence) in wrong {
            #expect(throws: JSONProblem(description: sentence)) {
                try ControlJSON.decode(ControlAPI.MessageRequest.self, from: json.utf8)
            }
        }
    }

    /// RFC 8259 section 8.1: encodings are not guessed, and bytes that are not text are refused.
    @Test func aDocumentIsUTF8() throws {
        let text = #"{"to":["b"],"body":"x"}"#
        var broken = Array(text.utf8)
        broken.insert(0xFF, at: broken.count - 3)
        let wide: [UInt8] = text.utf8.reduce(into: []) { $0 += [$1, 0] }
        let bigEndian: [UInt8] = text.utf8.reduce(into: []) { $0 += [0, $1] }
        let ignored: [UInt8] = Array(#"{"to":["b"],"body":"x","z":""#.utf8) + [0xC0, 0x80] + Array(#""}"#.utf8)
        let documents: [[UInt8]] = [broken, wide, [0xFF, 0xFE] + wide, bigEndian, ignored]
        for bytes in documents {
            #expect(throws: JSONProblem(description: "not a JSON document in UTF-8")) {
                try ControlJSON.decode(ControlAPI.MessageRequest.self, from: bytes)
            }
        }
    }

    @Test func aBodyHasTheDefaultsOfItsForm() throws {
        let text = try ControlJSON.decode(ControlAPI.MessageRequest.self, from: #"{"to":"all","body":"hé"}"#.utf8)
        #expect(text == ControlAPI.MessageRequest(to: .all, body: Array("hé".utf8), contentType: "text/plain; charset=utf-8"))
        let bytes = try ControlJSON.decode(ControlAPI.MessageRequest.self, from: #"{"to":["b"],"body_base64":"AP8="}"#.utf8)
        #expect(bytes == ControlAPI.MessageRequest(to: .peers(["b"]), body: [0, 255], contentType: "application/octet-stream"))
    }

    @Test(arguments: ["\"", "\\", "\n", "\u{1}", "a", "é"])
    func theLongestMessageFitsTheLongestRequest(_ text: String) throws {
        let body = Array(String(repeating: text, count: 300_000 / text.utf8.count).utf8)
        let request = ControlAPI.MessageRequest(to: .peers(["b"]), body: body, contentType: "text/plain")
        #expect(try ControlJSON.encode(request).count < body.count * 14 / 10)
        try self.roundTrip(request)
    }

    @Test func theFormOfABodyFollowsItsTypeAndBytes() throws {
        #expect(try self.object(Self.message([65], "TEXT/html"))["body"] as? String == "A")
        #expect(try self.object(Self.message([65], "application/json"))["body_base64"] as? String == "QQ==")
        #expect(try self.object(Self.message([0xC0, 0x80], "text/plain"))["body_base64"] as? String == "wIA=")
    }

    /// Answers follow the same rule: text that would be six times as long is only a third longer as base64. Short text stays text, whatever
    /// it contains.
    @Test func longTextOfEscapesIsBase64() throws {
        let short = try ControlJSON.encode(Self.message(Array(repeating: 1, count: BodyCoding.shortText), "text/plain"))
        #expect(short.count > BodyCoding.shortText * 6)
        let long = Self.message(Array(repeating: 1, count: BodyCoding.shortText + 1), "text/plain")
        #expect(try self.object(long)["body"] == nil && ControlJSON.encode(long).count < BodyCoding.shortText * 2)
        #expect(try ControlJSON.decode(ControlAPI.Message.self, from: ControlJSON.encode(long)) == long)
        let lines = Array(String(repeating: "a line\n", count: 1000).utf8)
        #expect(try self.object(Self.message(lines, "text/plain"))["body"] as? String == String(decoding: lines, as: UTF8.self))
    }
}
