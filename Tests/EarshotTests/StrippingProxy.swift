import EarshotWire
import NIOCore
import NIOPosix
import Synchronization

@testable import Earshot

/// Somebody in between: answers TLS with a plaintext refusal, as a listener of preference `none` does, and passes plaintext on, with
/// the hellos' encryption preferences changed where it lies.
final class StrippingProxy: Sendable {
    enum Lie: Sendable, CaseIterable {
        /// Passes plaintext on as it is.
        case nothing
        /// The listener's hello says `none`.
        case theListenersPreference
        /// The dialler's hello says `none`.
        case theDiallersPreference
        case both
    }

    private struct Seen {
        var plaintextConnections = 0
        var invitation = false
    }

    let port: UInt16
    private let listener: any Channel
    private let seen: Box<Seen>

    var plaintextConnections: Int { self.seen.value.plaintextConnections }
    var sawAnInvitation: Bool { self.seen.value.invitation }

    init(to port: UInt16, _ lie: Lie) async throws {
        let seen = Box(Seen())
        self.seen = seen
        self.listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let first = FirstByteHandler(preference: .none) { context, _ in
                        seen.withLock { $0.plaintextConnections += 1 }
                        try Self.join(context.channel, to: port, lie, seen)
                    }
                    try channel.pipeline.syncOperations.addHandler(first)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    func stop() async { try? await self.listener.close().get() }

    private static func join(_ dialler: any Channel, to port: UInt16, _ lie: Lie, _ seen: Box<Seen>) throws {
        let there = dialler.eventLoop.makePromise(of: (any Channel).self)
        try dialler.pipeline.syncOperations.addHandler(
            Relay(to: there.futureResult, saying: lie == .theDiallersPreference || lie == .both ? EncryptionPreference.none : nil, seen))
        let preference = lie == .theListenersPreference || lie == .both ? EncryptionPreference.none : nil
        let back = dialler.eventLoop.makeSucceededFuture(dialler)
        there.completeWith(
            ClientBootstrap(group: dialler.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Relay(to: back, saying: preference, seen))
                    }
                }
                .connect(host: "127.0.0.1", port: Int(port)))
    }

    /// One direction.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let other: EventLoopFuture<any Channel>
        private let preference: EncryptionPreference?
        private let seen: Box<Seen>
        private var preamble = PreambleDecoder()
        private var decoder = FrameDecoder()

        init(to other: EventLoopFuture<any Channel>, saying preference: EncryptionPreference?, _ seen: Box<Seen>) {
            self.other = other
            self.preference = preference
            self.seen = seen
            self.decoder.phase = .proven
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var buffer = self.unwrapInboundIn(data)
            var out = ByteBuffer()
            guard (try? self.preamble.consume(&buffer)) == true else { return }
            self.decoder.feed(buffer)
            while let frame = try? self.decoder.next() {
                switch frame {
                case .hello(var hello):
                    hello.encryption = self.preference ?? hello.encryption
                    out.writeBytes(WireLimits.preamble)
                    try? FrameEncoder.encode(.hello(hello), into: &out)
                case .refusal(let refusal):
                    // A refusal may be a side's first word; twice the preamble would be noise to a side that had it.
                    if self.isFirst { out.writeBytes(WireLimits.preamble) }
                    try? FrameEncoder.encode(.refusal(refusal), into: &out)
                case .invite:
                    self.seen.withLock { $0.invitation = true }
                    fallthrough
                default: try? FrameEncoder.encode(frame, into: &out)
                }
                self.isFirst = false
            }
            let bytes = out
            self.other.whenSuccess { $0.writeAndFlush(bytes, promise: nil) }
        }

        private var isFirst = true

        func channelInactive(context: ChannelHandlerContext) { self.other.whenSuccess { $0.close(promise: nil) } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
