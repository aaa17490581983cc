import Crypto
import Earshot
import EarshotWire
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Testing

/// A tunnel from plaintext to TLS to a daemon, with the peer's key. Each connection of a flood becomes one TLS connection.
final class TLSTunnel {
    let key: P256.Signing.PrivateKey
    let port: UInt16
    private let listener: any Channel

    init(to port: UInt16) throws {
        let directory = "\(NSTemporaryDirectory())earshot-tunnel-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let identity = try Identity.load(from: directory)
        self.key = try Self.key(in: VictimDaemon.text("\(directory)/\(Identity.fileName)"))
        let contexts = try TLSContexts(identity)
        self.listener = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { near in
                near.eventLoop.makeCompletedFuture {
                    let nearEnd = TunnelEnd()
                    try near.pipeline.syncOperations.addHandler(nearEnd)
                    let bound = NIOLoopBound(nearEnd, eventLoop: near.eventLoop)
                    ClientBootstrap(group: near.eventLoop)
                        .channelInitializer { far in
                            far.eventLoop.makeCompletedFuture {
                                let farEnd = TunnelEnd()
                                (farEnd.other, bound.value.other) = (bound.value, farEnd)
                                try far.pipeline.syncOperations.addHandlers(try contexts.clientHandler(), farEnd)
                            }
                        }
                        .connect(host: "127.0.0.1", port: Int(port))
                        .whenFailure { _ in near.close(promise: nil) }
                }
            }
            .bind(host: "127.0.0.1", port: 0).wait()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    deinit { self.listener.close(promise: nil) }

    /// Returns the private key among the PEM documents of an identity.
    private static func key(in pem: String) throws -> P256.Signing.PrivateKey {
        let begin = try #require(pem.range(of: "-----BEGIN PRIVATE KEY-----"))
        let end = try #require(pem.range(of: "-----END PRIVATE KEY-----"))
        return try P256.Signing.PrivateKey(pemRepresentation: String(pem[begin.lowerBound..<end.upperBound]))
    }
}

/// One end of a tunnel. It passes what it reads to the other end, and stops reading when that end cannot write.
private final class TunnelEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The other end, on the same event loop.
    var other: TunnelEnd?
    private var context: ChannelHandlerContext?
    private var waiting: [ByteBuffer] = []
    private var wantsRead = false

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.other?.end()
        self.other = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        for buffer in self.waiting { context.write(self.wrapOutboundOut(buffer), promise: nil) }
        self.waiting = []
        context.flush()
        self.other?.resume()
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.other?.take(self.unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) { self.other?.context?.flush() }

    func channelInactive(context: ChannelHandlerContext) {
        self.other?.end()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelWritabilityChanged(context: ChannelHandlerContext) { self.other?.resume() }

    func read(context: ChannelHandlerContext) {
        if self.other?.isReady == true {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    private var isReady: Bool { self.context.map { $0.channel.isActive && $0.channel.isWritable } ?? false }

    private func take(_ buffer: ByteBuffer) {
        guard let context, context.channel.isActive else { return self.waiting.append(buffer) }
        context.write(self.wrapOutboundOut(buffer), promise: nil)
    }

    private func resume() {
        guard self.wantsRead, self.other?.isReady == true else { return }
        self.wantsRead = false
        self.context?.read()
    }

    private func end() { self.context?.close(promise: nil) }
}
