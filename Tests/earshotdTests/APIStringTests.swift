import APIDocument
import Earshot
import EarshotWire
import Foundation
import Testing

@testable import earshotd

/// Every string that a caller can give according to the document is replaced by hostile values. The answer is a refusal that changes
/// nothing, or a success that the document allows, and never a fault of the daemon. A new string in the document is tested automatically.
@Suite(.timeLimit(.minutes(10))) struct APIStringTests {
    /// A trusted peer that is never present: messages that are queued for it wait.
    private static let peer = PeerID(subjectPublicKeyInfo: [7]).description
    /// A blocked peer: a call that sends to it is refused immediately, instead of waiting for it.
    private static let blocked = PeerID(subjectPublicKeyInfo: [8]).description
    /// A group of the daemon's own.
    private static let group = "the group"
    private static let someID = "01234567-89ab-cdef-0123-456789abcdef"
    private static let mark = "@@HOSTILE@@"

    /// The hostile values for a string in JSON, as the bytes between its quotes.
    private static let inJSON: [[UInt8]] =
        [
            #""#, #"\u0000"#, #"a\u0000b"#, #"\u001b[1A"#, #"\r\nX: y"#, #"\u202egnp.exe"#, #"\u200b"#, #"\u2066a"#, #"\ufeff"#, #"\uffff"#,
            #"\ud800"#, #"\udc00"#, #"a\ud83d"#, #"\udc00\ud800"#, #"../../.ssh/authorized_keys"#, #"/etc/shadow"#, #".."#, #"."#,
            #"/dev/zero"#, #"a\\b"#, #"%00"#, #"%2e%2e%2f"#, #"'; DROP TABLE peers; --"#, #"{{7*7}}"#, #"\u0041\u030a"#, #"-1"#,
            #"18446744073709551616"#, #"null"#, #"\x"#, #"\u12"#, "\u{1}", "\n", "\u{202E}", "\u{10FFFF}",
        ].map { Array($0.utf8) } + [
            [0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x61, 0xC3], Array(repeating: 0x41, count: 70_000),
            Array(String(repeating: "é", count: 300).utf8),
        ]

    /// The hostile values in a request's target.
    private static let inTarget: [String] = [
        "", "%00", "a%00b", "%1b%5B1A", "%0d%0aX:%20y", "%e2%80%aegnp.exe", "%e2%80%8b", "%ff", "%c0%af", "%ed%a0%80", "%f4%90%80%80",
        "a%c3", "%", "%z", "%2", "%2e%2e%2f%2e%2e%2fetc%2fshadow", "%2e%2e", "%2e", "%2fetc%2fshadow", "%5c", "%25%30%30", "+", "%20",
        "%22", "-1", "18446744073709551616", "null", "%f4%8f%bf%bf", String(repeating: "A", count: 9000),
        String(repeating: "%c3%a9", count: 300),
    ]

    /// The hostile values of a header.
    private static let inHeader: [String] = [
        "", "%00", "\u{202E}", "\u{1}", "../..", "bytes=-", "bytes=99999999999999999999-", "18446744073709551616", "-1", "wait=",
        String(repeating: "A", count: 9000),
    ]

    /// Bodies with every string that their schemas have.
    private static let bodies: [String: [String]] = [
        "TrustRequest": [#"{"trust":"trusted","expires_at":"2030-01-01T00:00:00Z"}"#],
        "AliasRequest": [#"{"alias":"printer"}"#],
        "VerificationRequest": ["{}"],
        "InvitationRequest": [#"{"peer":"PEER","context":"aGk="}"#],
        "InvitationResponse": [#"{"decision":"accept"}"#],
        "MessageRequest": [
            #"{"to":["PEER"],"mode":"reliable","content_type":"text/plain","body":"hi","message_id":"ID","queue":true,"in_reply_to":"ID"}"#,
            #"{"to":["PEER"],"content_type":"text/plain","body_base64":"aGk=","queue":true,"pin":"123456"}"#,
            #"{"to":"all","body":"hi"}"#, #"{"group":"\#(group)","body":"hi","queue":true}"#,
        ],
        "GroupRequest": [#"{"name":"team"}"#],
        "GroupChange": [#"{"name":"\#(group)"}"#],
        "GroupInvitationRequest": [#"{"peers":["PEER"],"context":"aGk=","timeout_seconds":86400}"#],
        "ReadRequest": [#"{"messages":[{"id":"ID","from":"PEER"}]}"#],
        "ResourceRequest": [
            #"{"to":["BLOCKED"],"path":"/nowhere","name":"x","digest":"xxh3","pin":"123456"}"#, #"{"group":"\#(group)","path":"/nowhere"}"#,
        ],
        "ResourceResponse": [#"{"decision":"accept"}"#],
    ]

    private func body(_ text: String) throws -> JSONValue {
        let text = text.replacing("PEER", with: Self.peer).replacing("BLOCKED", with: Self.blocked)
        return try JSONValue(parsing: text.replacing("\"ID\"", with: "\"\(Self.someID)\"").utf8)
    }

    // MARK: The document

    private func resolved(_ value: JSONValue) -> JSONValue {
        guard case .string(let path)? = value["$ref"] else { return value }
        return path.split(separator: "/").dropFirst().reduce(APIDocument.shared.root) { $0[String($1)] ?? .null }
    }

    /// Returns the paths to the strings of a schema, an element of a list as `[]`.
    private func strings(_ schema: JSONValue, _ way: String = "") -> Set<String> {
        let schema = self.resolved(schema)
        var found: Set<String> = []
        if schema["type"]?.string == "string" || schema["type"]?.elements.contains(.string("string")) == true { found.insert(way) }
        for (name, part) in schema["properties"]?.members ?? [:] { found.formUnion(self.strings(part, "\(way).\(name)")) }
        if let items = schema["items"] { found.formUnion(self.strings(items, way + "[]")) }
        for part in schema["oneOf"]?.elements ?? [] { found.formUnion(self.strings(part, way)) }
        return found
    }

    /// The places of the strings of a value.
    private func places(_ value: JSONValue, _ steps: [JSONValue.Step] = []) -> [[JSONValue.Step]] {
        switch value {
        case .string: [steps]
        case .array(let elements): elements.indices.flatMap { self.places(elements[$0], steps + [.index($0)]) }
        case .object(let members): members.keys.sorted().flatMap { self.places(members[$0] ?? .null, steps + [.key($0)]) }
        case .null, .bool, .number: []
        }
    }

    private func way(_ steps: [JSONValue.Step]) -> String {
        steps.map { step in
            switch step {
            case .key(let key): ".\(key)"
            case .index: "[]"
            }
        }.joined()
    }

    private func parameters(_ operation: APIDocument.Operation) -> [(name: String, place: String, isString: Bool)] {
        let call = APIDocument.shared.root["paths"]?[operation.path]?[operation.method.lowercased()]
        return (call?["parameters"]?.elements ?? []).map(self.resolved).compactMap { parameter in
            guard let name = parameter["name"]?.string, let place = parameter["in"]?.string else { return nil }
            return (name, place, !self.strings(parameter["schema"] ?? .null).isEmpty)
        }
    }

    /// Returns the value of a parameter that is not attacked.
    private func value(_ name: String) -> String? {
        switch name {
        case "to": Self.blocked
        case "peer", "from": Self.peer
        case "id": Self.someID
        case "name": "backup"
        case "group": Self.group.replacing(" ", with: "%20")
        case "size": "0"
        case "limit", "since", "timeout_seconds": "0"
        default: nil
        }
    }

    private func target(_ operation: APIDocument.Operation, _ attacked: String?, _ hostile: String) -> String {
        var path = operation.path
        var query: [String] = []
        for parameter in self.parameters(operation) {
            let value = parameter.name == attacked ? hostile : self.value(parameter.name)
            guard let value else { continue }
            switch parameter.place {
            case "path": path = path.replacing("{\(parameter.name)}", with: value)
            case "query": query.append("\(parameter.name)=\(value)")
            default: break
            }
        }
        return query.isEmpty ? path : path + "?" + query.joined(separator: "&")
    }

    // MARK: The attack

    /// Returns the state that a refusal must not change.
    private func state(_ server: APIServer) async throws -> [String] {
        var all: [String] = []
        for target in [
            "/v1/peers", "/v1/invitations?state=all", "/v1/sessions", "/v1/groups", "/v1/messages?state=all", "/v1/resources",
            "/v1/streams",
        ] {
            all.append(try await APICaller(path: server.path).call("GET", target).text)
        }
        return all
    }

    /// Makes one call, and returns its status.
    private func strike(
        _ server: APIServer, _ operation: APIDocument.Operation, _ target: String, _ fields: [String] = [], _ body: [UInt8]? = nil
    ) async throws -> Int {
        try await APIConnection.with(server.path) { conversation in
            try await conversation.ask(operation.method, target, fields, body: body)
            // The stream of events has no end.
            if operation.path == "/v1/events" {
                let status = try await conversation.head().status
                #expect(status < 500, "\(operation) \(target)")
                return status
            }
            let answer = try await conversation.answer()
            // No stream arrives during the wait.
            let isLate = operation.path == "/v1/streams/next/content" && answer.status == 504
            #expect(answer.status < 500 || isLate, "\(operation) \(target) \(fields) \(answer.text)")
            #expect(!answer.body.contains { $0 < 0x20 && $0 != 0x0A }, "\(operation) answers control characters")
            #expect(String(validating: answer.body, as: UTF8.self) != nil, "\(operation) answers what is no UTF-8")
            if answer.status >= 400 { #expect(answer.fields["content-type"] == "application/problem+json", "\(operation) \(target)") }
            return answer.status
        }
    }

    /// Makes the call with each hostile value. A refused call must not change anything.
    private func strikes<Hostile>(
        _ server: APIServer, _ what: String, _ all: [Hostile], _ strike: (Hostile) async throws -> Int
    ) async throws -> Int {
        var before = try await self.state(server)
        for hostile in all where try await strike(hostile) < 300 { before = try await self.state(server) }
        #expect(try await self.state(server) == before, "a refusal has changed something: \(what)")
        return all.count
    }

    @Test func everyStringOfEveryCallIsHostile() async throws {
        // Invitations to the absent peer must not time out while the test compares states.
        try await APIServer.with(configure: { $0.invitationTimeout = .seconds(86_400) }) { server in
            let api = APICaller(path: server.path)
            for (peer, trust) in [(Self.peer, "trusted"), (Self.blocked, "blocked")] {
                #expect(try await api.call("PUT", "/v1/peers/\(peer)/trust", json: #"{"trust":"\#(trust)"}"#).status == 200)
            }
            #expect(try await api.call("POST", "/v1/groups", json: #"{"name":"\#(Self.group)"}"#).status == 201)
            var count = 0
            let operations = APIDocument.shared.operations.sorted { ($0.path, $0.method) < ($1.path, $1.method) }
            for operation in operations {
                for parameter in self.parameters(operation) where parameter.isString {
                    let what = "\(operation) \(parameter.name)"
                    if parameter.place == "header" {
                        count += try await self.strikes(server, what, Self.inHeader) { hostile in
                            try await self.strike(
                                server, operation, self.target(operation, nil, ""), ["\(parameter.name): \(hostile)"],
                                operation.method == "POST" ? [] : nil)
                        }
                    } else {
                        count += try await self.strikes(server, what, Self.inTarget) { hostile in
                            try await self.strike(
                                server, operation, self.target(operation, parameter.name, hostile),
                                ["Content-Type: application/octet-stream"],
                                operation.method == "POST" ? [] : nil)
                        }
                    }
                }
                count += try await self.strikeBodies(server, operation)
                // With an alias that was accepted, later calls would name the absent peer, and wait for it.
                if operation.path.hasSuffix("/alias") {
                    #expect(try await api.call("DELETE", "/v1/peers/\(Self.peer)/alias").status == 200)
                }
            }
            #expect(count > 1500, "\(count)")
        }
    }

    private func strikeBodies(_ server: APIServer, _ operation: APIDocument.Operation) async throws -> Int {
        let call = APIDocument.shared.root["paths"]?[operation.path]?[operation.method.lowercased()]
        guard let schema = call?["requestBody"]?["content"]?["application/json"]?["schema"] else { return 0 }
        let name = try #require(schema["$ref"]?.string?.split(separator: "/").last).description
        let bodies = try #require(Self.bodies[name], "say how a \(name) looks that has all of its strings").map(self.body)
        let covered = Set(bodies.flatMap { self.places($0) }.map(self.way))
        #expect(self.strings(schema).subtracting(covered) == [], "a string of \(name) that nobody attacks")
        var count = 0
        for body in bodies {
            for place in self.places(body) {
                let text = String(decoding: try body.replacing(place, with: .string(Self.mark)).bytes(), as: UTF8.self)
                let parts = text.split(separator: Self.mark, maxSplits: 1, omittingEmptySubsequences: false).map { Array($0.utf8) }
                count += try await self.strikes(server, "\(operation) \(self.way(place))", Self.inJSON) { hostile in
                    try await self.strike(
                        server, operation, self.target(operation, nil, ""), ["Content-Type: application/json"],
                        parts[0] + hostile + parts[1])
                }
            }
        }
        return count
    }
}
