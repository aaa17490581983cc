import Crypto
import EarshotWire
import NIOCore
import Testing

/// One whole connection, byte by byte. The machines of both sides make it, and neither may report a violation.
struct Trace: Codable, Equatable {
    struct Side: Codable, Equatable {
        let name: String
        /// The seed of an Ed25519 key (RFC 8032), 32 bytes.
        let privateKey: String
        /// SubjectPublicKeyInfo, DER.
        let publicKey: String
        let peerID: String
    }

    struct Step: Codable, Equatable {
        /// `control`, or a data connection's number.
        let connection: String
        let from: String
        /// The frame's name; `preamble`, or `close` for the connection's end.
        let frame: String
        let note: String
        let hex: String
    }

    var sides: [Side] = []
    var steps: [Step] = []

    /// The trace in the form of the specification: each step's words, then its bytes, the header apart from the payload.
    var text: String {
        self.steps.map { step in
            var lines = ["\(step.connection), \(step.from): \(step.frame)\(step.note.isEmpty ? "" : " - \(step.note)")"]
            var rest = Substring(step.hex)
            if rest.count > 2 * WireLimits.frameHeaderLength, step.frame != "preamble" {
                lines.append("    \(rest.prefix(2 * WireLimits.frameHeaderLength))")
                rest = rest.dropFirst(2 * WireLimits.frameHeaderLength)
            }
            while !rest.isEmpty {
                lines.append("    \(rest.prefix(96))")
                rest = rest.dropFirst(96)
            }
            return lines.joined(separator: "\n")
        }.joined(separator: "\n") + "\n"
    }
}

/// Makes the trace.
struct TraceMaker {
    private static let stream = Fixtures.stream
    private static let file = Array("hello from a file\n".utf8)

    private var trace = Trace()
    private let alice: VectorPeer
    private let bob: VectorPeer
    private var machines: [String: ConnectionStateMachine]

    init() throws {
        self.alice = try .alice()
        self.bob = try .bob()
        self.machines = [
            "alice": ConnectionStateMachine(localID: self.alice.id, peerID: self.bob.id),
            "bob": ConnectionStateMachine(localID: self.bob.id, peerID: self.alice.id),
        ]
        self.trace.sides = [("alice", self.alice), ("bob", self.bob)].map { name, peer in
            Trace.Side(
                name: name, privateKey: peer.key.rawRepresentation.hexadecimal, publicKey: peer.hello.publicKey.hexadecimal,
                peerID: peer.id.description)
        }
    }

    static func make() throws -> Trace {
        var maker = try Self()
        try maker.handshake("control", initiator: maker.alice, responder: maker.bob, "alice", "bob")
        try maker.invitation()
        try maker.message()
        try maker.resource()
        try maker.moving()
        try maker.goodbye()
        return maker.trace
    }

    // MARK: Frames of both sides

    private mutating func put(_ connection: String, _ from: String, _ frame: String, _ note: String, _ bytes: some Sequence<UInt8>) {
        self.trace.steps.append(Trace.Step(connection: connection, from: from, frame: frame, note: note, hex: bytes.hexadecimal))
    }

    private mutating func put(_ connection: String, _ from: String, _ frame: Frame, _ note: String) throws {
        self.put(connection, from, Vectors.name(of: frame.type), note, try frame.encoded().readableBytesView)
    }

    /// A frame on the control connection, in order for both machines.
    private mutating func say(_ from: String, _ frame: Frame, _ note: String = "") throws {
        let to = from == "alice" ? "bob" : "alice"
        let sent = self.machines[from]?.sent(frame)
        let received = self.machines[to]?.received(frame)
        try #require(sent == .send && received == .deliver, "\(frame.type)")
        try self.put("control", from, frame, note)
    }

    private mutating func handshake(
        _ connection: String, initiator: VectorPeer, responder: VectorPeer, _ one: String, _ other: String
    ) throws {
        var first = HandshakeStateMachine(role: .initiator, hello: initiator.hello, carrier: .plaintext, expectedPeer: responder.id)
        var second = HandshakeStateMachine(role: .responder, hello: responder.hello, carrier: .plaintext)
        let begun = (first.start(), second.start())
        try #require(begun == (.send(initiator.hello), .wait))
        let isData = initiator.hello.extensions == [.dataConnection]
        self.put(connection, one, "preamble", "the first byte says that it is plaintext", WireLimits.preamble)
        try self.put(
            connection, one, .hello(initiator.hello), isData ? "with the extension data connection" : "with the extension stream reroute")
        guard case .sign(let input) = second.received(.hello(initiator.hello)),
            case .send(let hello, let proof) = second.signed(Array(try responder.key.signature(for: input)))
        else { throw WireError.misuse }
        self.put(connection, other, "preamble", "", WireLimits.preamble)
        try self.put(connection, other, .hello(hello), "with the extension stream reroute")
        try self.put(connection, other, .proof(proof), "")
        let heard = first.received(.hello(hello))
        try #require(heard == .wait)
        guard case .verify(let check) = first.received(.proof(proof)), ProofVerifier.isValid(check),
            case .sign(let own) = first.verified(true),
            case .sendAndFinish(let answer, _) = first.signed(Array(try initiator.key.signature(for: own)))
        else { throw WireError.misuse }
        try self.put(connection, one, .proof(answer), "other frames may follow immediately")
        guard case .verify(let last) = second.received(.proof(answer)), ProofVerifier.isValid(last), case .proven = second.verified(true)
        else {
            throw WireError.misuse
        }
    }

    // MARK: The exchanges

    private mutating func invitation() throws {
        let invite = Invite(id: Fixtures.invitation, timeoutMilliseconds: 30_000, context: Array("tea?".utf8))
        try self.say("alice", .invite(invite), "for 30 s, context tea?")
        try self.say("bob", .inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(Fixtures.session))), "accepted, with the session")
    }

    private mutating func message() throws {
        try self.say("alice", .message(Fixtures.message(sequence: 1)), "reliable, the first: hello, bob")
        for (from, outcome, note) in [
            ("bob", .delivered, "delivered: it is on disk"), ("bob", .read, "read"), ("alice", .noted, "noted"),
        ] as [(String, MessageReceipt.Outcome, String)] {
            try self.say(from, .messageReceipts([MessageReceipt(id: Fixtures.message, outcome: outcome)]), note)
        }
    }

    /// A second connection, dialled by the side that has dialled the first, with the token that the other one gave.
    private mutating func attach(_ connection: String, for transfer: TransferID, _ number: UInt8) throws {
        let token = try #require(DataToken(bytes: [UInt8](repeating: number, count: WireLimits.dataToken)))
        try self.say("bob", .dataTicket(DataTicket(transfer: transfer, token: token)), "the side that was dialled gives the ticket")
        var (one, other) = (self.alice, self.bob)
        one.hello.extensions = [.dataConnection]
        one.hello.nonce = [UInt8](repeating: 0xA1 + number, count: WireLimits.nonceLength)
        other.hello.nonce = [UInt8](repeating: 0xB2 + number, count: WireLimits.nonceLength)
        try self.handshake(connection, initiator: one, responder: other, "alice", "bob")
        try self.put(connection, "alice", .dataAttach(token), "the ticket's token")
    }

    private mutating func data(_ connection: String, _ bytes: [UInt8], _ note: String) {
        var buffer = ByteBuffer()
        DataFrame.data(count: bytes.count).encode(into: &buffer)
        buffer.writeBytes(bytes)
        self.put(connection, "alice", "data", note, buffer.readableBytesView)
    }

    private mutating func resource() throws {
        let (id, size) = (Fixtures.resource, UInt64(Self.file.count))
        try self.say(
            "alice", .resource(.offer(ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: size, name: "notes.txt"))),
            "a file of \(size) bytes")
        try self.say("bob", .resource(.accept(ResourceAccept(id: id, offset: 0, limit: 0))), "from 0, over a data connection")
        try self.attach("data 1", for: TransferID(id), 1)
        self.data("data 1", Self.file, "the file")
        var end = ByteBuffer()
        DataFrame.end.encode(into: &end)
        self.put("data 1", "alice", "data-end", "", end.readableBytesView)
        self.put("data 1", "bob", "close", "", [])
        try self.say("bob", .resource(.accept(ResourceAccept(id: id, offset: size, limit: size))), "all of it is here")
        try self.say(
            "alice", .resource(.end(ResourceEnd(id: id, algorithm: .sha256, digest: Array(SHA256.hash(data: Self.file))))),
            "with its SHA-256")
        try self.say("bob", .resource(.done(id)), "it is on disk")
    }

    private mutating func moving() throws {
        let id = Self.stream
        func piece(_ text: String) -> Frame { .stream(.data(StreamData(id: id, data: ByteBuffer(string: text)))) }
        let (first, second, third) = ("it begins here, ", "and here, ", "and goes on over there")
        let moved = UInt64(first.utf8.count + second.utf8.count)
        try self.say("alice", .stream(.open(StreamOpen(session: Fixtures.session, id: id, name: try StreamName("backup")))), "named backup")
        try self.say("bob", .stream(.accept(StreamAccept(id: id, limit: 64))), "up to 64 bytes")
        try self.say("alice", piece(first), first)
        try self.say("alice", .stream(.reroute(StreamReroute(id: id, offset: UInt64(first.utf8.count)))), "a data connection is wanted")
        try self.say("alice", piece(second), "\(second)meanwhile")
        try self.attach("data 2", for: TransferID(id), 2)
        try self.say("alice", .stream(.rerouted(StreamReroute(id: id, offset: moved))), "from byte \(moved) on over the data connection")
        self.data("data 2", Array(third.utf8), third)
        let size = moved + UInt64(third.utf8.count)
        try self.say("alice", .stream(.end(StreamEnd(id: id, size: size))), "of \(size) bytes; it may overtake them")
        try self.say("bob", .stream(.done(id)), "the reader has taken them all")
        self.put("data 2", "bob", "close", "", [])
    }

    private mutating func goodbye() throws {
        let asked = self.machines["bob"]?.sent(.ping(1))
        let answered = self.machines["alice"]?.received(.ping(1))
        let heard = self.machines["bob"]?.received(.pong(1))
        try #require(asked == .send && answered == .reply(.pong(1)) && heard == .deliver)
        try self.put("control", "bob", .ping(1), "after 10 seconds of silence")
        try self.put("control", "alice", .pong(1), "")
        try self.say("alice", .sessionEnd(Fixtures.session), "a user leaves the session")
        try self.say("alice", .goodbye, "")
        self.put("control", "alice", "close", "", [])
    }
}
