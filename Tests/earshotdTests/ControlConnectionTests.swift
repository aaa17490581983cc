import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import earshotd

/// The rules by which requests and answers pass on a connection to the control API.
@Suite struct ControlConnectionStateMachineTests {
    private static let close: HTTPHeaders = ["connection": "close"]

    private static func head(_ method: HTTPMethod = .GET, _ version: HTTPVersion = .http1_1, _ fields: HTTPHeaders = [:]) -> HTTPRequestHead
    {
        HTTPRequestHead(version: version, method: method, uri: "/v1/status", headers: fields)
    }

    private static func answer(_ status: HTTPResponseStatus = .ok, _ fields: HTTPHeaders = [:]) -> HTTPServerResponsePart {
        .head(HTTPResponseHead(version: .http1_1, status: status, headers: fields))
    }

    /// A machine that has received a whole request.
    private static func machine(_ head: HTTPRequestHead = Self.head()) -> ControlConnectionStateMachine {
        var machine = ControlConnectionStateMachine()
        _ = machine.received(.head(head))
        _ = machine.received(.end(nil))
        return machine
    }

    @Test func theNextRequestWaitsForTheAnswer() {
        var machine = ControlConnectionStateMachine()
        #expect(machine.received(.head(Self.head())) == .begin(Self.head()) && !machine.holdsArrivals)
        #expect(machine.received(.body(ByteBuffer(string: "a"))) == .forward && !machine.holdsArrivals)
        #expect(machine.received(.end(nil)) == .forward && machine.holdsArrivals)
        #expect(machine.answered(Self.answer()) == Self.answer() && machine.holdsArrivals)
        #expect(machine.answered(.end(nil)) == .end(nil) && !machine.holdsArrivals)
        #expect(machine.received(.head(Self.head(.POST))) == .begin(Self.head(.POST)))
    }

    @Test func aRequestIsReadToItsEndBehindAnEarlyAnswer() {
        var machine = ControlConnectionStateMachine()
        _ = machine.received(.head(Self.head(.POST)))
        _ = machine.answered(Self.answer())
        #expect(machine.answered(.end(nil)) == .end(nil) && !machine.holdsArrivals)
        #expect(machine.received(.body(ByteBuffer(string: "a"))) == .forward)
        #expect(machine.received(.end(nil)) == .forward && !machine.holdsArrivals)
        #expect(machine.received(.head(Self.head())) == .begin(Self.head()))
    }

    @Test func theClientSaysWhichRequestIsTheLast() {
        let last = [
            Self.head(.GET, .http1_1, Self.close), Self.head(.GET, .http1_1, ["Connection": "TE, Close"]), Self.head(.GET, .http1_0),
            Self.head(.GET, .http1_0, ["Connection": "keep-alive"]), Self.head(.CONNECT),
            Self.head(.GET, .http1_1, ["Connection": "upgrade", "Upgrade": "x"]),
        ]
        for head in last {
            var machine = ControlConnectionStateMachine()
            var seen = head
            seen.headers.replaceOrAdd(name: "connection", value: "close")
            #expect(machine.received(.head(head)) == .begin(seen))
            #expect(machine.received(.end(nil)) == .forward)
            #expect(machine.answered(Self.answer()) == Self.answer(.ok, Self.close))
            #expect(machine.answered(.end(nil)) == .end(nil))
            #expect(machine.received(.head(Self.head())) == .discard && machine.parserFailed() == .discard && !machine.holdsArrivals)
        }
    }

    @Test func anAnswerSaysThatItIsTheLast() {
        var machine = Self.machine()
        // An informational head does not count.
        #expect(machine.answered(Self.answer(.continue, Self.close)) == Self.answer(.continue, Self.close))
        #expect(machine.answered(Self.answer(.ok, ["Connection": "Close"])) == Self.answer(.ok, Self.close))
        #expect(machine.answered(.end(nil)) == .end(nil))
        #expect(machine.received(.head(Self.head())) == .discard && machine.parserFailed() == .discard)
    }

    @Test func theBodyOfTheLastRequestIsReadToItsEnd() {
        var machine = ControlConnectionStateMachine()
        _ = machine.received(.head(Self.head(.POST)))
        _ = machine.answered(Self.answer(.notFound, Self.close))
        _ = machine.answered(.end(nil))
        #expect(machine.received(.body(ByteBuffer(string: "a"))) == .forward)
        #expect(machine.answered(Self.answer(.badRequest)) == .body(.byteBuffer(ByteBuffer())), "nothing is said behind the last answer")
        #expect(machine.received(.end(nil)) == .forward)
        #expect(machine.received(.head(Self.head())) == .discard)
    }

    @Test func theAnswerToAHeadHasNoBody() {
        var machine = Self.machine(Self.head(.HEAD))
        #expect(machine.answered(Self.answer()) == Self.answer())
        #expect(machine.answered(.end(nil)) == .body(.byteBuffer(ByteBuffer())))
        _ = machine.received(.head(Self.head()))
        #expect(machine.answered(.end(nil)) == .end(nil))
    }

    @Test func nothingIsReadBehindARequestForAnotherProtocol() {
        var machine = ControlConnectionStateMachine()
        _ = machine.received(.head(Self.head(.CONNECT)))
        #expect(machine.readsSocket, "the request itself is read to its end")
        _ = machine.received(.end(nil))
        #expect(!machine.readsSocket)
        _ = machine.answered(.end(nil))
        #expect(!machine.readsSocket)
        #expect(Self.machine().readsSocket && Self.machine(Self.head(.GET, .http1_0)).readsSocket)
    }

    @Test func aParserErrorIsAnsweredBetweenRequests() {
        var machine = ControlConnectionStateMachine()
        #expect(machine.parserFailed() == .refuse)
        #expect(machine.parserFailed() == .discard && machine.received(.head(Self.head())) == .discard)
        var served = Self.machine()
        _ = served.answered(.end(nil))
        #expect(served.parserFailed() == .refuse)
    }

    @Test func aParserErrorInABodyIsItsReaders() {
        var machine = ControlConnectionStateMachine()
        _ = machine.received(.head(Self.head(.POST)))
        #expect(machine.parserFailed() == .forward)
    }

    @Test func aConnectionIsIdleOnceAllAnswersAreSent() {
        var machine = Self.machine()
        _ = machine.answered(.end(nil))
        #expect(machine.answerSent() == .startIdleTimer)
        for _ in 0..<2 {
            _ = machine.received(.head(Self.head()))
            _ = machine.received(.end(nil))
            _ = machine.answered(.end(nil))
        }
        #expect(machine.answerSent() == .wait, "the socket has not taken the second answer")
        _ = machine.received(.head(Self.head()))
        #expect(machine.answerSent() == .wait, "a request is unanswered")
        _ = machine.answered(.end(nil))
        #expect(machine.answerSent() == .startIdleTimer, "the rest of the request is still to come")
    }
}

/// The handler's queue: requests and errors that arrive behind an unanswered request wait in order.
@Suite struct ControlConnectionHandlerTests {
    /// Counts reads of the socket, and half-closes as a socket does, which an embedded channel cannot.
    private final class Socket: ChannelOutboundHandler {
        typealias OutboundIn = Any
        var reads = 0

        func read(context: ChannelHandlerContext) { self.reads += 1 }

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            guard case .all = mode else { return }
            context.close(promise: promise)
        }
    }

    /// Records what reaches the routes, in its order.
    private final class Routes: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        var heard: [String] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .head(let head) = self.unwrapInboundIn(data) { self.heard.append(head.uri) }
        }

        func channelReadComplete(context: ChannelHandlerContext) { self.heard.append("complete") }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.heard.append("error") }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { self.heard.append("event") }
    }

    private let socket = Socket()
    private let routes = Routes()
    private let counts = RequestCounts()
    private let channel = EmbeddedChannel()

    init() throws {
        try self.channel.pipeline.syncOperations.addHandlers([
            self.socket, ControlConnectionHandler(requests: self.counts, idleTime: .seconds(60)), self.routes,
        ])
        try self.channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    private func ask(_ path: String) {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path)
        self.channel.pipeline.fireChannelRead(HTTPServerRequestPart.head(head))
        self.channel.pipeline.fireChannelRead(HTTPServerRequestPart.end(nil))
    }

    private func answer() {
        self.channel.write(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)), promise: nil)
        self.channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
    }

    /// The statuses that were written since the last call.
    private func statuses() throws -> [UInt] {
        var statuses: [UInt] = []
        while let part = try self.channel.readOutbound(as: HTTPServerResponsePart.self) {
            if case .head(let head) = part { statuses.append(head.status.code) }
        }
        return statuses
    }

    @Test func requestsPassOneAfterTheOther() {
        for path in ["/a", "/b", "/c"] { self.ask(path) }
        #expect(self.routes.heard == ["/a"])
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete"])
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete", "/c", "complete"])
    }

    @Test(arguments: [ChannelEvent.inputClosed as any Sendable, ChannelShouldQuiesceEvent()])
    func endsWaitForTheRequestsBeforeThem(event: any Sendable) {
        for path in ["/a", "/b"] { self.ask(path) }
        self.channel.pipeline.fireUserInboundEventTriggered(event)
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete"])
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete", "event", "complete"])
    }

    @Test func otherEventsPassAtOnce() {
        self.ask("/a")
        self.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        #expect(self.routes.heard == ["/a", "event"])
    }

    @Test func errorsWaitForTheRequestsBeforeThem() {
        for path in ["/a", "/b"] { self.ask(path) }
        self.channel.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel)
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete"])
        self.answer()
        #expect(self.routes.heard == ["/a", "/b", "complete", "error", "complete"])
    }

    @Test func aParserErrorIsAnsweredBehindTheRequestsBeforeIt() throws {
        for path in ["/a", "/b"] { self.ask(path) }
        self.channel.pipeline.fireErrorCaught(HTTPParserError.invalidMethod)
        // The decoder reports later bytes so.
        let error = ByteToMessageDecoderError.dataReceivedInErrorState(HTTPParserError.invalidMethod, ByteBuffer())
        self.channel.pipeline.fireErrorCaught(error)
        self.answer()
        #expect(try self.statuses() == [200])
        self.answer()
        #expect(try self.statuses() == [200, 400])
        #expect(self.counts.byStatus == [400: 1] && self.channel.isActive && !self.routes.heard.contains("error"))
        self.channel.embeddedEventLoop.advanceTime(by: ControlConnectionHandler.refusalTime - .nanoseconds(1))
        #expect(self.channel.isActive)
        self.channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(!self.channel.isActive)
    }

    @Test func aHeadThatIsTooLargeHasItsStatus() throws {
        self.channel.pipeline.fireErrorCaught(HTTPParserError.headerOverflow)
        #expect(try self.statuses() == [431])
    }

    @Test func aClientThatSendsOnIsNotReadFrom() {
        self.ask("/a")
        let before = self.socket.reads
        self.channel.read()
        #expect(self.socket.reads == before + 1, "nothing is held yet")
        self.ask("/b")
        self.channel.read()
        #expect(self.socket.reads == before + 1)
        self.answer()
        #expect(self.socket.reads == before + 2)
    }

    @Test func requestsOfAClientThatHasGoneAreDropped() throws {
        for path in ["/a", "/b"] { self.ask(path) }
        _ = try self.channel.finish(acceptAlreadyClosed: true)
        self.answer()
        #expect(self.routes.heard == ["/a"])
    }
}
