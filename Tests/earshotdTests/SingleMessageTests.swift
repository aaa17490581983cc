import EarshotClient
import EarshotWire
import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotCore
@testable import earshotd

/// Requests that are answered without a route, beside those that are not.
@Suite(.timeLimit(.minutes(1))) struct SingleMessageTests {
    private static let text = #"{"to":["nobody"],"body":"x"}"#

    private static func head(
        _ change: (inout HTTPRequest) -> Void = { _ in }
    ) -> HTTPRequest {
        var head = HTTPRequest(
            method: .post, scheme: "http", authority: "localhost", path: "/v1/messages",
            headerFields: [.contentType: "application/json", .contentLength: "\(Self.text.utf8.count)"])
        change(&head)
        return head
    }

    private static let status = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: "/v1/status")

    // MARK: What is taken

    @Test func aMessageIsTakenWhereNothingIsUnanswered() {
        var machine = SingleMessageStateMachine()
        #expect(machine.received(.head(Self.head())) == .keep)
        #expect(machine.received(.body(ByteBuffer(string: "a"))) == .keep)
        #expect(machine.received(.body(ByteBuffer(string: "b"))) == .keep)
        #expect(!machine.isAnswering)
        #expect(machine.received(.end(nil)) == .answer(body: ByteBuffer(string: "ab")))
        #expect(machine.isAnswering)
        machine.answered()
        #expect(!machine.isAnswering)
        // Another's request, its answer before its end, and a message behind it.
        #expect(machine.received(.head(Self.status)) == .forward)
        #expect(machine.received(.head(Self.head())) == .forward)
        #expect(machine.received(.end(nil)) == .forward)
        machine.wroteEnd()
        #expect(machine.received(.head(Self.head())) == .forward)
        machine.wroteEnd()
        machine.wroteEnd()
        #expect(machine.received(.head(Self.head())) == .forward, "the body of the one before is not over")
        #expect(machine.received(.end(nil)) == .forward)
        machine.wroteEnd()
        #expect(machine.received(.head(Self.head())) == .keep)
    }

    @Test func nothingIsTakenBehindTheLastRequest() {
        var machine = SingleMessageStateMachine()
        #expect(machine.received(.head(Self.head { $0.headerFields[.connection] = "Close" })) == .forward)
        #expect(machine.received(.end(nil)) == .forward)
        machine.wroteEnd()
        #expect(machine.received(.head(Self.head())) == .forward)
    }

    @Test func nothingIsTakenBehindTheLastAnswer() {
        var machine = SingleMessageStateMachine()
        _ = machine.received(.head(Self.status))
        _ = machine.received(.end(nil))
        machine.wroteHead(isLast: true)
        machine.wroteEnd()
        #expect(machine.received(.head(Self.head())) == .forward)
        #expect(machine.received(.end(nil)) == .forward)
        #expect(!machine.isAnswering && machine.isRouteAtWork)
    }

    @Test func whatIsCollectedIsGivenUp() {
        var machine = SingleMessageStateMachine()
        #expect(machine.giveUp().isEmpty)
        _ = machine.received(.head(Self.head()))
        _ = machine.received(.body(ByteBuffer(string: "a")))
        #expect(machine.giveUp() == [.head(Self.head()), .body(ByteBuffer(string: "a"))])
        #expect(machine.received(.body(ByteBuffer(string: "b"))) == .forward)
        #expect(machine.received(.end(nil)) == .forward)
        machine.wroteEnd()
        _ = machine.received(.head(Self.head()))
        #expect(machine.giveUp() == [.head(Self.head())])
    }

    @Test func whatIsNotTaken() {
        let limit = SingleMessageStateMachine.bodyLimit
        let changes: [(isTaken: Bool, (inout HTTPRequest) -> Void)] = [
            (true, { $0.headerFields[.contentLength] = "\(limit)" }), (false, { $0.headerFields[.contentLength] = "\(limit + 1)" }),
            (false, { $0.headerFields[.contentLength] = nil }), (false, { $0.headerFields[.contentLength] = "x" }),
            (true, { $0.headerFields[.contentType] = "Application/JSON; charset=utf-8" }), (false, { $0.headerFields[.contentType] = nil }),
            (false, { $0.headerFields[.contentType] = "application/x-ndjson" }), (false, { $0.method = .get }),
            (false, { $0.path = "/v1/messages/read" }), (false, { $0.path = "/v1/messages?x" }), (false, { $0.authority = "example.org" }),
            (false, { $0.headerFields[.origin] = "null" }), (false, { $0.headerFields[.expect] = "100-continue" }),
            (false, { $0.headerFields[.connection] = "keep-alive" }), (false, { $0.headerFields[.transferEncoding] = "chunked" }),
            (true, { $0.headerFields[.userAgent] = "x" }),
        ]
        for (index, (isTaken, change)) in changes.enumerated() {
            var machine = SingleMessageStateMachine()
            #expect(machine.received(.head(Self.head(change))) == (isTaken ? .keep : .forward), "\(index)")
        }
    }

    /// What is written without the encoder is what that writes.
    @Test func receipts() throws {
        func peer(_ byte: UInt8) throws -> PeerID { try #require(PeerID(bytes: [UInt8](repeating: byte, count: 32))) }
        var writer = MessageReceiptWriter()
        let failed = EarshotError.Code.inboxFull
        for errors in [[nil], [nil, nil], [nil, failed]] {
            let recipients = try errors.enumerated().map { index, error in
                Message.Recipient(
                    peerID: try peer(UInt8(index)), status: error == nil ? .delivered : .failed, error: error,
                    errorMessage: error.map { _ in "full" })
            }
            let sent = SentMessage(id: .random(), recipients: recipients)
            let receipt = ControlAPI.MessageReceipt(
                messageID: sent.id.description, recipients: recipients.map(ControlAPI.Recipient.init))
            #expect(try writer.write(sent) == ByteBuffer(bytes: try ControlJSON.encode(receipt)))
        }
    }

    // MARK: While a message is being answered

    private final class Pending: Sendable {
        let all = Mutex<[@Sendable (MessageBatch.Outcome) -> Void]>([])
    }

    /// A channel with a node that answers when it is told to.
    private final class Bench {
        let pending = Pending()
        let counts = RequestCounts()
        let channel = EmbeddedChannel()
        /// How often the socket was to be read.
        let reads = ReadCounter()
        let errors = ErrorCounter()

        init() throws {
            let handler = SingleMessageHandler(requests: self.counts, logger: Logger(label: "test")) { [pending] _, then in
                pending.all.withLock { $0.append(then) }
            }
            try self.channel.pipeline.syncOperations.addHandlers([self.reads, handler, self.errors])
            try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func ask(_ head: HTTPRequest, _ body: String = "") throws {
            try self.channel.writeInbound(HTTPRequestPart.head(head))
            if !body.isEmpty { try self.channel.writeInbound(HTTPRequestPart.body(ByteBuffer(string: body))) }
            try self.channel.writeInbound(HTTPRequestPart.end(nil))
        }

        func settle() {
            let then = self.pending.all.withLock { $0.removeFirst() }
            then(.failure(EarshotError(.unknownPeer, "nobody")))
            self.channel.embeddedEventLoop.run()
        }

        /// Status of the next answer, if there is one.
        func answer() throws -> Int? {
            var status: Int?
            while let part = try self.channel.readOutbound(as: HTTPResponsePart.self) {
                if case .head(let head) = part { status = head.status.code }
                if case .end = part { return status }
            }
            return status
        }
    }

    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = Any
        var count = 0

        func read(context: ChannelHandlerContext) {
            self.count += 1
            context.read()
        }
    }

    private final class ErrorCounter: ChannelInboundHandler {
        typealias InboundIn = Any
        var errors = 0
        var events = 0

        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.errors += 1 }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { self.events += 1 }
    }

    @Test func answersKeepTheOrderOfTheirRequests() throws {
        let bench = try Bench()
        try bench.ask(Self.head(), Self.text)
        try bench.ask(Self.head(), "{")
        try bench.ask(Self.status)
        #expect(try bench.answer() == nil)
        #expect(try bench.channel.readInbound(as: HTTPRequestPart.self) == nil)
        bench.settle()
        #expect(try bench.answer() == 404)
        #expect(try bench.answer() == 400, "it was answered at once when its turn came")
        #expect(try bench.channel.readInbound(as: HTTPRequestPart.self) == .head(Self.status))
        #expect(bench.counts.byStatus == [404: 1, 400: 1])
    }

    /// The client has said all, or broke off behind a request that is whole: it is told once the answer is written.
    @Test func whatComesBehindAMessageWaits() throws {
        let bench = try Bench()
        try bench.ask(Self.head(), Self.text)
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        bench.channel.pipeline.fireErrorCaught(HTTPParserError.invalidEOFState)
        #expect(bench.errors.errors == 0 && bench.errors.events == 0)
        bench.settle()
        #expect(try bench.answer() == 404)
        #expect(bench.errors.errors == 1 && bench.errors.events == 1)
    }

    /// What is there of a message whose rest does not come is for the routes to answer.
    @Test func aMessageThatBreaksOff() throws {
        let bench = try Bench()
        try bench.channel.writeInbound(HTTPRequestPart.head(Self.head()))
        #expect(try bench.channel.readInbound(as: HTTPRequestPart.self) == nil)
        bench.channel.pipeline.fireErrorCaught(HTTPParserError.invalidEOFState)
        #expect(try bench.channel.readInbound(as: HTTPRequestPart.self) == .head(Self.head()))
        #expect(bench.errors.errors == 1)
    }

    /// A client that asks on and on does not keep the daemon from stopping.
    @Test func theMessageBeingAnsweredIsTheLastWhenTheServerStops() throws {
        let bench = try Bench()
        try bench.ask(Self.head(), Self.text)
        try bench.ask(Self.head(), Self.text)
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(bench.errors.events == 0)
        bench.settle()
        #expect(try bench.answer() == 404)
        #expect(bench.errors.events == 1 && bench.pending.all.withLock { $0.isEmpty })
        let other = try Bench()
        try other.channel.writeInbound(HTTPRequestPart.head(Self.head()))
        other.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(other.errors.events == 1, "nothing was being answered")
        #expect(try other.channel.readInbound(as: HTTPRequestPart.self) == .head(Self.head()), "the routes wait for its body")
    }

    /// Nothing is sent in the name of a client that has gone.
    @Test func whatWaitsGoesWithItsConnection() throws {
        let bench = try Bench()
        for _ in 0..<3 { try bench.ask(Self.head(), Self.text) }
        _ = try bench.channel.finish(acceptAlreadyClosed: true)
        bench.settle()
        #expect(bench.pending.all.withLock { $0.isEmpty })
    }

    /// Nor for one that does not read the answers; a route that answers while it reads is read for all the same.
    @Test func answersThatAreNotRead() throws {
        let bench = try Bench()
        for _ in 0..<3 { try bench.ask(Self.head(), Self.text) }
        bench.channel.isWritable = false
        bench.settle()
        #expect(bench.pending.all.withLock { $0.isEmpty })
        bench.channel.isWritable = true
        bench.channel.pipeline.fireChannelWritabilityChanged()
        #expect(bench.pending.all.withLock { $0.count } == 1)
        bench.settle()
        bench.settle()
        try bench.channel.writeInbound(HTTPRequestPart.head(Self.status))
        let count = bench.reads.count
        bench.channel.isWritable = false
        bench.channel.read()
        #expect(bench.reads.count == count + 1)
    }

    @Test func aClientThatSendsOnIsNotReadFrom() throws {
        let bench = try Bench()
        try bench.ask(Self.head(), Self.text)
        let count = bench.reads.count
        bench.channel.read()
        #expect(bench.reads.count == count + 1, "nothing is kept yet")
        try bench.ask(Self.status)
        bench.channel.read()
        #expect(bench.reads.count == count + 1)
        bench.settle()
        #expect(bench.reads.count == count + 2)
        // The route has answered.
        try bench.channel.writeOutbound(HTTPResponsePart.end(nil))
        bench.channel.isWritable = false
        bench.channel.read()
        #expect(bench.reads.count == count + 2)
        bench.channel.isWritable = true
        bench.channel.pipeline.fireChannelWritabilityChanged()
        #expect(bench.reads.count == count + 3)
    }

    // MARK: On a real socket

    @Test func oneConnectionTakesAllKinds() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { conversation in
                let json = ["Content-Type: application/json"]
                for _ in 0..<2 {
                    try await conversation.ask("POST", "/v1/messages", json, body: Array(Self.text.utf8))
                    #expect(try await conversation.answer().code == "unknown-peer")
                    try await conversation.ask("POST", "/v1/messages", json, body: Array("{".utf8))
                    #expect(try await conversation.answer().code == "invalid-parameter")
                    try await conversation.ask("GET", "/v1/status")
                    #expect(try await conversation.answer().status == 200)
                }
                try await conversation.ask("POST", "/v1/messages", json, body: Array(Self.text.utf8))
                conversation.finish()
                #expect(try await conversation.answer().code == "unknown-peer", "it has said all, and still hears the answer")
            }
        }
    }

    /// All are there before the first is answered.
    @Test func manyAtOnce() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { conversation in
                let fields = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: \(Self.text.utf8.count)\r\n\r\n"
                let message = "POST /v1/messages HTTP/1.1\r\n\(fields)\(Self.text)"
                let other = "GET /v1/resources HTTP/1.1\r\nHost: localhost\r\n\r\n"
                let count = 200
                try await conversation.say(String(repeating: message + other + message, count: count))
                for _ in 0..<count {
                    for status in [404, 200, 404] { try #require(try await conversation.answer().status == status) }
                }
            }
        }
    }
}
