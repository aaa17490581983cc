import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import Testing

/// Announcements that make the daemon call devices, and devices whose answers are hostile.
extension HostileTests.Devices {
    @Test("LocalSend: 10,000 forged announcements") func forgedAnnouncements() throws {
        let victim = try DeviceVictim()
        let trap = try Trap()
        let sockets = try (0..<200).map { try UDPSocket(from: "127.40.\($0 / 100).\(1 + $0 % 100)") }
        let certificate = try HostileCertificate()
        let device = HostileDevice(victim.port, as: certificate)
        #expect(try device.register() == 200)
        let count = Scale.of(10_000)
        let claimed = [certificate.fingerprint, certificate.fingerprint.lowercased(), "", "x"]
        try Attack(daemon: victim.daemon).run("LocalSend announcements", count: count) { number in
            let fingerprint = number % 5 == 0 ? claimed[number / 5 % 4] : String(format: "%064X", number)
            let changes: [String: Any] = [
                "fingerprint": fingerprint, "announce": number % 7 != 0, "port": number % 10 == 0 ? 22 : Int(trap.port),
                "alias": "forged-\(number)", "protocol": number % 11 == 0 ? "http" : "https",
            ]
            var bytes = try HostileDevice.json(device.info(changes))
            if number % 13 == 0 { bytes = Array(bytes.prefix(number % bytes.count)) }
            if number % 17 == 0 { bytes += [UInt8](repeating: 0x20, count: 2_048) }
            sockets[number % sockets.count].send(bytes, to: victim.udpPort)
            // As fast as they are decoded, so that those of every kind are.
            if number % 50 == 49 { usleep(100_000) }
        }
        let calls = trap.calls
        #expect((1...30).contains(calls.count), "\(calls.count) calls")
        #expect(Set(calls).count == calls.count, "one for each address in 10 s")
        #expect(try victim.devices().map(\.name) == ["phone"], "no announcement lists, renames or removes a device")
    }
}

/// A server on every loopback address that the daemon must not call often, or that answers what no device answers.
final class Trap: Sendable {
    private struct State {
        var calls: [String] = []
        var open = 0
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()
    private let listener: any Channel
    let port: UInt16

    /// The own addresses that were called.
    var calls: [String] { self.shared.state.withLock { $0.calls } }
    /// The number of open connections.
    var open: Int { self.shared.state.withLock { $0.open } }

    /// Opens a server. Without a certificate, it closes connections at once. Otherwise it answers the first bytes with `start`, and then with
    /// `endless` as long as the daemon reads.
    init(as certificate: HostileCertificate? = nil, start: String = "", endless: String = "") throws {
        let context = try certificate.map {
            try NIOSSLContext(
                configuration: .makeServerConfiguration(certificateChain: [.certificate($0.certificate)], privateKey: .privateKey($0.key)))
        }
        let shared = self.shared
        self.listener = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                shared.state.withLock {
                    $0.calls.append(channel.localAddress?.ipAddress ?? "")
                    $0.open += 1
                }
                channel.closeFuture.whenComplete { _ in shared.state.withLock { $0.open -= 1 } }
                return channel.eventLoop.makeCompletedFuture {
                    guard let context else { return channel.close(promise: nil) }
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLServerHandler(context: context), Endless(start: start, endless: endless))
                }
            }
            .bind(host: "0.0.0.0", port: 0).wait()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    deinit { self.listener.close(promise: nil) }

    private final class Endless: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let start: ByteBuffer
        private let endless: ByteBuffer
        private var hasBegun = false

        init(start: String, endless: String) {
            self.start = ByteBuffer(string: start)
            self.endless = ByteBuffer(string: endless)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !self.hasBegun else { return }
            self.hasBegun = true
            context.writeAndFlush(self.wrapOutboundOut(self.start), promise: nil)
            self.goOn(context)
        }

        private func goOn(_ context: ChannelHandlerContext) {
            guard self.endless.readableBytes > 0 else { return }
            let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.writeAndFlush(self.wrapOutboundOut(self.endless)).whenSuccess {
                // In a turn of its own: a write that succeeds at once would otherwise recurse without end.
                this.eventLoop.execute {
                    let (this, context) = this.value
                    this.goOn(context)
                }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
