import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

/// The limit of unreliable messages that wait for one socket.
@Suite struct UnreliableMessageTests {
    /// Holds writes until the test releases them.
    private final class Holder: ChannelOutboundHandler {
        typealias OutboundIn = [Frame]
        var held: [EventLoopPromise<Void>] = []
        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { self.held.append(promise) }
        }
    }

    @Test func aConnectionHoldsALimitOfUnreliableBytes() throws {
        let (channel, holder) = (EmbeddedChannel(), Holder())
        try channel.pipeline.syncOperations.addHandler(holder)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let peer = ProvenPeer(
            id: peerID(1), displayName: try DisplayName("bob"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
            transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let connection = Connection(channel: channel, peer: peer, isInitiator: true, dialledAddress: nil)
        let limit = EarshotLimits.unreliableBytes
        #expect(connection.unreliableRoom == limit)
        var messages = UnreliableMessages()
        messages.frames = [
            MessageFrame(
                session: .random(), id: .random(), mode: .unreliable, sequence: 0, sentAtMilliseconds: 0, contentType: "a/b",
                body: ByteBuffer())
        ]
        messages.cost = limit - 1
        connection.sendUnreliable(messages)
        #expect(connection.unreliableRoom == 1, "the socket has not taken it")
        messages.cost = 1
        connection.sendUnreliable(messages)
        #expect(connection.unreliableRoom == 0, "what comes beyond is dropped")
        for promise in holder.held { promise.succeed() }
        #expect(connection.unreliableRoom == limit)
        // Nothing fits if the socket is full, or if there is none.
        channel.isWritable = false
        #expect(connection.unreliableRoom == 0)
        channel.isWritable = true
        #expect(connection.unreliableRoom == limit)
        _ = try channel.finish()
        #expect(connection.unreliableRoom == 0)
    }
}
