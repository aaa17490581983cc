import APIDocument
import Earshot
import EarshotClient
import Foundation
import NIOCore
import Testing

@testable import earshotd

/// `POST /v1/messages` with a message a line.
@Suite(.timeLimit(.minutes(2))) struct MessageLinesTests {
    private static let type = "Content-Type: application/x-ndjson"

    private func lines(_ answer: APIAnswer) throws -> [JSONValue] {
        try answer.text.split(separator: "\n").map { try JSONValue(parsing: $0.utf8) }
    }

    private func inSession(_ body: @escaping @Sendable (APIServer, APIServer) async throws -> Void) async throws {
        try await APIServer.pair { alice, bob in
            let asked = try await APICaller(path: alice.path).call("POST", "/v1/invitations?wait=true", json: #"{"peer":"bob"}"#)
            #expect(asked.status == 200)
            try await body(alice, bob)
        }
    }

    @Test func everyLineIsAnsweredInOrder() async throws {
        try await self.inSession { alice, bob in
            let body = [
                #"{"to":["bob"],"body":"one"}"#, "", #"{"to":["bob"],"body":"two","message_id":"0b0e8f6e-4f0e-4c6b-9d0c-6f1f6a2b7a11"}"#,
                #"{"to":["nobody"],"body":"x"}"#, "not JSON", #"{"to":[],"body":"x"}"#, #"{"to":["bob"],"body":"later","queue":true}"#,
                #"{"to":["bob"],"body_base64":"AP8=","timeout_seconds":20}"#, #"{"to":"all","body":"live","mode":"unreliable"}"#,
                #"{"to":["bob"],"body":"the last one has no line's end"}"#,
            ].joined(separator: "\n")
            let caller = APICaller(path: alice.path)
            let answer = try await caller.call("POST", "/v1/messages", [Self.type], body: Array(body.utf8))
            #expect(answer.status == 200)
            let results = try self.lines(answer)
            #expect(results.map { $0["line"]?.number } == [1, 3, 4, 5, 6, 7, 8, 9, 10].map(Decimal.init))
            #expect(results[1]["message_id"]?.string == "0b0e8f6e-4f0e-4c6b-9d0c-6f1f6a2b7a11")
            let outcomes = results.map { $0["error"]?["code"]?.string ?? $0["recipients"]?.elements.first?["status"]?.string }
            #expect(
                outcomes == [
                    "delivered", "delivered", "unknown-peer", "invalid-parameter", "invalid-parameter", "queued", "delivered", "sent",
                    "delivered",
                ])
            let kept = try await bob.node.messages(state: nil, from: nil, limit: 100).map { String(buffer: $0.body) }
            #expect(kept.filter { $0 != "later" } == ["one", "two", "\0\u{FFFD}", "the last one has no line's end"])
        }
    }

    @Test func whoWantsOnlyFailuresGetsThem() async throws {
        try await self.inSession { alice, bob in
            let lines = (0..<900).map { $0 % 300 == 7 ? #"{"to":["nobody"],"body":"x"}"# : #"{"to":["bob"],"body":"\#($0)"}"# }
            let fields = [Self.type, "Prefer: respond-async, return=minimal"]
            let body = Array(lines.joined(separator: "\r\n").utf8)
            let answer = try await APICaller(path: alice.path).call("POST", "/v1/messages", fields, body: body)
            #expect(try self.lines(answer).map { $0["line"]?.number } == [8, 308, 608].map(Decimal.init))
            let kept = try await bob.node.messages(state: .unread, from: nil, limit: 1000).map { String(buffer: $0.body) }
            #expect(kept == (0..<900).filter { $0 % 300 != 7 }.map(String.init))
        }
    }

    /// A line is answered while the request goes on: a client that waits for that before the next line gets it.
    @Test func aLineIsAnsweredBeforeTheNextOneComes() async throws {
        try await self.inSession { alice, _ in
            try await APIConnection.with(alice.path) { call in
                try await call.say(
                    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n\(Self.type)\r\nTransfer-Encoding: chunked\r\n\r\n")
                for number in 1...3 {
                    let line = #"{"to":["bob"],"body":"x"}"# + "\n"
                    try await call.say("\(String(line.utf8.count, radix: 16))\r\n\(line)\r\n")
                    if number == 1 { #expect(try await call.head().status == 200) }
                    let chunk = String(decoding: try #require(try await call.chunk()), as: UTF8.self)
                    #expect(chunk.hasPrefix("{\"line\":\(number),") && chunk.contains("delivered"))
                }
                try await call.say("0\r\n\r\n")
                #expect(try await call.chunk() == nil)
            }
        }
    }

    @Test func aLineOfTheLimitIsReadAndALongerOneEndsTheRequest() async throws {
        try await self.inSession { alice, bob in
            let start = #"{"to":["bob"],"body":"x""#
            func line(_ length: Int) -> String { start + String(repeating: " ", count: length - start.utf8.count - 1) + "}" }
            let caller = APICaller(path: alice.path)
            let whole = line(MessageLines.lineLimit) + "\n" + start + "}\n"
            let answer = try await caller.call("POST", "/v1/messages", [Self.type], body: Array(whole.utf8))
            #expect(try self.lines(answer).count == 2)
            let longer = start + "}\n" + line(MessageLines.lineLimit + 1) + "\n" + start + "}\n"
            let refused = try await caller.call("POST", "/v1/messages", [Self.type], body: Array(longer.utf8))
            #expect(try self.lines(refused).map { $0["error"]?["code"]?.string } == [nil, "too-large"])
            #expect(try await bob.node.messages(state: nil, from: nil, limit: 100).count == 3)
        }
    }

    @Test func aWindowLetsThroughWhatFitsAndWakesWhoWaits() async throws {
        let window = SendingWindow(limit: 10)
        try await window.take(50)
        async let four: Void = window.take(4)
        window.release(50)
        try await four
        try await window.take(6)
        async let one: Void = window.take(1)
        window.close()
        do {
            try await one
            Issue.record("a window that is closed and full lets something through")
        } catch is CancellationError {}
    }

    @Test func aCancelledTaskWaitsForNoRoom() async throws {
        let window = SendingWindow(limit: 10)
        try await window.take(10)
        let waiting = Task { try await window.take(1) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}
