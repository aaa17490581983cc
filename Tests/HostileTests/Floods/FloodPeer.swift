import Crypto
import EarshotWire
import Glibc
import NIOCore

/// The relation of a flooding peer to its victim.
enum FloodStand: Sendable, CustomStringConvertible {
    /// The peer floods in place of its hello, or of its proof.
    case unproven
    /// The peer has proven its key, and has no session.
    case stranger
    /// The peer is in a session.
    case member
    /// The peer's session has ended.
    case former

    var description: String {
        switch self {
        case .unproven: "before the proof"
        case .stranger: "strangers"
        case .member: "members"
        case .former: "after the session"
        }
    }

    /// Whether the peer first joins a session.
    var joins: Bool { self == .member || self == .former }
}

/// One connection of a flood, which never blocks. It takes the victim's steps as far as needed, then writes its template as long as the
/// victim reads, and discards all input. If the victim closes it, it reconnects at once, with the same key.
final class FloodPeer {
    private enum Stage {
        case closed
        /// The hello has been sent.
        case greeting(Hello)
        /// The invitation has been sent, or the session's name.
        case joining
        case flooding
    }

    /// Whether the peer reads nothing; used by tests of such peers.
    var isDeaf = false
    let stand: FloodStand
    let key: P256.Signing.PrivateKey
    let address: String
    private let number: Int
    private let port: UInt16
    private let transport: TransportKind
    private(set) var descriptor: CInt = -1
    private(set) var session: SessionID?
    /// The bytes of its floods that the victim's kernel has accepted.
    private(set) var sent = 0
    private(set) var connections = 0
    private var waitsUntil: ContinuousClock.Instant?
    /// The consecutive connections that were closed before it flooded.
    private var failures = 0
    private var stage = Stage.closed {
        didSet {
            guard case .flooding = self.stage else { return }
            self.hasBegun = true
            self.failures = 0
        }
    }
    /// Whether it floods with the latest template.
    private(set) var hasBegun = false
    private var preamble = PreambleDecoder()
    private var decoder = FrameDecoder()
    private var template: FloodTemplate
    /// The bytes that are being written, and the position in them.
    private var buffer: [UInt8] = []
    private var position = 0
    /// Whether the buffer is a copy of the template.
    private var isTemplate = false
    /// The number of its first run; each peer uses other numbers.
    private var base: UInt32

    init(
        _ number: Int, _ stand: FloodStand, port: UInt16, over transport: TransportKind, key: P256.Signing.PrivateKey,
        _ template: FloodTemplate
    ) {
        self.number = number
        self.key = key
        self.stand = stand
        self.port = port
        self.transport = transport
        self.template = template
        self.address = "127.\(20 + Int.random(in: 0..<200)).\(number / 200 % 200).\(1 + number % 200)"
        self.base = UInt32(number % 100) * 20_000_000 + .random(in: 0..<10_000_000)
    }

    deinit { self.close() }

    /// Sends this template from now on, after the one that is being sent.
    func load(_ template: FloodTemplate) {
        // A data connection is one from its hello on.
        if template.isForData != self.template.isForData { self.close() }
        self.template = template
        self.isTemplate = false
        self.hasBegun = if case .flooding = self.stage { true } else { false }
    }

    var isClosed: Bool { if case .closed = self.stage { true } else { false } }

    /// Whether it is to connect now. A peer whose invitation was refused retries a little later.
    var wantsConnection: Bool { self.isClosed && (self.waitsUntil.map { $0 <= .now } ?? true) }

    /// The events that it waits for, for poll(2).
    var events: Int16 {
        let isFlooding = if case .flooding = self.stage { true } else { false }
        let writes = self.position < self.buffer.count || isFlooding
        let reads = !(self.isDeaf && isFlooding)
        return (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
    }

    /// Closes its connection. With `abrupt` the connection is reset, which makes the victim discard unread bytes.
    func close(abrupt: Bool = false) {
        if abrupt, self.descriptor >= 0 {
            var none = linger(l_onoff: 1, l_linger: 0)
            setsockopt(self.descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
        }
        if self.descriptor >= 0 { Glibc.close(self.descriptor) }
        self.descriptor = -1
        switch self.stage {
        case .closed, .flooding: break
        case .greeting, .joining:
            // A hundred peers that reconnect at once would only block each other: the victim has places for 32 unproven connections.
            self.waitsUntil = .now + .milliseconds(.random(in: 1...20)) * (1 << min(self.failures, 5))
            self.failures += 1
        }
        self.stage = .closed
    }

    // MARK: Handshake

    /// Starts to connect, without waiting.
    func connect() throws {
        self.close()
        self.descriptor = try PlainSocket.begin(port: self.port, from: self.address)
        self.connections += 1
        self.preamble = PreambleDecoder()
        self.decoder = FrameDecoder()
        self.decoder.phase = .proven
        self.position = 0
        self.isTemplate = false
        self.buffer = WireLimits.preamble
        let hello = try self.hello()
        guard self.stand != .unproven else {
            // Floods in place of the hello, or of the proof.
            if self.number % 2 == 1 { try self.say(.hello(hello)) }
            self.stage = .flooding
            return
        }
        try self.say(.hello(hello))
        self.stage = .greeting(hello)
    }

    private func hello() throws -> Hello {
        Hello(
            versions: WireLimits.versions, publicKey: Array(self.key.publicKey.derRepresentation), signatureScheme: .ecdsaSecp256r1SHA256,
            nonce: (0..<WireLimits.nonceLength).map { _ in .random(in: .min ... .max) }, serviceType: try ServiceType("earshot"),
            displayName: try DisplayName("flood \(self.number)"), encryption: self.transport == .tls ? .optional : .none,
            extensions: self.template.isForData ? [.dataConnection] : [.streamReroute, .groups])
    }

    private func say(_ frames: Frame...) throws {
        var buffer = ByteBuffer()
        for frame in frames { try FrameEncoder.encode(frame, into: &buffer) }
        self.buffer += buffer.readableBytesView
    }

    // MARK: Reading

    /// Reads the available bytes; `scratch` receives those to be discarded.
    func readable(_ scratch: UnsafeMutableRawBufferPointer) throws {
        let count = recv(self.descriptor, scratch.baseAddress, scratch.count, CInt(MSG_DONTWAIT))
        guard count > 0 else {
            if count == 0 || errno != EAGAIN { self.close() }
            return
        }
        if case .flooding = self.stage { return }
        var bytes = ByteBuffer(bytes: UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        guard try self.preamble.consume(&bytes) else { return }
        self.decoder.feed(bytes)
        while let frame = try self.decoder.next() {
            if case .flooding = self.stage { return }
            try self.received(frame)
        }
    }

    private func received(_ frame: Frame) throws {
        switch (self.stage, frame) {
        case (.greeting(let hello), .hello(let theirs)):
            let transcript = Transcript(
                initiatorHello: try FrameEncoder.payload(of: hello), responderHello: try FrameEncoder.payload(of: theirs),
                transport: self.transport)
            let signature = try self.key.signature(for: transcript.proofInput(of: .initiator))
            try self.say(.proof(Proof(signature: Array(signature.derRepresentation))))
            try self.proven()
        case (.joining, .inviteAnswer(let answer)):
            guard case .accepted(let session) = answer.decision else {
                self.close()
                self.waitsUntil = .now + .milliseconds(200)
                return
            }
            self.session = session
            if self.stand == .former { try self.say(.sessionEnd(session)) }
            self.stage = .flooding
        case (.joining, .sessionResume(let session)) where session == self.session: self.stage = .flooding
        case (.joining, .sessionEnd(let session)) where session == self.session:
            // The victim has ended the session: join another.
            self.session = nil
            try self.proven()
        case (_, .ping(let value)): try self.say(.pong(value))
        default: break
        }
    }

    private func proven() throws {
        guard self.stand.joins, !self.template.isForData else {
            self.stage = .flooding
            return
        }
        if let session = self.session {
            if self.stand == .former {
                self.stage = .flooding
            } else {
                try self.say(.sessionResume(session))
                self.stage = .joining
            }
        } else {
            try self.say(.invite(Invite(id: .random(), timeoutMilliseconds: 60_000, context: [])))
            self.stage = .joining
        }
    }

    // MARK: Writing

    /// Writes as much as the connection accepts, up to `limit` bytes, so that every peer has its turn.
    func writable(limit: Int = 1 << 20) {
        var left = limit
        while left > 0 {
            if self.position == self.buffer.count {
                guard case .flooding = self.stage else { return }
                self.refill()
            }
            let count = self.buffer[self.position...].withUnsafeBytes {
                send(self.descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
            guard count > 0 else {
                if errno != EAGAIN { self.close() }
                return
            }
            if case .flooding = self.stage { self.sent += count }
            self.position += count
            left -= count
        }
    }

    private func refill() {
        if !self.isTemplate { self.buffer = self.template.bytes }
        self.isTemplate = true
        self.position = 0
        self.template.renew(&self.buffer, base: self.base, session: self.session)
        self.base &+= self.template.runs
    }

    // MARK: End

    /// Ends the session that the daemon has with it, as a user would, and then the connection.
    func leave() throws {
        self.close()
        guard self.connections > 0, self.stand.joins else { return }
        let peer = try WirePeer(port: self.port, key: self.key, name: "flood \(self.number)", from: self.address)
        peer.patience = 60_000
        try peer.prove()
        // The daemon names its session at once: a flood of invitations has created others than the first.
        let unknown = SessionID.random()
        try peer.send(.sessionResume(unknown))
        var session: SessionID?
        try peer.next { frame -> Void? in
            if case .sessionResume(let named) = frame { session = named }
            return frame == .sessionEnd(unknown) ? () : nil
        }
        guard let session else { return }
        try peer.send(.sessionEnd(session))
        try peer.roundTrip()
    }
}
