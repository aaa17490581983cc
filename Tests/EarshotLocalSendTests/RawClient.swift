import EarshotWaiting
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

@testable import Earshot
@testable import EarshotLocalSend

#if canImport(Glibc)
    import Glibc
#endif

/// A client whose bytes the test writes, with TLS or without, and with a certificate or without.
final class RawClient: Sendable {
    private struct State {
        var received = ByteBuffer()
        var isClosed = false
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let take: (ByteBuffer?) -> Void
        init(_ take: @escaping (ByteBuffer?) -> Void) { self.take = take }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.take(self.unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { self.take(nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    let channel: any Channel
    private let shared: Shared

    private final class Shared: Sendable {
        let state = Mutex(State())
        let changes = Changes()
    }

    private init(_ channel: any Channel, _ shared: Shared) {
        self.channel = channel
        self.shared = shared
    }

    enum Security: Sendable {
        case plain
        case tls(DeviceCertificate?, TLSVersion = .tlsv13)
    }

    static func connect(to port: UInt16, _ security: Security = .tls(nil)) async throws -> RawClient {
        let shared = Shared()
        var context: NIOSSLContext?
        if case .tls(let certificate, let version) = security {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateVerification = .none
            configuration.maximumTLSVersion = version
            if let certificate {
                configuration.certificateChain = [.certificate(certificate.certificate)]
                configuration.privateKey = .privateKey(certificate.key)
            }
            context = try NIOSSLContext(configuration: configuration)
        }
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { [context] channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        Reader { buffer in
                            shared.state.withLock { state in
                                if var buffer { state.received.writeBuffer(&buffer) } else { state.isClosed = true }
                            }
                            shared.changes.tell()
                        })
                }
            }
            .connect(host: "127.0.0.1", port: Int(port)).get()
        return RawClient(channel, shared)
    }

    func send(_ text: String) async throws { try await self.channel.writeAndFlush(ByteBuffer(string: text)) }

    func send(_ buffer: ByteBuffer) async throws { try await self.channel.writeAndFlush(buffer) }

    /// Everything received so far.
    var received: String { self.shared.state.withLock { String(buffer: $0.received) } }

    /// Waits until `text` is received as the `count`th time, or the connection is closed, and returns everything received.
    func receive(until text: String, count: Int = 1) async -> String {
        while true {
            let seen = self.shared.changes.count
            let (received, isClosed) = self.shared.state.withLock { (String(buffer: $0.received), $0.isClosed) }
            if isClosed || received.components(of: text) >= count { return received }
            _ = await self.shared.changes.wait(after: seen)
        }
    }

    /// Waits for the end of the connection, and returns everything received.
    func receiveAll() async -> String {
        while true {
            let seen = self.shared.changes.count
            let (received, isClosed) = self.shared.state.withLock { (String(buffer: $0.received), $0.isClosed) }
            if isClosed { return received }
            _ = await self.shared.changes.wait(after: seen)
        }
    }

    /// Ends the connection without the goodbye of TLS.
    func abort() async throws {
        try await self.channel.eventLoop.submit { self.channel.closeWithoutGoodbye() }.get()
    }

    func close() async { try? await self.channel.close() }
}

extension String {
    /// Returns the number of occurrences of a text.
    func components(of text: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: text) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}

/// Returns a POST request.
func post(_ target: String, _ body: String, headers: String = "") -> String {
    "POST /api/localsend/\(target) HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
}
