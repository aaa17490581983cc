import Crypto
import EarshotWire
import NIOCore

/// A peer that speaks the protocol by hand, in plaintext or through a tunnel. Each test controls every frame and every byte.
final class WirePeer {
    let socket: PlainSocket
    let key: P256.Signing.PrivateKey
    let id: PeerID
    /// The time limit for the daemon's next bytes, in milliseconds.
    var patience: Int32 = 10_000
    private let name: String
    /// The transport by which its bytes reach the daemon.
    private let transport: TransportKind
    private let extensions: [HelloExtension]
    private var preamble = PreambleDecoder()
    private var decoder = FrameDecoder()

    init(
        port: UInt16, key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), name: String = "mallory", from: String = "127.0.0.1",
        transport: TransportKind = .plaintext, extensions: [HelloExtension] = []
    ) throws {
        self.socket = try PlainSocket(port: port, from: from)
        self.key = key
        self.id = PeerID(subjectPublicKeyInfo: key.publicKey.derRepresentation)
        self.name = name
        self.transport = transport
        self.extensions = extensions
        self.decoder.phase = .proven
    }

    /// Returns this peer's hello.
    func hello() throws -> Hello {
        Hello(
            versions: WireLimits.versions, publicKey: Array(self.key.publicKey.derRepresentation), signatureScheme: .ecdsaSecp256r1SHA256,
            nonce: (0..<WireLimits.nonceLength).map { _ in .random(in: .min ... .max) }, serviceType: try ServiceType("earshot"),
            displayName: try DisplayName(self.name), encryption: self.transport == .tls ? .optional : .none, extensions: self.extensions)
    }

    @discardableResult
    func send(_ frames: Frame..., preamble: Bool = false) throws -> Bool {
        var buffer = ByteBuffer()
        if preamble { buffer.writeBytes(WireLimits.preamble) }
        for frame in frames { try FrameEncoder.encode(frame, into: &buffer) }
        return self.socket.send(Array(buffer.readableBytesView))
    }

    /// Returns the next frame, after answering pings; `nil` once the connection is closed. Throws if no frame arrives in time.
    func next() throws -> Frame? {
        let deadline = ContinuousClock.now + .milliseconds(Int(self.patience))
        while true {
            guard ContinuousClock.now < deadline else { throw Silence() }
            if let frame = try self.decoder.next() {
                guard case .ping(let value) = frame else { return frame }
                try self.send(.pong(value))
                continue
            }
            guard let piece = self.socket.receive(within: self.patience) else { throw Silence() }
            guard !piece.isEmpty else { return nil }
            var buffer = ByteBuffer(bytes: piece)
            if try self.preamble.consume(&buffer) { self.decoder.feed(buffer) }
        }
    }

    /// Returns the first result of `match` on the next frames.
    func next<Value>(_ match: (Frame) -> Value?) throws -> Value {
        while let frame = try self.next() {
            if let value = match(frame) { return value }
        }
        throw Closed()
    }

    struct Closed: Error {}
    /// The error for a silent daemon.
    struct Silence: Error {}

    /// Returns the reason why the daemon closed the connection; `nil` if it gave none.
    func refusal() throws -> WireErrorCode? {
        var code: WireErrorCode?
        while let frame = try self.next() {
            if case .refusal(let refusal) = frame { code = refusal.code }
        }
        return code
    }

    /// Performs the handshake.
    @discardableResult
    func prove() throws -> WirePeer {
        let hello = try self.hello()
        try self.send(.hello(hello), preamble: true)
        let theirs = try self.next { if case .hello(let hello) = $0 { hello } else { nil } }
        let transcript = Transcript(
            initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs),
            transport: self.transport)
        let signature = try self.key.signature(for: transcript.proofInput(of: .initiator))
        try self.send(.proof(Proof(signature: Array(signature.derRepresentation))))
        return self
    }

    /// Invites the daemon, whose policy must accept.
    func join() throws -> SessionID {
        let id = InvitationID.random()
        try self.send(.invite(Invite(id: id, timeoutMilliseconds: 60_000, context: [])))
        return try self.next { frame in
            guard case .inviteAnswer(let answer) = frame, answer.id == id, case .accepted(let session) = answer.decision else { return nil }
            return session
        }
    }

    /// Makes a request that the node itself answers: all earlier frames have then been processed.
    func roundTrip() throws {
        let unknown = SessionID.random()
        try self.send(.sessionResume(unknown))
        try self.next { $0 == .sessionEnd(unknown) ? () : nil }
    }

    func message(_ text: String, in session: SessionID, sequence: UInt64) -> (id: MessageID, frame: Frame) {
        let id = MessageID.random()
        return (
            id,
            .message(
                MessageFrame(
                    session: session, id: id, mode: .reliable, sequence: sequence, sentAtMilliseconds: 0, contentType: "text/plain",
                    body: ByteBuffer(string: text)))
        )
    }
}
