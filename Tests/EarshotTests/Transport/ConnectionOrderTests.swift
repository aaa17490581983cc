import Dispatch
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotWire

/// Frames are sent in the order of the calls, from whichever thread.
@Suite(.timeLimit(.minutes(1))) struct ConnectionOrderTests {
    private final class Recorder: ChannelOutboundHandler, Sendable {
        typealias OutboundIn = [Frame]
        private let frames: Box<[Frame]>

        init(_ frames: Box<[Frame]>) { self.frames = frames }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            self.frames.withLock { $0 += self.unwrapOutboundIn(data) }
            promise?.succeed()
        }
    }

    /// Another thread has sent while the loop was busy. The loop then sends before it has executed that call.
    @Test func whatTheLoopSendsOvertakesNothing() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let frames = Box<[Frame]>([])
        let channel = try await DatagramBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Recorder(frames)) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let peer = ProvenPeer(
            id: peerID(1), displayName: try DisplayName("peer"), publicKey: [], signatureScheme: .ed25519, version: 1,
            encryption: .required, transport: .tls, extensions: [],
            transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
        let connection = Connection(channel: channel, peer: peer, isInitiator: true, dialledAddress: nil)
        let (isBusy, hasSent) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let sending = loop.submit {
            isBusy.signal()
            hasSent.wait()
            connection.send([.ping(2)])
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                isBusy.wait()
                connection.send([.ping(1)])
                hasSent.signal()
                continuation.resume()
            }
        }
        try await sending.get()
        try await connection.write([.ping(3)]).get()
        #expect(frames.value == [.ping(1), .ping(2), .ping(3)])
        // If no call is pending, the frame is sent immediately.
        try await loop.submit {
            connection.send([.ping(4)])
            #expect(frames.value.last == .ping(4))
        }.get()
        try await channel.close()
        try await group.shutdownGracefully()
    }
}
