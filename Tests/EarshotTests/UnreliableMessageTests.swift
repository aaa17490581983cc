import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

/// How much of what need not arrive waits for one socket.
@Suite struct UnreliableMessageTests {
    /// Holds what is written until a test lets it go.
    private final class Holder: ChannelOutboundHandler {
        typealias OutboundIn = [Frame]
        var held: [EventLoopPromise<Void>] = []
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { self.held.append(promise) }
        }
    }

    @Test func unreliableBytes() throws {
        let (channel, holder) = (EmbeddedChannel(), Holder())
        try channel.pipeline.syncOperations.addHandler(holder)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let peer = ProvenPeer(
            id: peerID(1), displayName: try DisplayName("bob"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let connection = Connection(channel: channel, peer: peer, isInitiator: true, dialledAddress: nil)
        let limit = EarshotLimits.unreliableBytes
        #expect(!connection.reserveUnreliable(limit + 1))
        #expect(connection.reserveUnreliable(1))
        #expect(!connection.reserveUnreliable(limit))
        #expect(connection.reserveUnreliable(limit - 1))
        #expect(!connection.reserveUnreliable(1), "what comes beyond is dropped")
        connection.sendUnreliable([], cost: 1)
        #expect(!connection.reserveUnreliable(1), "the socket has not taken it")
        for promise in holder.held { promise.succeed() }
        #expect(connection.reserveUnreliable(1))
        #expect(!connection.reserveUnreliable(1))
        // Neither where the socket is full, nor where there is none.
        connection.sendUnreliable([], cost: limit)
        for promise in holder.held.dropFirst() { promise.succeed() }
        channel.isWritable = false
        #expect(!connection.reserveUnreliable(1))
        channel.isWritable = true
        #expect(connection.reserveUnreliable(1))
        _ = try channel.finish()
        #expect(!connection.reserveUnreliable(1))
    }
}
