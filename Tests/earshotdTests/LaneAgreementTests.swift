import EarshotWire
import NIOCore
import Testing

@testable import earshotd

/// The message lane and the routes give the same answers to the same bytes: generated and mutated requests, with fixed seeds.
@Suite(.timeLimit(.minutes(2))) struct LaneAgreementTests {
    /// Seeds, each for one connection at a time: fewer than the lane has places.
    private static let seeds: Range<UInt64> = 0..<8
    private static let casesPerSeed = 16

    @Test func theLaneAnswersAsTheRoutesDo() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let path = alice.path
            let statuses = try await withThrowingTaskGroup(of: [Int].self) { group in
                for seed in Self.seeds {
                    group.addTask {
                        var requests = RequestGenerator(seed: seed)
                        var statuses: [Int] = []
                        for _ in 0..<Self.casesPerSeed { statuses += try await Self.compare(requests.next(), path) }
                        return statuses
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let metrics = try await APICaller(path: path).call("GET", "/v1/metrics").text
            for status in Set(statuses) {
                var count = 2 * statuses.count { $0 == status }
                // The request that brings a connection to the routes.
                if status == 200 { count += Self.seeds.count * Self.casesPerSeed }
                #expect(metrics.contains("earshot_api_requests_total{status=\"\(status)\"} \(count)\n"), "\(status)")
            }
            #expect(Set(statuses).isSuperset(of: [200, 202, 400, 403, 404, 415]))
        }
    }

    /// A part of the requests is for the lane, or the comparison shows nothing.
    @Test func theRequestsReachTheLane() {
        var count = 0
        for seed in Self.seeds {
            var requests = RequestGenerator(seed: seed)
            for _ in 0..<Self.casesPerSeed {
                let bytes = requests.next().flatMap { $0 }
                guard case .message(let head, let body) = bytes.withUnsafeBytes(PlainMessageRequest.find) else { continue }
                count += bytes.count >= head + body ? 1 : 0
            }
        }
        #expect(count * 3 > Self.seeds.count * Self.casesPerSeed)
    }

    /// Gives the same pieces to a connection that may take the lane and to one that the routes serve. Returns the statuses of the answers.
    private static func compare(_ pieces: [[UInt8]], _ path: String) async throws -> [Int] {
        let lane = try await APIConnection.with(path) { try await Self.answers(to: pieces, on: &$0) }
        let routes = try await APIConnection.with(path) { conversation in
            // The first request is not a message, so that the connection never takes the lane.
            try await conversation.ask("GET", "/v1/status")
            #expect(try await conversation.answer().status == 200)
            return try await Self.answers(to: pieces, on: &conversation)
        }
        #expect(lane == routes, "\(String(decoding: pieces.flatMap { $0 }, as: UTF8.self).debugDescription)")
        #expect(lane.dropLast().allSatisfy { $0.fields["connection"] != "close" }, "nothing is said behind the last answer")
        return lane.map(\.status)
    }

    private struct Answer: Equatable {
        let status: Int
        let fields: [String: String]
        let body: String
    }

    /// All answers until the daemon ends the connection, with the daemon's own ids replaced.
    private static func answers(to pieces: [[UInt8]], on conversation: inout APIConnection.Conversation) async throws -> [Answer] {
        // The daemon may end the connection before it has read everything.
        for piece in pieces { try? await conversation.say(piece) }
        conversation.finish()
        var answers: [Answer] = []
        do {
            while true {
                let answer = try await conversation.answer()
                let body = answer.text.replacing(/"message_id":"[-0-9a-f]{36}"/, with: "id")
                answers.append(Answer(status: answer.status, fields: answer.fields, body: body))
            }
        } catch let error where error is APIConnection.Ended || error is IOError {
            return answers
        }
    }
}

/// Requests that send messages, as clients write them and as they do not.
private struct RequestGenerator {
    private var random: Random

    init(seed: UInt64) { self.random = Random(state: seed) }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            self.state &+= 0x9E37_79B9_7F4A_7C15
            var value = self.state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    /// The bytes of one connection, in pieces.
    mutating func next() -> [[UInt8]] {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...3, using: &self.random) { bytes += self.request() }
        if self.chance(25) { self.mutate(&bytes) }
        var pieces: [[UInt8]] = []
        while !bytes.isEmpty {
            let count = self.chance(50) ? bytes.count : Int.random(in: 1...bytes.count, using: &self.random)
            pieces.append(Array(bytes.prefix(count)))
            bytes.removeFirst(count)
        }
        return pieces
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self.random) < percent }

    /// The first of the choices in most cases, else any.
    private mutating func mostly(_ choices: [String]) -> String {
        self.chance(90) ? choices[0] : choices[Int.random(in: 0..<choices.count, using: &self.random)]
    }

    private static let bodies = [
        #"{"to":["bob"],"body":"x"}"#, #"{"to":["nobody"],"body":"x"}"#, #"{"to":["bob"],"body":"later","queue":true}"#,
        #"{"to":"all","body":"live","mode":"unreliable"}"#, #"{"group":"none","body":"x"}"#, #"{ "to" : ["bob"] , "body_base64":"AP8=" }"#,
        #"{"to":["bob"],"body":"é\u00e9\n","content_type":"text/x"}"#, #"{"to":["nobody"],"body":"x","message_id":"x"}"#,
        #"{"to":["nobody"],"body":"x","message_id":"0b0e8f6e-4f0e-4c6b-9d0c-6f1f6a2b7a11"}"#,
        #"{"to":["bob"],"body":"x","timeout_seconds":0}"#,
        #"{"to":[],"body":"x"}"#, #"{"to":["bob"],"to":["bob"],"body":"x"}"#, #"{"to":["bob"],"body":"x","mode":"best"}"#,
        #"{"to":["bob"]}"#,
        #"{"to":["bob"],"body":7}"#, "{", "", "[]", "null", "\u{FEFF}{}",
    ]

    private mutating func request() -> [UInt8] {
        var body = Self.bodies[Int.random(in: 0..<Self.bodies.count, using: &self.random)]
        if self.chance(5) {
            // On both sides of the lane's limit.
            let padding = PlainMessageRequest.bodyLimit - body.utf8.count + Int.random(in: 0...1, using: &self.random)
            body += String(repeating: " ", count: padding)
        }
        var fields = [
            self.mostly([
                "Host: localhost", "host:EARSHOT", "Host: example.org", "Host: localhost\r\nHost: localhost", "Host : localhost", "",
            ]),
            self.mostly([
                "Content-Type: application/json", "content-type:\tApplication/JSON ; charset=utf-8 ", "Content-Type: text/plain", "",
                "Content-Type: application/json\r\nContent-Type: application/json",
            ]),
            self.mostly([
                "Content-Length: \(body.utf8.count)", "CONTENT-LENGTH:\(body.utf8.count)\t", "Content-Length: +5", "Content-Length:", "",
                "Content-Length: \(body.utf8.count)\r\nContent-Length: \(body.utf8.count)", "Content-Length: 0\(body.utf8.count)",
                "Content-Length: \(body.utf8.count + 1)", "Content-Length: \(max(0, body.utf8.count - 1))",
            ]),
            self.mostly([
                "", "User-Agent: x:y", "Accept: */*", "X-1:", "Connection: keep-alive", "Connection: close", "Origin: null", " folded",
                ": x",
                "x y: z", "X: \u{1}", "X: é", "X: y\rZ: z", "Upgrade: x\r\nConnection: upgrade", "Expect: 100-continue", "TE: trailers",
                "Transfer-Encoding: chunked", "X: " + String(repeating: "x", count: PlainMessageRequest.headLimit),
                "X: " + String(repeating: "x", count: 17 * 1024),
            ]),
        ]
        fields.shuffle(using: &self.random)
        let start = self.mostly([
            "POST /v1/messages HTTP/1.1", "POST /v1/messages HTTP/1.0", "POST /v1/messages?x HTTP/1.1", "post /v1/messages HTTP/1.1",
            "PUT /v1/messages HTTP/1.1", "POST /v1/messages/ HTTP/1.1", "POST  /v1/messages HTTP/1.1", "\r\nPOST /v1/messages HTTP/1.1",
        ])
        return Array((([start] + fields).filter { !$0.isEmpty }.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        let place = Int.random(in: 0..<bytes.count, using: &self.random)
        switch Int.random(in: 0..<5, using: &self.random) {
        case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &self.random)
        case 1: bytes.insert(UInt8.random(in: 0...255, using: &self.random), at: place)
        case 2: bytes.remove(at: place)
        case 3: bytes.removeLast(bytes.count - place)
        default: bytes.insert(contentsOf: bytes[place..<min(place + 20, bytes.count)], at: place)
        }
    }
}
