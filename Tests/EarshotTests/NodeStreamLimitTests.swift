import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotWire

/// The limits of streams, each at its edge, against a peer whose every frame a test decides.
@Suite(.timeLimit(.minutes(1))) struct NodeStreamLimitTests {
    private func joined(
        _ extensions: [HelloExtension] = [], configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws -> (RawPeer, TestNode, SessionID) {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            configure(&$0)
        }
        let raw = try await RawPeer(to: bob)
        var hello = try raw.hello()
        hello.extensions = extensions
        try await raw.prove(hello: hello)
        return (raw, bob, try await raw.join())
    }

    private func opened(_ raw: RawPeer) async throws -> StreamID {
        try await raw.next { if case .streamOpen(let open) = $0 { open.id } else { nil } }
    }

    /// Takes so many bytes of streams.
    private func take(_ count: UInt64, _ raw: RawPeer) async throws {
        var received: UInt64 = 0
        while received < count {
            received += try await raw.next { if case .streamData(let data) = $0 { UInt64(data.data.readableBytes) } else { nil } }
        }
        #expect(received == count)
    }

    private func body(_ count: UInt64) -> ScriptedBody {
        let body = ScriptedBody()
        body.feed.yield(ByteBuffer(repeating: 7, count: Int(count)))
        return body
    }

    @Test func outgoingStreams() async throws {
        let (raw, bob, _) = try await self.joined()
        var tasks: [Task<ByteStream, any Error>] = []
        var ids: [StreamID] = []
        for number in 0..<EarshotLimits.outgoingStreams {
            tasks.append(Task { try await bob.node.openStream(to: raw.id.description, name: "\(number)", body: ScriptedBody()) })
            ids.append(try await self.opened(raw))
        }
        #expect(Set(ids).count == EarshotLimits.outgoingStreams)
        await #expect { try await bob.node.openStream(to: raw.id.description, name: "x", body: ScriptedBody()) } throws: {
            ($0 as? EarshotError)?.code == .busy
        }
        // One that ends makes room for one.
        try await raw.send(.streamRefuse(StreamRefuse(id: ids[0], refusal: Refusal(code: .declined, explanation: "not now"))))
        await #expect { try await tasks[0].value } throws: { ($0 as? EarshotError)?.code == .declined }
        tasks[0] = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: ScriptedBody()) }
        #expect(try await !ids.contains(self.opened(raw)))
        await #expect { try await bob.node.openStream(to: raw.id.description, name: "y", body: ScriptedBody()) } throws: {
            ($0 as? EarshotError)?.code == .busy
        }
        await raw.close()
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        await bob.stop()
    }

    /// Nothing happens a moment before the limit; at it both sides are told.
    private func expectTimeOut(
        _ id: StreamID, after limit: Duration, _ loop: NIOAsyncTestingEventLoop, _ raw: RawPeer, _ bob: TestNode
    ) async throws {
        await loop.advanceTime(by: TimeAmount(limit) - .nanoseconds(1))
        try await raw.roundTrip()
        #expect(await bob.node.streams[id]?.row.state == .opening)
        await loop.advanceTime(by: .nanoseconds(1))
        let abort = try await raw.next { if case .streamAbort(let abort) = $0 { abort } else { nil } }
        #expect(abort.id == id && abort.refusal.code == .timedOut)
        #expect(await bob.node.streams[id]?.row.error == .timedOut)
    }

    @Test func streamOpenTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, _) = try await self.joined { $0.timers = Timers(on: loop) }
        let task = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: ScriptedBody()) }
        let id = try await self.opened(raw)
        try await self.expectTimeOut(id, after: EarshotLimits.streamOpenTime, loop, raw, bob)
        await #expect { try await task.value } throws: { ($0 as? EarshotError)?.code == .timedOut }
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func streamWaitTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined { $0.timers = Timers(on: loop) }
        let id = StreamID.random()
        try await raw.send(.streamOpen(StreamOpen(session: session, id: id, name: try StreamName("x"))))
        try await raw.roundTrip()
        try await self.expectTimeOut(id, after: EarshotLimits.streamWaitTime, loop, raw, bob)
        #expect(EarshotLimits.streamWaitTime > EarshotLimits.streamOpenTime, "the sender's word comes first")
        await raw.close()
        await bob.stop()
        await loop.shutdownGracefully()
    }

    @Test func streamAcceptors() async throws {
        let bob = try await TestNode("bob")
        func waits() -> Task<StreamContent, any Error> { Task { try await bob.node.acceptNextStream() } }
        var tasks = (0..<EarshotLimits.streamAcceptors).map { _ in waits() }
        try await eventually("all wait") { await bob.node.streamAcceptors.count == EarshotLimits.streamAcceptors }
        await #expect { try await bob.node.acceptNextStream() } throws: { ($0 as? EarshotError)?.code == .busy }
        // One that goes makes room for one.
        tasks[0].cancel()
        await #expect { try await tasks[0].value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        tasks.append(waits())
        try await eventually("it waits") { await bob.node.streamAcceptors.count == EarshotLimits.streamAcceptors }
        await #expect { try await bob.node.acceptNextStream() } throws: { ($0 as? EarshotError)?.code == .busy }
        await bob.stop()
        for task in tasks { _ = await task.result }
    }

    /// A data connection is asked for with the last of so many bytes, and not before.
    @Test func streamRerouteAfter() async throws {
        let (raw, bob, _) = try await self.joined([.streamReroute])
        let limit = EarshotLimits.streamRerouteAfter
        let body = self.body(limit - 1)
        let task = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: body) }
        let id = try await self.opened(raw)
        try await raw.send(.streamAccept(StreamAccept(id: id, limit: 2 * limit)))
        try await self.take(limit - 1, raw)
        // All that was decided about them has been done.
        try await raw.roundTrip()
        #expect(await bob.node.streams[id]?.outlet == .control)
        body.feed.yield(ByteBuffer(repeating: 7, count: 1))
        let asked = try await raw.next { if case .streamReroute(let reroute) = $0 { reroute } else { nil } }
        #expect(asked == StreamReroute(id: id, offset: limit))
        await raw.close()
        _ = await task.result
        await bob.stop()
    }

    /// So many ask at a time; one that has its data connection lets the next one ask.
    @Test func streamReroutes() async throws {
        let (raw, bob, _) = try await self.joined([.streamReroute])
        let size = EarshotLimits.streamRerouteAfter
        let count = EarshotLimits.streamReroutes + 1
        var tasks: [Task<ByteStream, any Error>] = []
        var ids: [StreamID] = []
        for number in 0..<count {
            let body = self.body(size)
            tasks.append(Task { try await bob.node.openStream(to: raw.id.description, name: "\(number)", body: body) })
            ids.append(try await self.opened(raw))
        }
        for id in ids { try await raw.send(.streamAccept(StreamAccept(id: id, limit: 2 * size))) }
        try await eventually("all have become large") {
            let outlets = await ids.asyncMap { await bob.node.streams[$0]?.outlet }
            return outlets.count { $0 == .opening } == EarshotLimits.streamReroutes && outlets.count { $0 == .wanted } == 1
        }
        // The first token that comes is used; until then there are questions of two streams only.
        var asked: Set<StreamID> = []
        var token: DataToken?
        while token == nil || asked.count < EarshotLimits.streamReroutes {
            switch try #require(await raw.next()) {
            case .streamReroute(let reroute): asked.insert(reroute.id)
            case .dataTicket(let ticket) where token == nil: token = ticket.token
            default: break
            }
        }
        try await raw.roundTrip()
        #expect(asked.count == EarshotLimits.streamReroutes)
        let data = try await RawPeer(to: bob, as: raw.identity)
        try await data.proveForData()
        try await data.send(.dataAttach(try #require(token)))
        let last = try await raw.next { if case .streamReroute(let reroute) = $0 { reroute.id } else { nil } }
        #expect(ids.contains(last) && !asked.contains(last))
        await data.close()
        await raw.close()
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        await bob.stop()
    }

    /// The streams of one peer share what all of them together may be ahead; one alone has no more than its own, and each has its least.
    @Test func streamWindows() async throws {
        let (raw, bob, session) = try await self.joined()
        let (whole, most, least) = (EarshotLimits.streamWindows, EarshotLimits.streamWindow, EarshotLimits.streamWindowMinimum)
        var contents: [StreamContent] = []
        var limits: [UInt64] = []
        for _ in 0..<64 {
            try await raw.send(.streamOpen(StreamOpen(session: session, id: .random(), name: try StreamName("x"))))
            contents.append(try await bob.node.acceptNextStream())
            limits.append(try await raw.next { if case .streamAccept(let accept) = $0 { accept.limit } else { nil } })
        }
        let full = Int(whole / most)
        #expect(limits.prefix(full).allSatisfy { $0 == most })
        #expect(limits[full] == whole / UInt64(full + 1) && limits[full] < most)
        #expect(limits[62] == whole / 63 && limits[62] > least)
        #expect(limits[63] == least && least == whole / 64, "as many as the protocol permits have the least")
        await raw.close()
        withExtendedLifetime(contents) {}
        await bob.stop()
    }

    /// What goes out over the control connection keeps a little ahead of the socket, and no more: messages would wait behind it.
    @Test func streamUnwrittenBytes() async throws {
        let (channel, holder) = (NIOAsyncTestingChannel(), Box<[EventLoopPromise<Void>]>([]))
        try await channel.testingEventLoop.submit { try channel.pipeline.syncOperations.addHandler(Holder(holder)) }.get()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        let peer = ProvenPeer(
            id: peerID(1), displayName: try DisplayName("bob"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let flow = OutgoingFlow(.random(), Timers(on: NIOAsyncTestingEventLoop())) {}
        flow.accepted(.max, on: Connection(channel: channel, peer: peer, isInitiator: true, dialledAddress: nil))
        let piece = 64 * 1024
        let fits = EarshotLimits.streamUnwrittenBytes / piece
        let body = ScriptedBody()
        for _ in 0..<3 * fits { body.feed.yield(ByteBuffer(repeating: 0, count: piece)) }
        body.feed.finish()
        let task = Task { try await flow.send(body) }
        func written(_ count: Int) async throws {
            try await eventually("\(count) are written") {
                await channel.testingEventLoop.run()
                return holder.value.count >= count
            }
        }
        // The one beyond the limit goes out, and waits for the oldest.
        try await written(fits + 1)
        for _ in 0..<100 {
            await Task.yield()
            await channel.testingEventLoop.run()
        }
        #expect(holder.value.count == fits + 1)
        try await channel.testingEventLoop.executeInContext { holder.value[0].succeed() }
        try await written(fits + 2)
        for _ in 0..<100 {
            await Task.yield()
            await channel.testingEventLoop.run()
        }
        #expect(holder.value.count == fits + 2, "what has gone out makes room for as much")
        var done = 1
        while done < 3 * fits {
            let held = holder.value
            let rest = Array(held[done...])
            try await channel.testingEventLoop.executeInContext { for promise in rest { promise.succeed() } }
            done = held.count
            if done < 3 * fits { try await written(done + 1) }
        }
        try await task.value
        _ = try await channel.finish()
    }

    /// Holds what is written until a test lets it go.
    private final class Holder: ChannelOutboundHandler {
        typealias OutboundIn = [Frame]
        private let held: Box<[EventLoopPromise<Void>]>
        init(_ held: Box<[EventLoopPromise<Void>]>) { self.held = held }
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            guard case .streamData? = self.unwrapOutboundIn(data).first, let promise else {
                promise?.succeed()
                return
            }
            self.held.withLock { $0.append(promise) }
        }
    }
}

extension Array {
    fileprivate func asyncMap<Value>(_ body: (Element) async -> Value) async -> [Value] {
        var values: [Value] = []
        for element in self { values.append(await body(element)) }
        return values
    }
}
