import EarshotCore
import EarshotWire
import NIOCore
import NIOSSL
import Testing

@testable import Earshot
@testable import EarshotLocalSend

@Suite(.timeLimit(.minutes(2))) struct ServerTests {
    private static let info = #"{"alias":"phone","version":"2.1","fingerprint":"","port":53317,"protocol":"https"}"#
    private static let offer =
        #"{"info":\#(Self.info),"files":{"1":{"id":"1","fileName":"a.txt","size":5,"fileType":"text/plain","later":1}}}"#

    @Test(arguments: [TLSVersion.tlsv12, .tlsv13])
    func `a client's certificate is its id, in either version of TLS`(_ version: TLSVersion) async throws {
        let certificate = try DeviceCertificate.load(from: nil)
        try await withDevice { _, node, port in
            let client = try await RawClient.connect(to: port, .tls(certificate, version))
            try await client.send(post("v2/register", Self.info))
            let answer = await client.receive(until: "}")
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(answer.contains(#""alias":"alice""#))
            #expect(!answer.contains("port"))
            guard case .registered(let info, let sender) = await node.call({ _ in true }) else {
                Issue.record("no call")
                return
            }
            #expect(info.alias == "phone")
            #expect(sender.id == certificate.id)
            #expect(sender.address.host == "127.0.0.1")
        }
    }

    @Test func `a client without a certificate is nobody, and is served`() async throws {
        try await withDevice { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/register", Self.info))
            _ = await client.receive(until: "}")
            guard case .registered(_, let sender) = await node.call({ _ in true }) else {
                Issue.record("no call")
                return
            }
            #expect(sender.id == nil)
        }
    }

    @Test func `plain HTTP is closed at its first byte`() async throws {
        try await withDevice { _, node, port in
            let client = try await RawClient.connect(to: port, .plain)
            try await client.send("G")
            #expect(await client.receiveAll() == "")
            #expect(node.calls.isEmpty)
        }
    }

    @Test(arguments: [
        ("GET /api/localsend/v2/info HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"), ("GET /api/localsend/v1/info HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found"), ("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found"),
        ("PUT /api/localsend/v2/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", "405 Method Not Allowed"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\nbytes behind it", "404 Not Found"),
        ("GET /api/localsend/v2/info HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI", "200 OK"),
        (post("v2/upload?sessionId=1", ""), "400 Bad Request"), (post("v2/register", "{"), "400 Bad Request"),
        (post("v2/prepare-upload", "{\"info\":\(Self.info),\"files\":{}}"), "400 Bad Request"), (post("v2/cancel", ""), "200 OK"),
        (post("v2/prepare-upload", Self.offer), "204 No Content"), ("\0\u{1}\u{2}", "400 Bad Request"),
        ("GET / HTTP/9.9\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400 Bad Request"),
    ])
    func `every request has its status`(_ request: String, _ status: String) async throws {
        try await withDevice { _, _, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(request)
            let answer = await client.receive(until: "\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 \(status)\r\n") || answer.hasPrefix("HTTP/1.0 \(status)\r\n"), "\(answer)")
        }
    }

    @Test func `a head has at most 16 KiB`() async throws {
        try await withDevice { _, _, port in
            func answer(_ bytes: Int) async throws -> String {
                let client = try await RawClient.connect(to: port)
                // The path, and the name and value of one field, count.
                let path = "/api/localsend/v2/info"
                let value = String(repeating: "x", count: bytes - path.utf8.count - 1)
                try await client.send("GET \(path) HTTP/1.1\r\na: \(value)\r\n\r\n")
                return await client.receive(until: "\r\n\r\n")
            }
            let answer1 = try await answer(LocalSendLimits.headBytes)
            #expect(answer1.hasPrefix("HTTP/1.1 200"))
            let answer2 = try await answer(LocalSendLimits.headBytes + 1)
            #expect(answer2.hasPrefix("HTTP/1.1 400"))
        }
    }

    @Test func `a head has at most 100 fields`() async throws {
        try await withDevice { _, _, port in
            func answer(_ fields: Int) async throws -> String {
                let client = try await RawClient.connect(to: port)
                let lines = String(repeating: "a: b\r\n", count: fields)
                try await client.send("GET /api/localsend/v2/info HTTP/1.1\r\n\(lines)\r\n")
                return await client.receive(until: "\r\n\r\n")
            }
            let answer3 = try await answer(LocalSendLimits.headFields)
            #expect(answer3.hasPrefix("HTTP/1.1 200"))
            let answer4 = try await answer(LocalSendLimits.headFields + 1)
            #expect(answer4.hasPrefix("HTTP/1.1 400"))
        }
    }

    @Test func `a JSON body has at most 4 MiB`() async throws {
        try await withDevice { _, _, port in
            func answer(_ bytes: Int, chunked: Bool) async throws -> String {
                let client = try await RawClient.connect(to: port)
                let body = Self.info + String(repeating: " ", count: bytes - Self.info.utf8.count)
                let length = chunked ? "Transfer-Encoding: chunked" : "Content-Length: \(bytes)"
                try? await client.send("POST /api/localsend/v2/register HTTP/1.1\r\n\(length)\r\n\r\n")
                if chunked {
                    try? await client.send(String(bytes, radix: 16) + "\r\n" + body + "\r\n0\r\n\r\n")
                } else {
                    try? await client.send(body)
                }
                return await client.receive(until: "\r\n\r\n")
            }
            for chunked in [false, true] {
                let answer5 = try await answer(LocalSendLimits.bodyBytes, chunked: chunked)
                #expect(answer5.hasPrefix("HTTP/1.1 200"))
                let answer6 = try await answer(LocalSendLimits.bodyBytes + 1, chunked: chunked)
                #expect(answer6.hasPrefix("HTTP/1.1 413"))
            }
        }
    }

    @Test func `the PIN is checked before the body`() async throws {
        let node = TestNode(.init(pin: .pinRequired))
        try await withDevice(node) { _, node, port in
            let client = try await RawClient.connect(to: port)
            // Only the head is sent.
            try await client.send("POST /api/localsend/v2/prepare-upload?pin=12+4 HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
            let answer = await client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 401 Unauthorized\r\n"))
            #expect(answer.contains("connection: close"))
            #expect(node.calls == [.pin("12 4")])
        }
    }

    @Test(arguments: DeviceRefusal.allCases)
    func `a refused offer has its status and a message`(_ refusal: DeviceRefusal) async throws {
        try await withDevice(TestNode(.init(offer: .failure(refusal)))) { _, _, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/prepare-upload", Self.offer))
            let answer = await client.receive(until: "}")
            #expect(answer.hasPrefix("HTTP/1.1 \(refusal.rawValue) "))
            #expect(answer.contains("{\"message\":\""))
        }
    }

    @Test func `a connection carries one request after the other`() async throws {
        let answer = DeviceOfferAnswer.upload(session: "s", tokens: [DeviceToken(file: "1", token: "t")])
        try await withDevice(TestNode(.init(offer: .success(answer)))) { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/prepare-upload", Self.offer))
            let first = await client.receive(until: #""s"}"#)
            #expect(first.hasSuffix(#"{"files":{"1":"t"},"sessionId":"s"}"#))
            try await client.send(
                "POST /api/localsend/v2/upload?sessionId=s&fileId=1&token=t HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n")
            _ = await client.receive(until: "HTTP/1.1 200", count: 2)
            try await client.send(post("v2/upload?sessionId=s&fileId=1&token=t", "again"))
            _ = await client.receive(until: "HTTP/1.1 200", count: 3)
            let upload = DeviceUpload(session: "s", file: "1", token: "t")
            let bodies = node.calls.compactMap { call -> String? in
                guard case .uploaded(upload, _, let bytes) = call else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
            #expect(bodies == ["hello", "again"])
        }
    }

    @Test func `a request before the answer closes the connection`() async throws {
        try await withDevice(TestNode(.init(holdsOffer: true))) { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/prepare-upload", Self.offer) + post("v2/cancel", ""))
            #expect(await client.receiveAll() == "")
            #expect(!node.calls.contains { if case .cancelled = $0 { true } else { false } })
        }
    }

    @Test(arguments: [false, true])
    func `a sender that hangs up withdraws its offer`(_ abruptly: Bool) async throws {
        try await withDevice(TestNode(.init(holdsOffer: true))) { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/prepare-upload", Self.offer))
            await node.call { if case .offered = $0 { true } else { false } }
            if abruptly { try await client.abort() } else { await client.close() }
            await node.call { $0 == .offerWithdrawn }
        }
    }

    @Test func `a cut upload fails its body`() async throws {
        try await withDevice { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(
                "POST /api/localsend/v2/upload?sessionId=s&fileId=1&token=t HTTP/1.1\r\nContent-Length: 10\r\n\r\nhello")
            await node.call { $0 == .uploadBegan }
            await client.close()
            await node.call { $0 == .uploadFailed }
        }
    }

    @Test func `an answer in the middle of an upload reaches the sender`() async throws {
        try await withDevice(TestNode(.init(upload: .tooLarge, answersUploadAtOnce: true))) { _, _, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(
                "POST /api/localsend/v2/upload?sessionId=s&fileId=1&token=t HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n")
            let piece = ByteBuffer(repeating: 7, count: 256 * 1024)
            for _ in 0..<8 { try? await client.send(piece) }
            let answer = await client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 413"))
        }
    }

    @Test func `an upload is held up while its reader is behind`() async throws {
        let inbox = DataInbox(limit: LocalSendLimits.waitingBytes)
        let piece = ByteBuffer(repeating: 1, count: 64 * 1024)
        // Before the first read, little is taken.
        #expect(inbox.put(piece) == false)
        let body = RequestBody(inbox: inbox) {}
        var iterator = body.makeAsyncIterator()
        #expect(try await iterator.next()?.readableBytes == 64 * 1024)
        for _ in 1..<(LocalSendLimits.waitingBytes / piece.readableBytes) { #expect(inbox.put(piece)) }
        #expect(inbox.put(piece) == false)
    }

    @Test func `large bodies share 8 MiB, and ordinary ones need none of it`() async throws {
        let budget = BodyBudget()
        func collect(_ bytes: Int) async throws -> Int {
            let inbox = DataInbox(limit: .max)
            _ = inbox.put(ByteBuffer(repeating: 1, count: bytes))
            inbox.end(.success(()))
            return try await budget.collect(RequestBody(inbox: inbox) {}, length: nil) { $0.readableBytes }
        }
        // Bodies that have arrived and whose ends are outstanding.
        let large = LocalSendLimits.bodyBytes
        var inboxes: [DataInbox] = []
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                let inbox = DataInbox(limit: .max)
                _ = inbox.put(ByteBuffer(repeating: 1, count: large))
                inboxes.append(inbox)
                group.addTask { try await budget.collect(RequestBody(inbox: inbox) {}, length: nil) { $0.readableBytes } }
            }
            while budget.charged < 2 * (large - LocalSendLimits.ordinaryBodyBytes) { await Task.yield() }
            // The two leave room for 128 KiB beyond an ordinary body.
            let room = LocalSendLimits.allBodyBytes - budget.charged
            #expect(try await collect(LocalSendLimits.ordinaryBodyBytes + room) == LocalSendLimits.ordinaryBodyBytes + room)
            await #expect(throws: DeviceRefusal.busy) { try await collect(LocalSendLimits.ordinaryBodyBytes + room + 1) }
            for inbox in inboxes { inbox.end(.success(())) }
            for try await count in group { #expect(count == large) }
        }
        #expect(budget.charged == 0)
    }

    @Test func `an address has 8 connections`() async throws {
        try await withDevice(TestNode(.init(holdsOffer: true))) { _, node, port in
            var clients: [RawClient] = []
            for _ in 0..<LocalSendLimits.connectionsPerAddress {
                let client = try await RawClient.connect(to: port)
                try await client.send(post("v2/prepare-upload", Self.offer))
                clients.append(client)
            }
            while node.calls.count(where: { if case .offered = $0 { true } else { false } }) < clients.count { await Task.yield() }
            let other = try await RawClient.connect(to: port)
            #expect(await other.receiveAll() == "")
            await clients[0].close()
            await node.call { $0 == .offerWithdrawn }
        }
    }

    @Test func `the end of the transport closes its connections`() async throws {
        let (client, node) = try await withDevice(TestNode(.init(holdsOffer: true))) { _, node, port in
            let client = try await RawClient.connect(to: port)
            try await client.send(post("v2/prepare-upload", Self.offer))
            await node.call { if case .offered = $0 { true } else { false } }
            return (client, node)
        }
        _ = await client.receiveAll()
        #expect(node.calls.contains(.offerWithdrawn))
    }
}
