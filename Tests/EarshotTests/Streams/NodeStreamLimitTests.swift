import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore
@testable import EarshotWire

/// The limits of streams' bytes, at their exact values. The core tests their number and their times.
@Suite(.timeLimit(.minutes(1))) struct NodeStreamLimitTests {
    private func opened(_ raw: RawPeer) async throws -> StreamID {
        try await raw.next { if case .stream(.open(let open)) = $0 { open.id } else { nil } }
    }

    /// Receives this number of stream bytes.
    private func take(_ count: UInt64, _ raw: RawPeer) async throws {
        var received: UInt64 = 0
        while received < count {
            received += try await raw.next { if case .stream(.data(let data)) = $0 { UInt64(data.data.readableBytes) } else { nil } }
        }
        #expect(received == count)
    }

    private func body(_ count: UInt64) -> ScriptedBody {
        let body = ScriptedBody()
        body.feed.yield(ByteBuffer(repeating: 7, count: Int(count)))
        return body
    }

    /// A data connection is requested with the last of these bytes, and not before.
    @Test func streamRerouteAfter() async throws {
        let (raw, bob, _) = try await RawPeer.joined(extensions: [.streamReroute])
        let limit = EarshotLimits.streamRerouteAfter
        let body = self.body(limit - 1)
        let task = Task { try await bob.node.openStream(to: raw.id.description, name: "x", body: body) }
        let id = try await self.opened(raw)
        try await raw.send(.stream(.accept(StreamAccept(id: id, limit: 2 * limit))))
        try await self.take(limit - 1, raw)
        // All decisions about them have been carried out.
        try await raw.roundTrip()
        #expect(await bob.node.core.streams[id]?.outlet == .control)
        body.feed.yield(ByteBuffer(repeating: 7, count: 1))
        let asked = try await raw.next { if case .stream(.reroute(let reroute)) = $0 { reroute } else { nil } }
        #expect(asked == StreamReroute(id: id, offset: limit))
        await raw.close()
        _ = await task.result
        await bob.stop()
    }

    /// Output over the control connection is only slightly ahead of the socket, because messages would otherwise wait behind it.
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
        // The piece beyond the limit is sent, and waits for the oldest one.
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

    /// Holds writes until the test releases them.
    private final class Holder: ChannelOutboundHandler {
        typealias OutboundIn = [Frame]
        private let held: Box<[EventLoopPromise<Void>]>
        init(_ held: Box<[EventLoopPromise<Void>]>) { self.held = held }
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            guard case .stream(.data)? = self.unwrapOutboundIn(data).first, let promise else {
                promise?.succeed()
                return
            }
            self.held.withLock { $0.append(promise) }
        }
    }
}
