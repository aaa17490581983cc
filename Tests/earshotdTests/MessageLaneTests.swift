import EarshotWire
import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotCore
@testable import earshotd

/// The message lane: connections on which small messages are sent one after the other.
@Suite(.timeLimit(.minutes(1))) struct MessageLaneTests {
    private static let text = #"{"to":["nobody"],"body":"x"}"#

    private static func request(
        _ start: String = "POST /v1/messages HTTP/1.1", host: String = "Host: localhost", type: String = "Content-Type: application/json",
        length: String? = nil, more: [String] = [], body: String = Self.text
    ) -> String {
        let fields = [start, host, type, length ?? "Content-Length: \(body.utf8.count)"] + more
        return fields.filter { !$0.isEmpty }.map { "\($0)\r\n" }.joined() + "\r\n" + body
    }

    private static func find(_ text: some StringProtocol) -> PlainMessageRequest.Finding {
        text.utf8.withBytes(PlainMessageRequest.find)
    }

    // MARK: Recognised requests

    @Test func whatIsRecognised() {
        let limit = PlainMessageRequest.bodyLimit
        let taken = [
            Self.request(), Self.request(host: "host:EARSHOT"), Self.request(type: "content-type:\tApplication/JSON ; charset=utf-8 "),
            Self.request(length: "CONTENT-LENGTH: \(limit)"), Self.request(more: ["User-Agent: x:y", "Accept: */*", "X-1:"]),
        ]
        for text in taken {
            guard case .message(let head, _) = Self.find(text) else {
                Issue.record("\(text) was not recognised")
                continue
            }
            #expect(text.utf8.count - head == Self.text.utf8.count)
            for count in 0..<head { #expect(text.utf8.prefix(count).withBytes(PlainMessageRequest.find) == .incomplete) }
        }
        #expect(
            Self.find(Self.request(length: "Content-Length: 0", body: "")) == .message(head: Self.request(body: "").utf8.count, body: 0))
    }

    @Test func whatIsNotRecognised() {
        let limit = PlainMessageRequest.bodyLimit
        let others = [
            Self.request("GET /v1/messages HTTP/1.1"), Self.request("POST /v1/messages HTTP/1.0"),
            Self.request("POST /v1/messages?x HTTP/1.1"),
            Self.request("POST /v1/messages/read HTTP/1.1"), Self.request("post /v1/messages HTTP/1.1"), "\r\n" + Self.request(),
            Self.request(host: ""), Self.request(host: "Host: example.org"), Self.request(host: "Host: localhost\r\nHost: localhost"),
            Self.request(host: "Host : localhost"), Self.request(type: ""), Self.request(type: "Content-Type: application/x-ndjson"),
            Self.request(type: "Content-Type: application/json\r\nContent-Type: application/json"), Self.request(length: ""),
            Self.request(length: "Content-Length: \(limit + 1)"), Self.request(length: "Content-Length: +5"),
            Self.request(length: "Content-Length:"), Self.request(length: "Content-Length: 5\r\nContent-Length: 5"),
            Self.request(length: "Content-Length: 123456"), Self.request(more: ["Connection: keep-alive"]),
            Self.request(more: ["transfer-encoding: chunked"]), Self.request(more: ["Expect: 100-continue"]),
            Self.request(more: ["ORIGIN: null"]), Self.request(more: [" folded"]), Self.request(more: [": x"]),
            Self.request(more: ["x y: z"]),
            Self.request(more: ["X: \u{1}"]), Self.request(more: ["X: é"]), Self.request(more: ["X: y\rZ: z"]),
            Self.request(more: ["X: \(String(repeating: "x", count: PlainMessageRequest.headLimit))"]),
            Self.request().replacing("\r\n", with: "\n"), "x",
        ]
        for text in others { #expect(Self.find(text) == .other, "\(text)") }
        let endless = "POST /v1/messages HTTP/1.1\r\nX: " + String(repeating: "x", count: PlainMessageRequest.headLimit)
        #expect(Self.find(endless) == .other)
    }

    // MARK: A connection

    private final class Pending: Sendable {
        let all = Mutex<[@Sendable (MessageBatch.Outcome) -> Void]>([])
    }

    /// A channel whose node answers with `settle`.
    private final class Bench {
        let pending = Pending()
        let channel = EmbeddedChannel()
        let end: EventLoopFuture<MovedConnections.Socket?>

        init(unread: String = "") throws {
            let end = self.channel.eventLoop.makePromise(of: MovedConnections.Socket?.self)
            self.end = end.futureResult
            let handler = MessageLaneHandler(
                answers: MessageLaneAnswers(requests: RequestCounts(), logger: Logger(label: "test")), unread: ByteBuffer(string: unread),
                idleTime: .seconds(60), end: end
            ) { [pending] _, then in pending.all.withLock { $0.append(then) } }
            try self.channel.pipeline.syncOperations.addHandler(handler)
            try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        var waiting: Int { self.pending.all.withLock { $0.count } }

        func say(_ text: some StringProtocol) throws { try self.channel.writeInbound(ByteBuffer(substring: Substring(text))) }

        func settle() {
            let then = self.pending.all.withLock { $0.removeFirst() }
            then(.failure(EarshotError(.unknownPeer, "nobody")))
            self.channel.embeddedEventLoop.run()
        }

        /// The first line of the next answer, if there is one.
        func answer() throws -> String? {
            guard let buffer = try self.channel.readOutbound(as: ByteBuffer.self), buffer.readableBytes > 0 else { return nil }
            return String(buffer: buffer).split(separator: "\r\n").first.map(String.init)
        }
    }

    @Test func oneAfterTheOther() throws {
        let bench = try Bench(unread: MessageLaneTests.request())
        for turn in 0..<3 {
            #expect(bench.waiting == 1)
            bench.settle()
            #expect(try bench.answer() == "HTTP/1.1 404 Not Found")
            let (request, cut) = (MessageLaneTests.request(), 40 + turn * 40)
            try bench.say(request.prefix(cut))
            #expect(bench.waiting == 0)
            try bench.say(request.dropFirst(cut))
        }
        #expect(bench.channel.isActive)
    }

    /// The connection moves after the answer to the message before.
    @Test(arguments: [Self.request("GET /v1/status HTTP/1.1", body: ""), Self.request() + Self.request(), Self.request(body: "{")])
    func givesTheConnectionAway(other: String) throws {
        let bench = try Bench(unread: MessageLaneTests.request())
        try bench.say(other)
        #expect(bench.channel.isActive && bench.waiting == 1)
        bench.settle()
        #expect(try bench.answer() == "HTTP/1.1 404 Not Found")
        #expect(bench.waiting == 0 && !bench.channel.isActive)
        // An embedded channel has no socket.
        #expect(try bench.end.wait() == nil)
    }

    @Test func theClientHasSaidAll() throws {
        let bench = try Bench(unread: MessageLaneTests.request())
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(bench.channel.isActive)
        bench.settle()
        #expect(try bench.answer() != nil)
        #expect(!bench.channel.isActive)
    }

    /// When the daemon stops, the message being answered is the last. Messages of a client that has gone are dropped.
    @Test func theMessageBeingAnsweredIsTheLast() throws {
        let bench = try Bench(unread: MessageLaneTests.request())
        try bench.say(Self.request())
        bench.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        bench.settle()
        #expect(try bench.answer() != nil)
        #expect(bench.waiting == 0 && !bench.channel.isActive)
        let gone = try Bench(unread: MessageLaneTests.request())
        try gone.say(Self.request())
        _ = try gone.channel.finish(acceptAlreadyClosed: true)
        gone.settle()
        #expect(gone.waiting == 0)
    }

    /// A connection that waits for an answer is not idle.
    @Test func idleConnectionsEnd() throws {
        let bench = try Bench(unread: MessageLaneTests.request())
        let loop = bench.channel.embeddedEventLoop
        loop.advanceTime(by: .seconds(150))
        #expect(bench.channel.isActive)
        bench.settle()
        #expect(try bench.answer() != nil)
        loop.advanceTime(by: .seconds(59))
        #expect(bench.channel.isActive)
        loop.advanceTime(by: .seconds(61))
        #expect(!bench.channel.isActive)
    }

    /// A client that does not read its answers is disconnected as an idle client is.
    @Test func whoReadsNothingIsGivenUp() throws {
        let bench = try Bench()
        let socket = FullSocket()
        try bench.channel.pipeline.syncOperations.addHandler(socket, position: .first)
        try bench.say(Self.request("GET /v1/status HTTP/1.1", body: ""))
        #expect(bench.channel.isActive)
        bench.channel.embeddedEventLoop.advanceTime(by: .seconds(59))
        #expect(bench.channel.isActive)
        bench.channel.embeddedEventLoop.advanceTime(by: .seconds(61))
        #expect(!bench.channel.isActive)
        // Such a client does not delay a stop.
        let other = try Bench()
        try other.channel.pipeline.syncOperations.addHandler(FullSocket(), position: .first)
        try other.say(Self.request("GET /v1/status HTTP/1.1", body: ""))
        #expect(other.channel.isActive)
        other.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        #expect(!other.channel.isActive)
    }

    private final class FullSocket: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            self.promises.append(promise)
        }

        func flush(context: ChannelHandlerContext) {}

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            context.close(mode: mode, promise: promise)
            for waiting in self.promises { waiting?.fail(ChannelError.ioOnClosedChannel) }
            self.promises = []
        }

        private var promises: [EventLoopPromise<Void>?] = []
    }

    // MARK: Its beginning

    private final class Hearer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var heard: [String] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.heard.append(String(buffer: self.unwrapInboundIn(data))) }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { self.heard.append("event") }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.heard.append("error") }

        func channelInactive(context: ChannelHandlerContext) { self.heard.append("inactive") }
    }

    /// An event before the decision makes the connection stay, and reaches the routes behind the bytes that were read.
    @Test(arguments: ["", "POST /v1/mess"]) func aConnectionStays(read: String) throws {
        let happenings: [(name: String, (EmbeddedChannel) throws -> Void)] = [
            ("event", { $0.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }),
            ("event", { $0.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }),
            ("error", { $0.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel) }),
            ("inactive", { _ = try $0.finish(acceptAlreadyClosed: true) }),
        ]
        for (name, happen) in happenings {
            let (channel, hearer) = (EmbeddedChannel(), Hearer())
            let decision = channel.eventLoop.makePromise(of: MovedConnections.Socket?.self)
            try channel.pipeline.syncOperations.addHandlers([
                ConnectionStartHandler(moved: MovedConnections(), decision: decision), hearer,
            ])
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            if !read.isEmpty { try channel.writeInbound(ByteBuffer(string: read)) }
            #expect(hearer.heard.isEmpty)
            try happen(channel)
            #expect(hearer.heard == (read.isEmpty ? [name] : [read, name]))
            #expect(try decision.futureResult.wait() == nil)
        }
    }

    // MARK: On a real socket

    /// The lane serves the first message, and the routes serve all that follows the first other request.
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
                #expect(try await conversation.answer().code == "unknown-peer", "a half-closed client still gets its answer")
            }
        }
    }

    /// All requests arrive before the first answer, on a connection that begins on the lane and on one that the routes serve.
    @Test(arguments: [true, false]) func answersKeepTheOrderOfTheirRequests(beginsOnTheLane: Bool) async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { conversation in
                let other = "GET /v1/resources HTTP/1.1\r\nHost: localhost\r\n\r\n"
                if !beginsOnTheLane {
                    try await conversation.say(other)
                    #expect(try await conversation.answer().status == 200)
                }
                let (message, wrong) = (Self.request(), Self.request(body: "{"))
                let count = 200
                try await conversation.say(String(repeating: message + wrong + other + message, count: count))
                for _ in 0..<count {
                    for status in [404, 400, 200, 404] { try #require(try await conversation.answer().status == status) }
                }
            }
        }
    }

    /// A message whose rest never arrives is refused with the same words on and off the lane.
    @Test(arguments: [true, false]) func aMessageThatBreaksOff(beginsOnTheLane: Bool) async throws {
        try await APIServer.with { server in
            for length in [20, Self.request().utf8.count - 1] {
                try await APIConnection.with(server.path) { conversation in
                    if !beginsOnTheLane {
                        try await conversation.ask("GET", "/v1/status")
                        #expect(try await conversation.answer().status == 200)
                    }
                    try await conversation.say(String(decoding: Self.request().utf8.prefix(length), as: UTF8.self))
                    conversation.finish()
                    let answer = try await conversation.answer()
                    #expect(answer.status == 400 && answer.code == "invalid-parameter" && answer.fields["connection"] == "close")
                    #expect(try await conversation.hasEnded())
                }
            }
        }
    }

    // MARK: Places

    @Test func thereAreSoManyPlaces() {
        let moved = MovedConnections()
        for _ in 0..<MovedConnections.limit { #expect(moved.enter()) }
        #expect(!moved.enter())
        moved.leave()
        #expect(moved.enter())
        moved.leave()
        moved.stop()
        #expect(!moved.enter())
    }
}

extension Sequence<UInt8> {
    fileprivate func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { Array(self).withUnsafeBytes(body) }
}
