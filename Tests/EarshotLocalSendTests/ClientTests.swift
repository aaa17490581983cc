import EarshotCore
import EarshotWire
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import Earshot
@testable import EarshotLocalSend

@Suite(.timeLimit(.minutes(2))) struct ClientTests {
    private let file = DeviceFile(id: "1", name: "a.txt", size: 5, contentType: "text/plain")
    private let upload = DeviceUpload(session: "s&", file: "1", token: "t t")

    /// Runs two devices, and gives the sender, the target and the receiver's node.
    private func withPair(
        _ node: TestNode = TestNode(), _ body: (LocalSendTransport, DeviceTarget, TestNode) async throws -> Void
    ) async throws {
        try await withDevice { sender, _, _ in
            try await withDevice(node) { receiver, node, port in
                let identity = try #require(receiver.identity)
                try await body(sender, DeviceTarget(id: identity.id, address: loopback(port)), node)
            }
        }
    }

    @Test func `register returns the proven id and the description`() async throws {
        try await self.withPair { sender, target, node in
            let (id, info) = try await sender.register(at: target.address, name: "bob")
            #expect(id == target.id)
            #expect(info.alias == "alice")
            #expect(info.fingerprint == target.id.bytes.hexadecimal)
            guard case .registered(let registered, let from) = node.calls.first else {
                Issue.record("no call")
                return
            }
            #expect(registered.alias == "bob")
            #expect(registered.fingerprint == from.id?.bytes.hexadecimal)
            #expect(registered.isEncrypted)
            #expect(from.id == sender.identity?.id)
        }
    }

    @Test func `an offer is answered`() async throws {
        let answer = DeviceOfferAnswer.upload(session: "s", tokens: [DeviceToken(file: "1", token: "t")])
        try await self.withPair(TestNode(.init(offer: .success(answer)))) { sender, target, node in
            let taken = try await sender.offer([self.file], to: target, name: "bob", pin: "a b&c")
            #expect(taken == answer)
            #expect(node.calls.first == .pin("a b&c"))
            guard case .offered(let offer, let from) = node.calls.last else {
                Issue.record("no call")
                return
            }
            #expect(offer.files == [self.file])
            #expect(from.id == sender.identity?.id)
            node.decide { $0.offer = .success(.nothingToSend) }
            let nothing = try await sender.offer([self.file], to: target, name: "bob", pin: nil)
            #expect(nothing == .nothingToSend)
        }
    }

    @Test(arguments: DeviceRefusal.allCases)
    func `each refusal has its status`(_ refusal: DeviceRefusal) async throws {
        let node = TestNode(.init(offer: .failure(refusal), upload: refusal, cancel: refusal))
        try await self.withPair(node) { sender, target, node in
            let failure = DeviceFailure.refused(status: refusal.rawValue)
            await #expect(throws: failure) { try await sender.offer([self.file], to: target, name: "bob", pin: nil) }
            await #expect(throws: failure) { try await sender.upload(self.upload, size: 5, to: target, body: TestBody("hello")) }
            await #expect(throws: failure) { try await sender.cancel(session: "s", at: target) }
            node.decide { $0.pin = refusal }
            await #expect(throws: failure) { try await sender.offer([self.file], to: target, name: "bob", pin: nil) }
        }
    }

    @Test(arguments: [0, 1, 5, 300 * 1024, 3 * 1024 * 1024])
    func `an upload arrives whole`(_ size: Int) async throws {
        try await self.withPair { sender, target, node in
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            let pieces = stride(from: 0, to: size, by: 700 * 1024).map { ByteBuffer(bytes: bytes[$0..<min(size, $0 + 700 * 1024)]) }
            try await sender.upload(self.upload, size: UInt64(size), to: target, body: TestBody(pieces))
            guard case .uploaded(let upload, let from, let received) = node.calls.last else {
                Issue.record("no call")
                return
            }
            #expect(upload == self.upload)
            #expect(from.id == sender.identity?.id)
            #expect(received == bytes)
        }
    }

    @Test(arguments: [4, 6])
    func `an upload of another size than offered fails`(_ size: UInt64) async throws {
        try await self.withPair { sender, target, node in
            do throws(DeviceFailure) {
                try await sender.upload(self.upload, size: size, to: target, body: TestBody("hello"))
                Issue.record("the upload succeeded")
            } catch {
                guard case .lost = error else {
                    Issue.record("\(error)")
                    return
                }
            }
            // The connection may end before the device has read the request.
            #expect(!node.calls.contains { if case .uploaded = $0 { true } else { false } })
        }
    }

    @Test func `an answer in the middle of an upload ends it`() async throws {
        let node = TestNode(.init(upload: .declined, answersUploadAtOnce: true))
        try await self.withPair(node) { sender, target, _ in
            let body = TestBody((0..<400).map { _ in ByteBuffer(repeating: 1, count: 256 * 1024) })
            await #expect(throws: DeviceFailure.refused(status: 403)) {
                try await sender.upload(self.upload, size: 400 * 256 * 1024, to: target, body: body)
            }
        }
    }

    @Test func `another certificate gets no byte of a request`() async throws {
        try await self.withPair { sender, target, node in
            let other = DeviceTarget(id: PeerID(deviceCertificate: [1]), address: target.address)
            await #expect(throws: DeviceFailure.identityMismatch) {
                try await sender.offer([self.file], to: other, name: "bob", pin: "1234")
            }
            await #expect(throws: DeviceFailure.identityMismatch) {
                try await sender.upload(self.upload, size: 5, to: other, body: TestBody("hello"))
            }
            await #expect(throws: DeviceFailure.identityMismatch) { try await sender.cancel(session: "s", at: other) }
            #expect(node.calls.isEmpty)
        }
    }

    @Test func `a cancelled offer is withdrawn`() async throws {
        try await self.withPair(TestNode(.init(holdsOffer: true))) { sender, target, node in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { _ = try? await sender.offer([self.file], to: target, name: "bob", pin: nil) }
                await node.call { if case .offered = $0 { true } else { false } }
                group.cancelAll()
                await node.call { $0 == .offerWithdrawn }
            }
        }
    }

    @Test func `a device that does not listen is unreachable`() async throws {
        try await withDevice { sender, _, _ in
            let port = try await withDevice { _, _, port in port }
            do throws(DeviceFailure) {
                _ = try await sender.register(at: loopback(port), name: "bob")
                Issue.record("somebody answered")
            } catch {
                guard case .unreachable = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
    }

    @Test func `a device that speaks no TLS is unreachable`() async throws {
        let plain = try await Stub.listen(tls: nil, answer: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        try await withDevice { sender, _, _ in
            do throws(DeviceFailure) {
                _ = try await sender.register(at: loopback(plain.port), name: "bob")
                Issue.record("the answer was taken")
            } catch {
                guard case .unreachable = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
        try await plain.close()
    }

    @Test(arguments: [
        ("HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1/\r\ncontent-length: 0\r\n\r\n", DeviceFailure.refused(status: 302)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", .invalid("the answer is not LocalSend's")),
        ("no HTTP\r\n\r\n", .invalid("the answer is not HTTP")),
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", .lost("the device has closed the connection")),
        ("", .lost("the device has closed the connection")),
    ])
    func `an answer that is not LocalSend's fails`(_ answer: String, _ failure: DeviceFailure) async throws {
        let certificate = try DeviceCertificate.load(from: nil)
        let stub = try await Stub.listen(tls: certificate, answer: answer)
        try await withDevice { sender, _, _ in
            let target = DeviceTarget(id: certificate.id, address: loopback(stub.port))
            await #expect(throws: failure) { try await sender.offer([self.file], to: target, name: "bob", pin: nil) }
        }
        try await stub.close()
    }

    /// Returns an answer of exactly so many bytes, with its head. Spaces follow the JSON.
    private static func answer(_ json: String, bytes: Int) -> String {
        let line = "HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n"
        let digits = "\(bytes - line.utf8.count)".utf8.count
        let length = bytes - line.utf8.count - digits
        return line.replacing(": ", with: ": \(length)") + json + String(repeating: " ", count: length - json.utf8.count)
    }

    @Test func `an answer has at most 64 KiB, and one to an offer 4 MiB`() async throws {
        let certificate = try DeviceCertificate.load(from: nil)
        func failure(
            _ answer: String, _ call: (LocalSendTransport, DeviceTarget) async throws -> Void
        ) async throws -> DeviceFailure? {
            let stub = try await Stub.listen(tls: certificate, answer: answer)
            let failure = try await withDevice { sender, _, _ -> DeviceFailure? in
                do {
                    try await call(sender, DeviceTarget(id: certificate.id, address: loopback(stub.port)))
                    return nil
                } catch let error as DeviceFailure {
                    return error
                }
            }
            try await stub.close()
            return failure
        }
        for excess in [0, 1] {
            let tooLong: DeviceFailure? = excess == 0 ? nil : .invalid("the answer is too long")
            let description = Self.answer(#"{"alias":"bob","version":"2.1"}"#, bytes: LocalSendLimits.shortAnswerBytes + excess)
            #expect(try await failure(description) { _ = try await $0.register(at: $1.address, name: "alice") } == tooLong)
            let tokens = Self.answer(#"{"sessionId":"s","files":{"1":"t"}}"#, bytes: LocalSendLimits.offerAnswerBytes + excess)
            #expect(try await failure(tokens) { _ = try await $0.offer([self.file], to: $1, name: "alice", pin: nil) } == tooLong)
        }
    }

    /// The connection is closed when its bytes are too many. TLS would read all certificates first, and send an alert.
    @Test func `a device with many certificates is not heard to the end`() async throws {
        let certificate = try DeviceCertificate.load(from: nil)
        let chain = [NIOSSLCertificateSource](repeating: .certificate(certificate.certificate), count: 100)
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(certificate.key)))
        let ending = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Void.self)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: context), Ending(ending))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = UInt16(clamping: server.localAddress?.port ?? 0)
        try await withDevice { sender, _, _ in
            _ = await #expect(throws: DeviceFailure.self) { try await sender.register(at: loopback(port), name: "alice") }
        }
        await #expect(throws: IOError.self) { try await ending.futureResult.get() }
        try await server.close()
    }
}

/// Reports the first error of a connection.
private final class Ending: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let promise: EventLoopPromise<Void>
    init(_ promise: EventLoopPromise<Void>) { self.promise = promise }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.promise.fail(error)
        context.close(promise: nil)
    }
    func channelInactive(context: ChannelHandlerContext) { self.promise.succeed() }
}

/// A server that answers the first bytes of each connection with a text, and closes the connection.
private struct Stub {
    let channel: any Channel
    var port: UInt16 { UInt16(clamping: self.channel.localAddress?.port ?? 0) }

    private final class Answerer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let answer: String
        private var isAnswered = false
        init(_ answer: String) { self.answer = answer }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !self.isAnswered else { return }
            self.isAnswered = true
            let channel = context.channel
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: self.answer))).whenComplete { _ in channel.close(promise: nil) }
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    static func listen(tls: DeviceCertificate?, answer: String) async throws -> Stub {
        let tls = try tls.map { try DeviceTLS($0, on: MultiThreadedEventLoopGroup.singleton) }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(tls.serverHandler()) }
                    try channel.pipeline.syncOperations.addHandler(Answerer(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return Stub(channel: channel)
    }

    func close() async throws { try await self.channel.close() }
}
