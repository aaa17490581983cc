import Earshot
import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import earshotd

/// The end of a client's connection, which waits for answers that are being written.
@Suite(.timeLimit(.minutes(1))) struct ConnectionEndTests {
    // MARK: On a real socket

    /// A refused call leaves no handler behind: a client that closes its sending half still gets all its answers.
    @Test func refusedCallsLeaveNothingBehind() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                for _ in 0..<20 {
                    try await call.ask("GET", "/v1/streams/\(UUID().uuidString.lowercased())/content")
                    #expect(try await call.answer().status == 404)
                    try await call.ask("GET", "/v1/streams/next/content?timeout_seconds=0")
                    #expect(try await call.answer().status == 504)
                }
                for _ in 0..<50 { try await call.ask("GET", "/v1/openapi.json") }
                call.finish()
                for _ in 0..<50 { #expect(try await call.answer().status == 200) }
                #expect(try await call.hasEnded())
            }
        }
    }

    /// A server that stops drops the connections that it has just accepted. They close, whether or not they are active already, and the
    /// process goes on.
    @Test(arguments: [false, true]) func aConnectionIsDroppedAsTheServerStops(_ isActive: Bool) async throws {
        try await APIServer.with { server in
            let policy = CallerPolicy(owner: geteuid(), group: nil)
            let api = ControlAPIServices(node: server.node, policy: policy, settings: server.settings, readers: server.readers)
            let control = ControlChannel(api: api, policy: policy, moved: MovedConnections())
            let channel = NIOAsyncTestingChannel()
            var value: ControlChannel.Value? = try await control.setup(channel: channel, logger: Logger(label: "test")).get()
            let address = try SocketAddress(unixDomainSocketPath: server.path)
            if isActive { try await channel.connect(to: address).get() }
            #expect(value?.channel === channel)
            value = nil
            if !isActive { try? await channel.connect(to: address).get() }
            try await channel.closeFuture.get()
        }
    }

    /// If a caller hangs up while it waits for an invitation's answer, its request ends and the invitation stays pending.
    @Test func hangingUpEndsTheWaitForAnInvitation() async throws {
        let peer = try #require(PeerID(bytes: Array(repeating: 7, count: 32)))
        // Nothing listens there.
        let place = try ConfiguredPeer("\(peer)@127.0.0.1:1")
        try await APIServer.with(configure: { $0.configuredPeers = [place] }) { server in
            let body = Array(#"{"peer":"\#(peer)","timeout_seconds":3600}"#.utf8)
            func pending() async -> Int { await server.node.invitations(all: false).count }
            // The first dial makes the peer known.
            while try await APICaller(path: server.path).call("GET", "/v1/peers/\(peer)").status != 200 {}
            try await APIConnection.with(server.path) { call in
                try await call.ask("POST", "/v1/invitations?wait=true", ["Content-Type: application/json"], body: body)
                while await pending() == 0 { #expect(try await APICaller(path: server.path).call("GET", "/v1/status").status == 200) }
            }
            var metrics = ""
            while !metrics.contains(#"earshot_api_requests_total{status="409"} 1"#) {
                metrics = try await APICaller(path: server.path).call("GET", "/v1/metrics").text
            }
            #expect(await pending() == 1)
        }
    }

    /// A request for another protocol, as `curl --http2` sends it, is answered in HTTP/1.1 and is the connection's last.
    @Test func anotherProtocolIsNotSpoken() async throws {
        try await APIServer.with { server in
            for fields in [["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"], ["connection: upgrade", "upgrade: websocket"]] {
                try await APIConnection.with(server.path) { call in
                    try await call.ask("GET", "/v1/status", fields)
                    let answer = try await call.answer()
                    #expect(answer.status == 200 && answer.fields["connection"] == "close")
                    #expect(try await call.hasEnded())
                }
            }
            try await APIConnection.with(server.path) { call in
                try await call.say("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await call.answer().status >= 400)
                #expect(try await call.hasEnded())
            }
        }
    }

    @Test(arguments: [
        "GET /v1/peers HTTP/1.0\r\nHost: localhost\r\n\r\n", "GET /v1/peers HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
        "GET /v1/peers HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n",
        "GET /v1/peers HTTP/1.1\r\nHost: localhost\r\nConnection: TE, close\r\n\r\n",
    ])
    func theConnectionEndsWhereTheClientSaysSo(_ text: String) async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.say(text)
                let answer = try await call.answer()
                #expect(answer.status == 200 && answer.fields["connection"] == "close" && answer.fields["transfer-encoding"] == nil)
                #expect(try await call.hasEnded())
            }
        }
    }

    @Test(arguments: [("garbage\r\n\r\n", 400), ("GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: 17_000))\r\n\r\n", 431)])
    func whatIsNoRequestIsToldSoBehindOneThatIs(_ text: String, _ status: Int) async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.say("GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n" + text)
                #expect(try await call.answer().status == 200)
                let answer = try await call.answer()
                #expect(answer.status == status && answer.code == "invalid-parameter")
                #expect(try await call.hasEnded())
            }
        }
    }

    /// Bytes behind the connection's last request are ignored.
    @Test(arguments: ["GET /v1/peers HTTP/1.1\r\nHost: localhost\r\n\r\n", "garbage\r\n\r\n"])
    func nothingIsSaidBehindTheLastAnswer(_ more: String) async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.say("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + more)
                #expect(try await call.answer().status == 200)
                #expect(try await call.hasEnded())
            }
        }
    }

    // MARK: Handlers

    /// A socket that takes no bytes until `takeAll`.
    private final class FullSocket: ChannelOutboundHandler {
        typealias OutboundIn = NIOAny
        var waiting: [EventLoopPromise<Void>?] = []
        var closed: [CloseMode] = []
        var reads = 0

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) { self.waiting.append(promise) }

        func flush(context: ChannelHandlerContext) {}

        func read(context: ChannelHandlerContext) { self.reads += 1 }

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            self.closed.append(mode)
            if case .all = mode { context.close(mode: mode, promise: promise) } else { promise?.succeed(()) }
        }

        func takeAll() {
            let waiting = self.waiting
            self.waiting = []
            for promise in waiting { promise?.succeed(()) }
        }
    }

    private static var handler: ControlConnectionHandler { ControlConnectionHandler(requests: RequestCounts(), idleTime: .seconds(60)) }

    private func channel(_ handlers: [any ChannelHandler]) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers(handlers)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    /// Without the handler, NIO would close a half-closed connection at once and drop the answer.
    @Test func whatIsBeingWrittenGoesOutFirst() throws {
        let socket = FullSocket()
        let channel = try self.channel([socket, OrderlyCloseHandler()])
        channel.write(ByteBuffer(string: "answer"), promise: nil)
        channel.close(mode: .output, promise: nil)
        channel.embeddedEventLoop.advanceTime(by: .hours(1))
        #expect(socket.closed.isEmpty && channel.isActive)
        channel.close(promise: nil)
        channel.embeddedEventLoop.advanceTime(by: OrderlyCloseHandler.abandonedTime - .nanoseconds(1))
        #expect(socket.closed.isEmpty && channel.isActive)
        socket.takeAll()
        #expect(socket.closed == [.output, .all] && !channel.isActive)
    }

    /// A client whose answer broke off, and that does not read the rest, is disconnected after a while.
    @Test func whatIsAbandonedIsNotWaitedForWithoutAnEnd() throws {
        let channel = try self.channel([FullSocket(), OrderlyCloseHandler()])
        channel.write(ByteBuffer(string: "answer"), promise: nil)
        channel.close(mode: .output, promise: nil)
        channel.close(promise: nil)
        self.expectEnd(of: channel, after: OrderlyCloseHandler.abandonedTime)
    }

    /// A client that does not read delays a stop for a limited time.
    @Test func aServerThatStopsWaitsSoLong() throws {
        for isBefore in [true, false] {
            let socket = FullSocket()
            let channel = try self.channel([socket, OrderlyCloseHandler()])
            channel.write(ByteBuffer(string: "answer"), promise: nil)
            if isBefore { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
            channel.close(mode: isBefore ? .all : .output, promise: nil)
            if !isBefore { channel.close(mode: .input, promise: nil) }
            self.expectEnd(of: channel, after: OrderlyCloseHandler.time)
        }
    }

    /// A connection that the daemon cuts off, such as a stalled reader's, ends at once.
    @Test func aConnectionThatIsCutOffEndsAtOnce() throws {
        let socket = FullSocket()
        let channel = try self.channel([socket, OrderlyCloseHandler()])
        channel.write(ByteBuffer(string: "answer"), promise: nil)
        channel.close(promise: nil)
        #expect(!channel.isActive)
    }

    /// Expects the end of a channel after a time, and not a nanosecond earlier.
    private func expectEnd(of channel: EmbeddedChannel, after time: TimeAmount) {
        channel.embeddedEventLoop.advanceTime(by: time - .nanoseconds(1))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .nanoseconds(1))
        #expect(!channel.isActive)
    }

    /// The idle timer starts with the connection, and an incomplete head does not stop it.
    @Test func whoNeverAsksIsIdle() throws {
        self.expectEnd(of: try self.channel([Self.handler]), after: .seconds(60))
    }

    /// The idle timer starts once the socket has taken the answer.
    @Test func aSlowReaderIsNotIdle() throws {
        let socket = FullSocket()
        let channel = try self.channel([socket, Self.handler])
        try channel.writeInbound(HTTPServerRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/v1/status")))
        channel.write(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)), promise: nil)
        channel.write(HTTPServerResponsePart.end(nil), promise: nil)
        channel.embeddedEventLoop.advanceTime(by: .hours(1))
        #expect(channel.isActive)
        socket.takeAll()
        self.expectEnd(of: channel, after: .seconds(60))
    }

    /// Bytes behind a request for another protocol stay in the socket. The request itself is read to its end.
    @Test func nothingIsReadBehindAnUpgrade() throws {
        let socket = FullSocket()
        let channel = try self.channel([socket, Self.handler])
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/v1/events")
        try channel.writeInbound(HTTPServerRequestPart.head(head))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        channel.write(HTTPServerResponsePart.end(nil), promise: nil)
        let before = socket.reads
        channel.read()
        #expect(socket.reads == before + 1)
        head.headers = ["Connection": "Upgrade", "Upgrade": "x"]
        try channel.writeInbound(HTTPServerRequestPart.head(head))
        channel.read()
        #expect(socket.reads == before + 2)
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        channel.read()
        #expect(socket.reads == before + 2)
        for _ in 0..<2 { _ = try channel.readInbound(as: HTTPServerRequestPart.self) }
        guard case .head(let seen)? = try channel.readInbound(as: HTTPServerRequestPart.self) else {
            Issue.record("the request did not come through")
            return
        }
        #expect(seen.headers["connection"] == ["close"] && seen.headers["upgrade"] == ["x"])
    }
}
