import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

@testable import Earshot

/// A value that is shared by several threads of a test.
final class Box<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>
    init(_ value: Value) { self.storage = Mutex(value) }
    var value: Value { self.storage.withLock { $0 } }
    func withLock(_ body: (inout Value) -> Void) { self.storage.withLock { body(&$0) } }
}

/// A logger that keeps provoked errors off the console.
var quietLogger: Logger {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
}

/// Returns the hello of a peer of this version.
func makeHello(_ identity: Identity, _ name: String, service: String = "earshot", nonce: UInt8? = nil) throws -> Hello {
    Hello(
        versions: WireLimits.versions, publicKey: identity.publicKey, signatureScheme: .ecdsaSecp256r1SHA256,
        nonce: (0..<WireLimits.nonceLength).map { _ in nonce ?? .random(in: .min ... .max) }, serviceType: try ServiceType(service),
        displayName: try DisplayName(name), encryption: .required)
}

/// A peer whose bytes the test controls: TLS with its own identity, and frames from the test.
final class RawPeer: Sendable {
    /// Decodes frames without checking any rules.
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
                // Pings are answered, however busy the node is.
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
    /// The errors of the connection.
    let errors = Box<[any Error]>([])
    private let frames: AsyncStream<Frame>

    /// Creates an identity that is not stored.
    static func makeIdentity() throws -> Identity {
        let directory = try StateDirectory()
        return try Identity.load(from: directory.path)
    }

    /// Connects, from any address of loopback. `chain` is presented instead of the identity's own certificate.
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

    /// Waits for the next frame and returns it; `nil` when the node has closed the connection.
    func next() async -> Frame? {
        var iterator = self.frames.makeAsyncIterator()
        return await iterator.next()
    }

    /// Waits for the next frame that `match` accepts, ignoring others.
    func next<T>(_ match: (Frame) -> T?) async throws -> T {
        while let frame = await self.next() {
            if let value = match(frame) { return value }
        }
        throw EarshotError(.notConnected, "the connection closed before the frame came")
    }

    /// Returns the reason why the node closed the connection; `nil` if it sent none.
    func refusal() async -> WireErrorCode? {
        var code: WireErrorCode?
        while let frame = await self.next() {
            if case .refusal(let refusal) = frame { code = refusal.code }
        }
        return code
    }

    /// Returns this peer's hello, which results in the current transport.
    func hello() throws -> Hello {
        var hello = try makeHello(self.identity, self.name)
        if self.transport == .plaintext { hello.encryption = .none }
        return hello
    }

    /// Runs the handshake of a data connection.
    func proveForData() async throws {
        var hello = try self.hello()
        hello.extensions = [.dataConnection]
        try await self.prove(hello: hello)
    }

    /// Runs the handshake, and returns the hello and the proof for tests that use them again.
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

    /// Invites the node, whose policy or user must accept.
    func join(invitation: InvitationID = .random()) async throws -> SessionID {
        try await self.send(.invite(Invite(id: invitation, timeoutMilliseconds: 60_000, context: [])))
        return try await self.next { frame -> SessionID? in
            guard case .inviteAnswer(let answer) = frame, answer.id == invitation, case .accepted(let session) = answer.decision else {
                return nil
            }
            return session
        }
    }

    /// Creates a peer in a session with a node, whose policy or user must accept. `extensions` replaces those of the peer's hello.
    static func joined(
        to node: TestNode, name: String = "mallory", extensions: [HelloExtension]? = nil
    ) async throws -> (raw: RawPeer, session: SessionID) {
        let raw = try await RawPeer(to: node, name: name)
        var hello = try raw.hello()
        if let extensions { hello.extensions = extensions }
        try await raw.prove(hello: hello)
        return (raw, try await raw.join())
    }

    /// Creates a peer in a session with a new node, which accepts strangers and ignores how full the disk is.
    static func joined(
        extensions: [HelloExtension]? = nil, configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws -> (raw: RawPeer, node: TestNode, session: SessionID) {
        let node = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.reserve = 0
            configure(&$0)
        }
        let (raw, session) = try await Self.joined(to: node, extensions: extensions)
        return (raw, node, session)
    }

    /// Reconnects as the same peer, and names the session.
    func back(to node: TestNode, in session: SessionID) async throws -> RawPeer {
        let again = try await RawPeer(to: node, as: self.identity)
        try await again.prove()
        try await again.send(.sessionResume(session))
        return again
    }

    /// Reconnects as the same peer, and attaches to the session.
    func attached(to node: TestNode, in session: SessionID) async throws -> RawPeer {
        let again = try await self.back(to: node, in: session)
        try await again.roundTrip()
        return again
    }

    /// Waits for the node's answer to a resource of this peer.
    func resourceAnswer() async throws -> Frame {
        try await self.next { frame in
            switch frame {
            case .resource(.accept), .resource(.have), .resource(.refuse), .resource(.cancel), .resource(.done): frame
            default: nil
            }
        }
    }

    /// Sends a request that the node itself answers, not only its handler. All earlier frames have then been handled.
    func roundTrip() async throws {
        let unknown = SessionID.random()
        try await self.send(.sessionResume(unknown))
        _ = try await self.next { $0 == .sessionEnd(unknown) ? () : nil }
    }

    func close() async { try? await self.channel.close().get() }

    func message(
        _ text: String, in session: SessionID, sequence: UInt64 = 1, id: MessageID = .random(), inReplyTo: MessageID? = nil
    ) -> Frame {
        .message(
            MessageFrame(
                session: session, id: id, mode: .reliable, sequence: sequence, sentAtMilliseconds: 0, inReplyTo: inReplyTo,
                contentType: "text/plain", body: ByteBuffer(string: text)))
    }

    func offer(_ name: String, size: UInt64, in session: SessionID, id: ResourceID = .random()) -> Frame {
        .resource(.offer(ResourceOffer(session: session, id: id, kind: .file, size: size, name: name)))
    }
}
