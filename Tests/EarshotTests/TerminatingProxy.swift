import EarshotWire
import NIOCore
import NIOPosix
import NIOSSL

@testable import Earshot

/// Somebody in between who speaks with each side himself, over TLS with a key of his own or in plaintext, and passes their frames on,
/// some of them changed.
final class TerminatingProxy: Sendable {
    /// What becomes of a frame on its way.
    typealias Rewrite = @Sendable (_ frame: Frame, _ isFromDialler: Bool) -> Frame

    let port: UInt16
    private let listener: any Channel
    private let invitations: Box<Int>

    /// How many invitations have come by: none does before both sides have proven their keys to each other.
    var invitationsSeen: Int { self.invitations.value }

    /// Terminates TLS as `identity`, or passes plaintext on where that is `nil`.
    init(to port: UInt16, as identity: Identity?, _ rewrite: @escaping Rewrite) async throws {
        let contexts = try identity.map { try TLSContexts($0) }
        let invitations = Box(0)
        self.invitations = invitations
        self.listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { dialler in
                dialler.eventLoop.makeCompletedFuture {
                    let there = dialler.eventLoop.makePromise(of: (any Channel).self)
                    if let contexts { try dialler.pipeline.syncOperations.addHandler(contexts.serverHandler()) }
                    try dialler.pipeline.syncOperations.addHandler(
                        Relay(to: there.futureResult, isFromDialler: true, rewrite, invitations))
                    let back = dialler.eventLoop.makeSucceededFuture(dialler)
                    there.completeWith(
                        ClientBootstrap(group: dialler.eventLoop)
                            .channelInitializer { channel in
                                channel.eventLoop.makeCompletedFuture {
                                    if let contexts { try channel.pipeline.syncOperations.addHandler(try contexts.clientHandler()) }
                                    try channel.pipeline.syncOperations.addHandler(
                                        Relay(to: back, isFromDialler: false, rewrite, invitations))
                                }
                            }
                            .connect(host: "127.0.0.1", port: Int(port)))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    func stop() async { try? await self.listener.close().get() }

    /// One direction.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let other: EventLoopFuture<any Channel>
        private let isFromDialler: Bool
        private let rewrite: Rewrite
        private let invitations: Box<Int>
        private var preamble = PreambleDecoder()
        private var decoder = FrameDecoder()
        private var isFirst = true

        init(to other: EventLoopFuture<any Channel>, isFromDialler: Bool, _ rewrite: @escaping Rewrite, _ invitations: Box<Int>) {
            self.other = other
            self.isFromDialler = isFromDialler
            self.rewrite = rewrite
            self.invitations = invitations
            self.decoder.phase = .proven
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var buffer = self.unwrapInboundIn(data)
            var out = ByteBuffer()
            guard (try? self.preamble.consume(&buffer)) == true else { return }
            self.decoder.feed(buffer)
            while let frame = try? self.decoder.next() {
                if self.isFirst { out.writeBytes(WireLimits.preamble) }
                self.isFirst = false
                if case .invite = frame { self.invitations.withLock { $0 += 1 } }
                try? FrameEncoder.encode(self.rewrite(frame, self.isFromDialler), into: &out)
            }
            let bytes = out
            self.other.whenSuccess { $0.writeAndFlush(bytes, promise: nil) }
        }

        func channelInactive(context: ChannelHandlerContext) { self.other.whenSuccess { $0.close(promise: nil) } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
