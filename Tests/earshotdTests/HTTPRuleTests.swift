import APIDocument
import Earshot
import EarshotClient
import EarshotWire
import Foundation
import Hummingbird
import HummingbirdCore
import Testing

@testable import earshotd

/// The server's rules for HTTP itself, on a real socket: every refusal is a problem document, and no other client is disturbed.
@Suite struct HTTPRuleTests {
    @Test func headersAndTargets() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            #expect(try await api.call("GET", "/v1/status", ["Host: evil.example"]).status == 403)
            #expect(try await api.call("GET", "/v1/status", ["Host: localhost:80"]).status == 403)
            #expect(try await api.call("GET", "/v1/status", ["Host: localhost", "Host: localhost"]).status != 200)
            #expect(try await api.call("GET", "/v1/status", ["Host: earshot"]).status == 200)
            #expect(try await api.call("GET", "/v1/status", ["Origin: http://localhost"]).status == 403)
            #expect(try await api.call("GET", "/v1/status", ["Origin: null"]).status == 403)
            // A trailing slash and an unknown query change nothing.
            #expect(try await api.call("GET", "/v1/status/").status == 200)
            #expect(try await api.call("GET", "/v1/status?moon=full&x").status == 200)
            #expect(try await api.call("GET", "/v1/nothing").code == "not-found")
            #expect(try await api.call("GET", "/").code == "not-found")
            #expect(try await api.call("GET", "/v1/messages?limit=0").code == "invalid-parameter")
            #expect(try await api.call("GET", "/v1/messages?limit=%FF").code == "invalid-parameter")
            let twice = ["messages?limit=1&limit=2", "messages?state=all&state=all", "messages?from=&from=bob", "events?since=1&since=1"]
            for query in twice {
                let answer = try await api.call("GET", "/v1/\(query)")
                #expect(answer.status == 400 && answer.code == "invalid-parameter", "\(query)")
            }
            #expect(try await api.call("GET", "/v1/messages?from=&limit=&state=").status == 200)
            let refused = try await api.call("DELETE", "/v1/peers")
            #expect(refused.status == 405 && refused.fields["allow"] == "GET, HEAD" && refused.code == "unsupported")
            #expect(try await api.call("GET", "/v1/invitations/\(APICallTests.someID)/response").fields["allow"] == "POST")
        }
    }

    @Test func headIsGetWithoutItsBody() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            for path in ["/v1/sessions", "/v1/openapi.json", "/v1/peers/nobody", "/v1/nothing"] {
                let get = try await api.call("GET", path)
                let head = try await api.call("HEAD", path)
                #expect(head.status == get.status && head.body.isEmpty, "\(path)")
                #expect(head.fields["content-length"] == get.fields["content-length"], "\(path)")
                #expect(head.fields["content-type"] == get.fields["content-type"], "\(path)")
            }
            #expect(try await api.call("HEAD", "/v1/events").fields["content-type"] == "application/x-ndjson")
            #expect(try await api.call("HEAD", "/v1/invitations/\(APICallTests.someID)/response").status == 405)
            // The connection serves on: nothing was left on it.
            try await APIConnection.with(server.path) { call in
                try await call.ask("HEAD", "/v1/status")
                try await call.ask("GET", "/v1/status")
                #expect(try await call.answer().status == 200)
                #expect(try await call.answer().body.isEmpty == false)
            }
        }
    }

    /// An answer of unknown length is chunked, and that to a HEAD has no chunk, the last one neither.
    @Test func theHeadOfAStreamLeavesNothingOnTheConnection() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                for _ in 0..<2 {
                    try await call.ask("HEAD", "/v1/events")
                    try await call.ask("GET", "/v1/status")
                    #expect(try await call.answer().fields["content-length"] == nil)
                    let answer = try await call.answer()
                    #expect(answer.status == 200 && answer.body.isEmpty == false)
                }
            }
        }
    }

    @Test func invalidBodiesAreRefused() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            let path = "/v1/messages"
            #expect(try await api.call("POST", path, ["Content-Type: text/plain"], json: "{}").status == 415)
            #expect(try await api.call("POST", path, body: Array("{}".utf8)).status == 415)
            #expect(try await api.call("POST", path).status == 415)
            let nothing = try await api.call("POST", path, ["Content-Type: application/json; charset=utf-8"], json: "{}")
            #expect(try nothing.json["detail"]?.string == "`body` is missing")
            let wrong = try await api.call("POST", path, json: #"{"to":["bob",7],"body":"x"}"#)
            #expect(try wrong.json["detail"]?.string?.contains("`to") == true)
            for text in ["", "[", "nul", #"{"to":["b"],"body":"\uD800"}"#, "\u{FEFF}\u{0}"] {
                let answer = try await api.call("POST", path, json: text)
                #expect(answer.status == 400 && answer.code == "invalid-parameter", "\(text)")
            }
            let deep = String(repeating: "[", count: 100_000)
            #expect(try await api.call("POST", path, json: deep).status == 400)
            let limit = Request.jsonLimit
            let padding = String(repeating: " ", count: limit - 2)
            #expect(try await api.call("POST", path, json: padding + "{}").status == 400)
            #expect(try await api.call("POST", path, json: padding + "{} ").status == 413)
            // Announced only, and never sent: it is not waited for.
            try await APIConnection.with(server.path) { call in
                try await call.ask("POST", path, ["Content-Type: application/json", "Content-Length: 9999999999"])
                #expect(try await call.answer().status == 413)
                #expect(try await call.hasEnded())
            }
            #expect(try await api.call("POST", "/v1/resources?to=b&name=c", ["Transfer-Encoding: chunked"]).status == 411)
        }
    }

    @Test func aHeadHasItsLimits() async throws {
        try await APIServer.with { server in
            // 65,000 tiny fields, a long one, many long ones, a long target.
            let tiny = (0..<65_000).map { "a\($0): b" }
            let floods = [
                tiny, ["x: " + String(repeating: "y", count: 17 * 1024)], (0..<9).map { "x\($0): " + String(repeating: "y", count: 2048) },
            ]
            for fields in floods {
                try await APIConnection.with(server.path) { call in
                    // The server may end the connection while the client still sends.
                    try? await call.ask("GET", "/v1/status", fields)
                    let answer = try await call.answer()
                    #expect(answer.status == 431 && answer.code == "invalid-parameter")
                }
            }
            try await APIConnection.with(server.path) { call in
                try await call.ask("GET", "/v1/status", (0..<90).map { "a\($0): b" })
                #expect(try await call.answer().status == 200)
            }
        }
    }

    @Test(arguments: [
        "garbage\r\n\r\n", "GET /v1/status HTTP/1.1\r\nHost localhost\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}", "GET / SPDY/9\r\n\r\n",
    ])
    func whatIsNoRequestIsToldSo(_ text: String) async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.say(text)
                let answer = try await call.answer()
                #expect(answer.status == 400 && answer.fields["content-type"] == "application/problem+json")
                #expect(try await call.hasEnded())
            }
            #expect(try await APICaller(path: server.path).call("GET", "/v1/status").status == 200)
        }
    }

    @Test func connectionsAreKeptAndRequestsMayCrowd() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                for path in ["/v1/status", "/v1/peers", "/v1/nothing", "/v1/sessions"] { try await call.ask("GET", path) }
                for status in [200, 200, 404, 200] { #expect(try await call.answer().status == status) }
                // Byte by byte.
                for byte in "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n" { try await call.say(String(byte)) }
                #expect(try await call.answer().status == 200)
                // Half-closed: what was asked is still answered.
                try await call.ask("GET", "/v1/peers")
                call.finish()
                #expect(try await call.answer().status == 200)
                #expect(try await call.hasEnded())
            }
        }
    }

    /// After a connection's last answer, a client repeats the requests that it had sent behind the answered one. The server must therefore
    /// not perform them.
    @Test func nothingIsDoneBehindTheLastAnswer() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.ask("POST", "/v1/nothing", body: Array("x".utf8))
                try await call.ask("POST", "/v1/groups", ["Content-Type: application/json"], body: Array(#"{"name":"team"}"#.utf8))
                let answer = try await call.answer()
                #expect(answer.status == 404 && answer.fields["connection"] == "close")
                #expect(try await call.hasEnded())
            }
            #expect(await server.node.groups().isEmpty)
        }
    }

    /// A client that hangs up while a call waits, or before its request has ended, affects no other client.
    @Test func whoGoesInTheMiddleHarmsNobody() async throws {
        try await APIServer.with { alice in
            let known = try [ConfiguredPeer("127.0.0.1:\(alice.port)")]
            try await APIServer.with("carol", configure: { $0.configuredPeers = known }) { carol in
                for await event in alice.node.events.subscribe(since: 0) {
                    if case .peerFound(let peer) = event.kind, peer.id == carol.node.id { break }
                }
                let json = Array(#"{"peer":"carol"}"#.utf8)
                try await APIConnection.with(alice.path) { call in
                    try await call.ask("POST", "/v1/invitations?wait=true", ["Content-Type: application/json"], body: json)
                    // The next request is there already.
                    try await call.ask("GET", "/v1/status")
                    for await event in carol.node.events.subscribe(since: 0) {
                        if case .invitationReceived = event.kind { break }
                    }
                }
                try await APIConnection.with(alice.path) { call in
                    try await call.ask("GET", "/v1/events", ["Content-Length: 10"])
                    #expect(try await call.head().status == 200)
                }
                let invitation = try #require(await carol.node.invitations(all: false).first)
                _ = try await carol.node.respond(to: invitation.id, .accept, always: false)
                #expect(try await APICaller(path: alice.path).call("GET", "/v1/status").status == 200)
            }
        }
    }

    /// Names as people and programs make them stay one segment of the path.
    @Test(arguments: ["two words", "a/b", "..", "☎️ é", "100%", "a?b#c", "+", "%2F"])
    func aPeerIsNamedInThePath(_ name: String) async throws {
        try await APIServer.with { alice in
            let known = try [ConfiguredPeer("127.0.0.1:\(alice.port)")]
            try await APIServer.with(name, configure: { $0.configuredPeers = known }) { other in
                for await event in alice.node.events.subscribe(since: 0) {
                    if case .peerFound(let peer) = event.kind, peer.id == other.node.id { break }
                }
                let encoded = name.utf8.map { "%" + String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
                let api = APICaller(path: alice.path)
                let answer = try await api.call("GET", "/v1/peers/\(encoded)")
                #expect(try answer.json["id"]?.string == other.node.id.description)
                let trusted = try await api.call("PUT", "/v1/peers/\(encoded)/trust", json: #"{"trust":"trusted"}"#)
                #expect(try trusted.json["name"]?.string == name)
            }
        }
    }

    @Test func anotherUserIsRefusedAndNamesNoPaths() async throws {
        // Root is always admitted, but names no paths to a daemon of another user.
        let owner = geteuid() &+ 1
        try await APIServer.with(owner: owner) { server in
            let api = APICaller(path: server.path)
            let answer = try await api.call("POST", "/v1/resources", json: #"{"to":["bob"],"path":"/etc/shadow"}"#)
            #expect(answer.status == 403 && answer.code == "forbidden")
            let status = try await api.call("GET", "/v1/status")
            #expect(geteuid() == 0 ? status.status == 200 : status.code == "forbidden")
        }
    }
}
