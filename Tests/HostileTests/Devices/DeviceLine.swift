import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// One TLS connection of an attacking device. The test writes its bytes, and its thread waits for the answers.
final class DeviceLine: Sendable {
    /// An answer of the daemon.
    struct Answer: Equatable {
        let status: Int
        let body: String
    }

    private struct State {
        var bytes: [UInt8] = []
        var isOpen = false
        var isClosed = false
    }

    private final class Inbox: Sendable {
        let state = Mutex(State())
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let inbox: Inbox

        init(_ inbox: Inbox) { self.inbox = inbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(self.unwrapInboundIn(data).readableBytesView)
            self.inbox.state.withLock { $0.bytes += bytes }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            self.inbox.state.withLock { $0.isOpen = true }
        }

        func channelInactive(context: ChannelHandlerContext) { self.inbox.state.withLock { $0.isClosed = true } }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private let channel: any Channel
    private let inbox = Inbox()

    /// Connects to a port of this machine, from one of its loopback addresses, with a certificate or without one.
    init(to port: UInt16, from source: String, as certificate: HostileCertificate?, version: TLSVersion = .tlsv13) throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.maximumTLSVersion = version
        if let certificate {
            configuration.certificateChain = certificate.chain
            configuration.privateKey = .privateKey(certificate.key)
        }
        let context = try NIOSSLContext(configuration: configuration)
        let inbox = self.inbox
        self.channel = try ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: SocketAddress(ipAddress: source, port: 0))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLClientHandler(context: context, serverHostname: nil), Reader(inbox))
                }
            }
            .connect(to: SocketAddress(ipAddress: "127.0.0.1", port: Int(port))).wait()
    }

    deinit { self.channel.close(promise: nil) }

    func close() { try? self.channel.close().wait() }

    /// Sends bytes, as fast as the daemon reads.
    func send(_ bytes: [UInt8]) { self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    func send(_ text: String) { self.send(Array(text.utf8)) }

    /// Whether the connection has ended.
    var isClosed: Bool { self.inbox.state.withLock { $0.isClosed } }

    /// Waits for the end of the connection. Returns whether it came within the time.
    func ends(within seconds: Double = 15) -> Bool {
        self.wait(seconds) { $0.isClosed ? true : nil } ?? false
    }

    /// Waits for the next answer; `nil` if the connection ends, or is silent, without one.
    func answer(within seconds: Double = 30) -> Answer? {
        self.wait(seconds) { state -> Answer?? in
            if let answer = Self.takeAnswer(&state.bytes) { return .some(answer) }
            return state.isClosed ? .some(nil) : nil
        } ?? nil
    }

    private func wait<Result>(_ seconds: Double, _ find: (inout State) -> Result?) -> Result? {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < deadline {
            if let result = self.inbox.state.withLock({ find(&$0) }) { return result }
            usleep(500)
        }
        return nil
    }

    /// Removes the first answer from the bytes.
    private static func takeAnswer(_ bytes: inout [UInt8]) -> Answer? {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let length = lines.first { $0.lowercased().hasPrefix("content-length:") }.flatMap { Int($0.dropFirst(15).filter(\.isNumber)) } ?? 0
        guard bytes.count >= end.upperBound + length, let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        defer { bytes.removeFirst(end.upperBound + length) }
        return Answer(status: status, body: String(decoding: bytes[end.upperBound..<(end.upperBound + length)], as: UTF8.self))
    }
}
