import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

@testable import Earshot

/// A value that several threads of a test share.
final class Box<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>
    init(_ value: Value) { self.storage = Mutex(value) }
    var value: Value { self.storage.withLock { $0 } }
    func withLock(_ body: (inout Value) -> Void) { self.storage.withLock { body(&$0) } }
}

/// Nothing that a test provokes belongs on the console.
var quietLogger: Logger {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
}

/// Hello's words of a peer of this version.
func makeHello(_ identity: Identity, _ name: String, service: String = "earshot", nonce: UInt8? = nil) throws -> Hello {
    Hello(
        versions: WireLimits.versions, publicKey: identity.publicKey, signatureScheme: .ecdsaSecp256r1SHA256,
        nonce: (0..<WireLimits.nonceLength).map { _ in nonce ?? .random(in: .min ... .max) }, serviceType: try ServiceType(service),
        displayName: try DisplayName(name), encryption: .required)
}

/// A peer whose every byte a test decides: TLS with an identity of its own, and frames by hand.
final class RawPeer: Sendable {
    /// Bytes to frames, without any of the rules.
    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let frames: AsyncStream<Frame>.Continuation
        private let errors: Box<[any Error]>
        private var preamble = PreambleDecoder()
        private var decoder = FrameDecoder()

        init(_ frames: AsyncStream<Frame>.Continuation, _ errors: Box<[any Error]>) {
            self.frames = frames
            self.errors = errors
            self.decoder.phase = .proven
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var buffer = self.unwrapInboundIn(data)
            guard (try? self.preamble.consume(&buffer)) == true else { return }
            self.decoder.feed(buffer)
            while let frame = try? self.decoder.next() {
                // Signs of life are given, however long the node is busy.
                if case .ping(let value) = frame {
                    var pong = ByteBuffer()
                    if (try? FrameEncoder.encode(.pong(value), into: &pong)) != nil {
                        context.writeAndFlush(self.wrapOutboundOut(pong), promise: nil)
                    }
                } else {
                    self.frames.yield(frame)
                }
            }
        }

        func channelInactive(context: ChannelHandlerContext) { self.frames.finish() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            self.errors.withLock { $0.append(error) }
            context.close(promise: nil)
        }
    }

    let identity: Identity
    let name: String
    let channel: any Channel
    let transport: TransportKind
    /// What has gone wrong with the connection.
    let errors = Box<[any Error]>([])
    private let frames: AsyncStream<Frame>

    /// A new identity that is kept nowhere.
    static func makeIdentity() throws -> Identity {
        let directory = try StateDirectory()
        return try Identity.load(from: directory.path)
    }

    /// Connects, from any address of loopback. `chain`: what it shows instead of its identity's own certificate.
    init(
        to node: TestNode, as identity: Identity? = nil, showing chain: [[UInt8]]? = nil, name: String = "mallory", tls: Bool = true,
        from source: String = "127.0.0.1"
    ) async throws {
        let identity = try identity ?? Self.makeIdentity()
        let contexts = try TLSContexts(identity)
        let shown = try chain.map { chain in
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateChain = try chain.map { .certificate(try NIOSSLCertificate(bytes: $0, format: .der)) }
            configuration.privateKey = .privateKey(identity.tlsPrivateKey)
            configuration.certificateVerification = .none
            return try NIOSSLContext(configuration: configuration)
        }
        let (frames, continuation) = AsyncStream.makeStream(of: Frame.self)
        self.identity = identity
        self.name = name
        self.transport = tls ? .tls : .plaintext
        self.frames = frames
        let errors = self.errors
        self.channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let shown {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: shown, serverHostname: nil))
                    } else if tls {
                        try channel.pipeline.syncOperations.addHandler(try contexts.clientHandler())
                    }
                    try channel.pipeline.syncOperations.addHandler(Reader(continuation, errors))
                }
            }
            .bind(to: SocketAddress(ipAddress: source, port: 0))
            .connect(host: "127.0.0.1", port: Int(node.port)).get()
    }

    var id: PeerID { self.identity.id }

    func send(_ frames: Frame..., preamble: Bool = false) async throws {
        var buffer = ByteBuffer()
        if preamble { buffer.writeBytes(WireLimits.preamble) }
        for frame in frames { try FrameEncoder.encode(frame, into: &buffer) }
        try await self.channel.writeAndFlush(buffer)
    }

    func send(bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// The next frame; `nil` once the node has closed the connection.
    func next() async -> Frame? {
        var iterator = self.frames.makeAsyncIterator()
        return await iterator.next()
    }

    /// The next frame that `match` takes; others are passed over.
    func next<T>(_ match: (Frame) -> T?) async throws -> T {
        while let frame = await self.next() {
            if let value = match(frame) { return value }
        }
        throw EarshotError(.notConnected, "the connection closed before the frame came")
    }

    /// Why the node closed the connection; `nil` where it did so without a word.
    func refusal() async -> WireErrorCode? {
        var code: WireErrorCode?
        while let frame = await self.next() {
            if case .refusal(let refusal) = frame { code = refusal.code }
        }
        return code
    }

    /// This peer's words, which yield the transport in use.
    func hello() throws -> Hello {
        var hello = try makeHello(self.identity, self.name)
        if self.transport == .plaintext { hello.encryption = .none }
        return hello
    }

    /// Runs the handshake as a data connection does.
    func proveForData() async throws {
        var hello = try self.hello()
        hello.extensions = [.dataConnection]
        try await self.prove(hello: hello)
    }

    /// Runs the handshake, and gives the signed input for tests that use it again.
    @discardableResult
    func prove(hello: Hello? = nil, signing: (([UInt8]) throws -> [UInt8])? = nil) async throws -> (hello: Hello, proof: Proof) {
        let hello = try hello ?? self.hello()
        try await self.send(.hello(hello), preamble: true)
        let theirs = try await self.next { if case .hello(let hello) = $0 { hello } else { nil } }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs),
            transport: self.transport)
        let sign = signing ?? self.identity.sign
        let proof = Proof(signature: try sign(transcript.proofInput(of: .initiator)))
        try await self.send(.proof(proof))
        return (hello, proof)
    }

    /// Invites the node, whose policy or person must accept.
    func join(invitation: InvitationID = .random()) async throws -> SessionID {
        try await self.send(.invite(Invite(id: invitation, timeoutMilliseconds: 60_000, context: [])))
        return try await self.next { frame -> SessionID? in
            guard case .inviteAnswer(let answer) = frame, answer.id == invitation, case .accepted(let session) = answer.decision else {
                return nil
            }
            return session
        }
    }

    /// The same peer on a new connection, which has named the session.
    func back(to node: TestNode, in session: SessionID) async throws -> RawPeer {
        let again = try await RawPeer(to: node, as: self.identity)
        try await again.prove()
        try await again.send(.sessionResume(session))
        return again
    }

    /// The same, attached to the session.
    func attached(to node: TestNode, in session: SessionID) async throws -> RawPeer {
        let again = try await self.back(to: node, in: session)
        try await again.roundTrip()
        return again
    }

    /// What the node says to a resource of this peer's.
    func resourceAnswer() async throws -> Frame {
        try await self.next { frame in
            switch frame {
            case .resourceAccept, .resourceHave, .resourceRefuse, .resourceCancel, .resourceDone: frame
            default: nil
            }
        }
    }

    /// One question that the node itself answers, not only its handler: everything sent before has been dealt with.
    func roundTrip() async throws {
        let unknown = SessionID.random()
        try await self.send(.sessionResume(unknown))
        _ = try await self.next { $0 == .sessionEnd(unknown) ? () : nil }
    }

    func close() async { try? await self.channel.close().get() }

    func message(_ text: String, in session: SessionID, sequence: UInt64 = 1, id: MessageID = .random()) -> Frame {
        .message(
            MessageFrame(
                session: session, id: id, mode: .reliable, sequence: sequence, sentAtMilliseconds: 0, contentType: "text/plain",
                body: ByteBuffer(string: text)))
    }

    func offer(_ name: String, size: UInt64, in session: SessionID, id: ResourceID = .random()) -> Frame {
        .resourceOffer(ResourceOffer(session: session, id: id, kind: .file, size: size, name: name))
    }
}
