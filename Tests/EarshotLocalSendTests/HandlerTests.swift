import EarshotCore
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotLocalSend

/// The handler of a connection, without sockets and with the test's clock.
@Suite(.timeLimit(.minutes(1))) struct HandlerTests {
    private final class Passed: Sendable {
        private let requests = Mutex<[DeviceRequest]>([])
        var all: [DeviceRequest] { self.requests.withLock { $0 } }
        func add(_ request: DeviceRequest) { self.requests.withLock { $0.append(request) } }
        private let uses = Mutex<[Bool]>([])
        /// Whether the connection was used, after each change.
        var allUses: [Bool] { self.uses.withLock { $0 } }
        func use(_ isUsed: Bool) { self.uses.withLock { $0.append(isUsed) } }
    }

    private func connection() async throws -> (NIOAsyncTestingChannel, Passed) {
        let passed = Passed()
        let channel = NIOAsyncTestingChannel()
        let address = PeerAddress(host: "10.0.0.2", zone: nil, port: 1)
        try await channel.testingEventLoop.executeInContext {
            let handler = RequestHandler(address: address, use: { passed.use($0) }, pass: { passed.add($0) })
            handler.start(channel)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
        try await channel.connect(to: try SocketAddress(ipAddress: "10.0.0.2", port: 1))
        return (channel, passed)
    }

    private func head(_ method: HTTPMethod, _ path: String) -> HTTPServerRequestPart {
        .head(HTTPRequestHead(version: .http1_1, method: method, uri: "/api/localsend/v2/" + path))
    }

    private static let upload = "upload?sessionId=s&fileId=f&token=t"

    @Test func `a connection without a request is closed after 10 s`() async throws {
        let (channel, _) = try await self.connection()
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.headTime - .milliseconds(1))
        #expect(channel.isActive)
        await channel.testingEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
    }

    @Test func `the time to the next head begins with the answer`() async throws {
        let (channel, passed) = try await self.connection()
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.headTime - .milliseconds(1))
        try await channel.writeInbound(self.head(.POST, "cancel"))
        try await channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(passed.all.count == 1)
        // A request may take any time.
        await channel.testingEventLoop.advanceTime(by: .hours(1))
        #expect(channel.isActive)
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.handler(type: RequestHandler.self).answer(DeviceAnswer(.ok))
        }
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.headTime - .milliseconds(1))
        #expect(channel.isActive)
        await channel.testingEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
    }

    @Test func `a sender that reads no answers gets no more of them`() async throws {
        let (channel, passed) = try await self.connection()
        channel.isWritable = false
        try await channel.writeInbound(self.head(.GET, "info"))
        #expect(passed.all.isEmpty && !channel.isActive)
    }

    @Test func `a JSON body has 30 s`() async throws {
        let (channel, _) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, "register"))
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.bodyTime - .milliseconds(1))
        try await channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "{")))
        #expect(channel.isActive)
        await channel.testingEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
    }

    @Test func `a request counts when it is whole, and an upload at once`() async throws {
        let (channel, passed) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, "register"))
        try await channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "{")))
        #expect(passed.allUses == [])
        try await channel.writeInbound(HTTPServerRequestPart.end(nil))
        #expect(passed.allUses == [true])
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.handler(type: RequestHandler.self).answer(DeviceAnswer(.ok))
        }
        #expect(passed.allUses == [true, false])
        try await channel.writeInbound(self.head(.POST, Self.upload))
        #expect(passed.allUses == [true, false, true])
    }

    @Test func `chunks of one read are one piece`() async throws {
        let (channel, passed) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, Self.upload))
        try await channel.testingEventLoop.executeInContext {
            for _ in 0..<1000 { channel.pipeline.fireChannelRead(HTTPServerRequestPart.body(ByteBuffer(string: "x"))) }
            channel.pipeline.fireChannelReadComplete()
        }
        var iterator = try #require(passed.all.first).body.makeAsyncIterator()
        #expect(try await iterator.next()?.readableBytes == 1000)
    }

    @Test func `a length that no number holds is too large`() async throws {
        let (channel, passed) = try await self.connection()
        var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/api/localsend/v2/register")
        head.headers.add(name: "content-length", value: "9223372036854775808")
        try await channel.writeInbound(HTTPServerRequestPart.head(head))
        #expect(passed.all.first?.length == .max)
    }

    @Test func `an upload fails after 60 s of silence`() async throws {
        let (channel, passed) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, Self.upload))
        var iterator = try #require(passed.all.first).body.makeAsyncIterator()
        for _ in 0..<3 {
            await channel.testingEventLoop.advanceTime(by: LocalSendLimits.silentTime - .milliseconds(1))
            try await channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "x")))
            #expect(try await iterator.next() == ByteBuffer(string: "x"))
        }
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.silentTime)
        await #expect(throws: EarshotError.self) { try await iterator.next() }
    }

    @Test func `the reader of an upload may be slower than that`() async throws {
        let (channel, passed) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, Self.upload))
        try await channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(repeating: 0, count: 64 * 1024)))
        for _ in 0..<5 { await channel.testingEventLoop.advanceTime(by: LocalSendLimits.silentTime) }
        var iterator = try #require(passed.all.first).body.makeAsyncIterator()
        #expect(try await iterator.next()?.readableBytes == 64 * 1024)
    }

    @Test func `input after an early answer is dropped, and the connection ends`() async throws {
        let (channel, passed) = try await self.connection()
        try await channel.writeInbound(self.head(.POST, Self.upload))
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.handler(type: RequestHandler.self).answer(DeviceAnswer(DeviceRefusal.declined))
        }
        guard case .head(let head)? = try await channel.readOutbound(as: HTTPServerResponsePart.self) else {
            Issue.record("no answer")
            return
        }
        #expect(head.status == .forbidden)
        #expect(head.headers["connection"] == ["close"])
        try await channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "x")))
        var iterator = try #require(passed.all.first).body.makeAsyncIterator()
        await #expect(throws: EarshotError.self) { try await iterator.next() }
        await channel.testingEventLoop.advanceTime(by: LocalSendLimits.lastAnswerTime)
        #expect(!channel.isActive)
    }
}
