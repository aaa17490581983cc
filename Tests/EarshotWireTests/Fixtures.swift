import EarshotSafety
import EarshotWire
import NIOCore
import Testing

/// The frames, keys and nonces that the published vectors are made of.
enum Fixtures {
    struct NamedFrame: Sendable {
        let name: String
        /// The values in words, for readers of the vectors without this code.
        let note: String
        let frame: Frame
    }

    static let session = SessionID(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF)
    static let invitation = InvitationID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)
    static let message = MessageID(high: 0x1112_1314_1516_1718, low: 0x191A_1B1C_1D1E_1F20)
    static let otherMessage = MessageID(high: 0x4142_4344_4546_4748, low: 0x494A_4B4C_4D4E_4F50)
    static let resource = ResourceID(high: 0x2122_2324_2526_2728, low: 0x292A_2B2C_2D2E_2F30)

    static let stream = StreamID(high: 0x3132_3334_3536_3738, low: 0x393A_3B3C_3D3E_3F40)
    static let verification = VerificationID(high: 0x3132_3334_3536_3738, low: 0x393A_3B3C_3D3E_3F40)
    static var token: DataToken {
        get throws { try #require(DataToken(bytes: [UInt8](0..<32))) }
    }

    static func hello(
        versions: ClosedRange<UInt8> = 1...1, publicKey: [UInt8] = [0x30, 0x01, 0x02], scheme: SignatureScheme = .ecdsaSecp256r1SHA256,
        nonce: UInt8 = 0xA0, name: String = "alice", service: String = "earshot", encryption: EncryptionPreference = .required,
        extensions: [HelloExtension] = []
    ) throws -> Hello {
        Hello(
            versions: versions, publicKey: publicKey, signatureScheme: scheme, nonce: [UInt8](repeating: nonce, count: 32),
            serviceType: try ServiceType(service), displayName: try DisplayName(name), encryption: encryption, extensions: extensions)
    }

    static func message(
        sequence: UInt64 = 7, mode: MessageFrame.Mode = .reliable, contentType: String = "text/plain; charset=utf-8",
        body: ByteBuffer = ByteBuffer(string: "hello, bob"), inReplyTo: MessageID? = nil
    ) -> MessageFrame {
        MessageFrame(
            session: self.session, id: self.message, mode: mode, sequence: sequence, sentAtMilliseconds: 1_700_000_000_123,
            inReplyTo: inReplyTo, contentType: contentType, body: body)
    }

    static func frames() throws -> [NamedFrame] {
        let extensions = [HelloExtension(type: 0xFF01, data: [1, 2, 3]), HelloExtension(type: 0xFF02, data: [])]
        let invite = Invite(id: self.invitation, timeoutMilliseconds: 30_000, context: Array("tea?".utf8))
        let refuse = ResourceRefuse(id: self.resource, refusal: Refusal(code: .nameRejected, explanation: "the name climbs"))
        let cancel = ResourceRefuse(id: self.resource, refusal: Refusal(code: .cancelled))
        let digest = [UInt8](0..<16)
        return [
            NamedFrame(
                name: "hello", note: "versions 1-1, key 300102, nonce of a0, earshot, alice, required", frame: .hello(try self.hello())),
            NamedFrame(
                name: "hello with extensions", note: "versions 1-3, name in UTF-8, optional, extensions ff01:010203 and ff02:empty",
                frame: .hello(try self.hello(versions: 1...3, name: "Zoë 🎧", encryption: .optional, extensions: extensions))),
            NamedFrame(name: "proof", note: "signature deadbeef", frame: .proof(Proof(signature: [0xDE, 0xAD, 0xBE, 0xEF]))),
            NamedFrame(
                name: "refusal", note: "identity-mismatch with words",
                frame: .refusal(Refusal(code: .identityMismatch, explanation: "not the peer dialled"))),
            NamedFrame(
                name: "refusal of unknown code", note: "code 65535, no words",
                frame: .refusal(Refusal(code: WireErrorCode(rawValue: 65535)))),
            NamedFrame(name: "ping", note: "value 1", frame: .ping(1)),
            NamedFrame(name: "pong", note: "value 2^64-1", frame: .pong(.max)),
            NamedFrame(name: "goodbye", note: "no payload", frame: .goodbye),
            NamedFrame(name: "invite", note: "30 s, context 'tea?'", frame: .invite(invite)),
            NamedFrame(
                name: "invite answer accepted", note: "with the session",
                frame: .inviteAnswer(InviteAnswer(id: self.invitation, decision: .accepted(self.session)))),
            NamedFrame(
                name: "invite answer declined", note: "no session",
                frame: .inviteAnswer(InviteAnswer(id: self.invitation, decision: .declined))),
            NamedFrame(
                name: "invite answer busy", note: "no session", frame: .inviteAnswer(InviteAnswer(id: self.invitation, decision: .busy))),
            NamedFrame(
                name: "invite withdraw", note: "withdrawn", frame: .inviteWithdraw(InviteWithdraw(id: self.invitation, reason: .withdrawn))),
            NamedFrame(
                name: "invite timed out", note: "timed out", frame: .inviteWithdraw(InviteWithdraw(id: self.invitation, reason: .timedOut))),
            NamedFrame(name: "session resume", note: "the session", frame: .sessionResume(self.session)),
            NamedFrame(name: "session end", note: "the session", frame: .sessionEnd(self.session)),
            NamedFrame(name: "message", note: "reliable, sequence 7, sent at 1700000000123", frame: .message(self.message())),
            NamedFrame(
                name: "message unreliable and empty", note: "unreliable, sequence 0, no body",
                frame: .message(self.message(sequence: 0, mode: .unreliable, contentType: "x", body: ByteBuffer()))),
            NamedFrame(
                name: "message resumed", note: "reliable after a refusal, sequence 3",
                frame: .message(self.message(sequence: 3, mode: .resumed, contentType: "x", body: ByteBuffer(string: "x")))),
            NamedFrame(
                name: "message receipts", note: "one of each outcome: delivered, read, inbox full, refused, noted",
                frame: .messageReceipts(
                    [.delivered, .read, .inboxFull, .refused, .noted].map { MessageReceipt(id: self.message, outcome: $0) })),
            NamedFrame(
                name: "resource offer", note: "a file of 1234567 bytes named 'notes.txt'",
                frame: .resource(
                    .offer(
                        ResourceOffer(session: self.session, id: self.resource, kind: .file, size: 1_234_567, name: "notes.txt")))),
            NamedFrame(
                name: "resource offer hostile", note: "a directory of 2^63-1 bytes named '../../.ssh': refused later, by its name",
                frame: .resource(
                    .offer(
                        ResourceOffer(session: self.session, id: self.resource, kind: .directory, size: .max / 2, name: "../../.ssh")))),
            NamedFrame(
                name: "resource offer with attributes",
                note: "a file of 10 bytes named 'run.sh': executable, with holes, changed at -1.5 s",
                frame: .resource(
                    .offer(
                        ResourceOffer(
                            session: self.session, id: self.resource, kind: .file, size: 10, name: "run.sh",
                            attributes: FileAttributes(isExecutable: true, hasHoles: true, seconds: -2, nanoseconds: 500_000_000))))),
            NamedFrame(
                name: "resource accept", note: "from 65536 to 4194304",
                frame: .resource(.accept(ResourceAccept(id: self.resource, offset: 65_536, limit: 4_194_304)))),
            NamedFrame(name: "resource refuse", note: "name-rejected with words", frame: .resource(.refuse(refuse))),
            NamedFrame(
                name: "resource chunk", note: "offset 65536, four bytes 00ff00ff",
                frame: .resource(.chunk(ResourceChunk(id: self.resource, offset: 65_536, data: ByteBuffer(bytes: [0, 0xFF, 0, 0xFF]))))),
            NamedFrame(
                name: "resource end", note: "xxh3, digest 00..0f",
                frame: .resource(.end(ResourceEnd(id: self.resource, algorithm: .xxh3, digest: digest)))),
            NamedFrame(
                name: "resource end sha256", note: "sha256, digest 00..0f twice",
                frame: .resource(.end(ResourceEnd(id: self.resource, algorithm: .sha256, digest: digest + digest)))),
            NamedFrame(name: "resource done", note: "the resource", frame: .resource(.done(self.resource))),
            NamedFrame(name: "resource cancel", note: "cancelled, no words", frame: .resource(.cancel(cancel))),
            NamedFrame(
                name: "resource have", note: "65536 bytes, digest 00..0f",
                frame: .resource(.have(ResourceHave(id: self.resource, offset: 65_536, digest: digest)))),
            NamedFrame(
                name: "resource from", note: "65536", frame: .resource(.from(ResourceFrom(id: self.resource, offset: 65_536)))),
            NamedFrame(name: "resource from the start", note: "0", frame: .resource(.from(ResourceFrom(id: self.resource, offset: 0)))),
            NamedFrame(
                name: "data ticket", note: "for the resource, token 00..1f",
                frame: .dataTicket(DataTicket(transfer: TransferID(self.resource), token: try self.token))),
            NamedFrame(name: "data unavailable", note: "the resource", frame: .dataUnavailable(TransferID(self.resource))),
            NamedFrame(name: "data attach", note: "token 00..1f", frame: .dataAttach(try self.token)),
        ] + (try self.streamFrames()) + (try self.extendedHellos()) + (try GroupFixtures().frames()) + (try self.replies())
    }

    /// Later than the others, so that they stand where they always stood.
    private static func extendedHellos() throws -> [NamedFrame] {
        let odd = [HelloExtension(type: 2, data: [1, 2]), HelloExtension(type: 2, data: []), HelloExtension(type: 3, data: [3])]
        return [
            NamedFrame(
                name: "hello that knows stream reroute", note: "versions 1-1, extension 0002:empty",
                frame: .hello(try self.hello(extensions: [.streamReroute]))),
            NamedFrame(
                name: "hello of a data connection", note: "versions 1-1, extension 0001:empty",
                frame: .hello(try self.hello(extensions: [.dataConnection]))),
            NamedFrame(
                name: "hello with an extension twice", note: "extensions 0002:0102, 0002:empty and 0003:03, whose data is ignored",
                frame: .hello(try self.hello(extensions: odd))),
            NamedFrame(
                name: "hello that knows groups", note: "versions 1-1, extensions 0002:empty and 0003:empty",
                frame: .hello(try self.hello(extensions: [.streamReroute, .groups]))),
        ]
    }

    private static func replies() throws -> [NamedFrame] {
        [
            NamedFrame(
                name: "hello that knows replies", note: "versions 1-1, extension 0005:empty",
                frame: .hello(try self.hello(extensions: [.replies]))),
            NamedFrame(
                name: "message that replies", note: "reliable, sequence 8, in reply to 41..50",
                frame: .message(self.message(sequence: 8, body: ByteBuffer(string: "hello, alice"), inReplyTo: self.otherMessage))),
            NamedFrame(
                name: "message unreliable that replies", note: "unreliable, sequence 0, in reply to 41..50, no body",
                frame: .message(
                    self.message(sequence: 0, mode: .unreliable, contentType: "x", body: ByteBuffer(), inReplyTo: self.otherMessage))),
        ]
    }

    private static func streamFrames() throws -> [NamedFrame] {
        let busy = StreamRefuse(id: self.stream, refusal: Refusal(code: .busy, explanation: "too many"))
        return [
            NamedFrame(
                name: "stream open", note: "named 'backup'",
                frame: .stream(.open(StreamOpen(session: self.session, id: self.stream, name: try StreamName("backup"))))),
            NamedFrame(
                name: "stream accept", note: "up to 1048576", frame: .stream(.accept(StreamAccept(id: self.stream, limit: 1_048_576)))),
            NamedFrame(name: "stream refuse", note: "busy with words", frame: .stream(.refuse(busy))),
            NamedFrame(
                name: "stream data", note: "four bytes 00ff00ff",
                frame: .stream(.data(StreamData(id: self.stream, data: ByteBuffer(bytes: [0, 0xFF, 0, 0xFF]))))),
            NamedFrame(name: "stream end", note: "of 4 bytes", frame: .stream(.end(StreamEnd(id: self.stream, size: 4)))),
            NamedFrame(name: "stream done", note: "the stream", frame: .stream(.done(self.stream))),
            NamedFrame(
                name: "stream abort", note: "cancelled, no words",
                frame: .stream(.abort(StreamRefuse(id: self.stream, refusal: Refusal(code: .cancelled))))),
            NamedFrame(
                name: "stream reroute", note: "at 1048576", frame: .stream(.reroute(StreamReroute(id: self.stream, offset: 1_048_576)))),
            NamedFrame(
                name: "stream rerouted", note: "at 1048577", frame: .stream(.rerouted(StreamReroute(id: self.stream, offset: 1_048_577)))),
            NamedFrame(
                name: "verify begin", note: "commitment 00..1f",
                frame: .verification(VerificationFrame(id: self.verification, .begin(commitment: [UInt8](0..<32))))),
            NamedFrame(
                name: "verify answer", note: "nonce 20..3f",
                frame: .verification(VerificationFrame(id: self.verification, .answer(nonce: [UInt8](32..<64))))),
            NamedFrame(
                name: "verify reveal", note: "nonce 40..5f",
                frame: .verification(VerificationFrame(id: self.verification, .reveal(nonce: [UInt8](64..<96))))),
            NamedFrame(
                name: "verify end", note: "the digits differ",
                frame: .verification(VerificationFrame(id: self.verification, .end(.mismatch)))),
        ]
    }
}

extension Frame {
    /// The whole frame's bytes.
    func encoded() throws -> ByteBuffer {
        var buffer = ByteBuffer()
        try FrameEncoder.encode(self, into: &buffer)
        return buffer
    }
}

/// All frames that `pieces` decode to.
func decodeAll(_ pieces: [ByteBuffer], phase: FrameDecoder.Phase = .proven) throws -> [Frame] {
    var decoder = FrameDecoder()
    decoder.phase = phase
    var frames: [Frame] = []
    for piece in pieces {
        decoder.feed(piece)
        while let frame = try decoder.next() {
            frames.append(frame)
        }
    }
    return frames
}

func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
        guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) else { return nil }
        bytes.append(byte)
    }
    return bytes
}
