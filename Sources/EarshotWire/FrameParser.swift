package import NIOCore

/// Decodes whole payloads into frames.
package enum FrameParser {
    /// Returns the frame whose payload is `payload`. The encoding is canonical: encoding the result gives the same bytes again.
    package static func parse(_ payload: ByteBuffer, of type: FrameType) throws(WireError) -> Frame {
        var reader = PayloadReader(payload, of: type)
        let frame = try self.fields(of: type, from: &reader)
        try reader.finish()
        return frame
    }

    private static func fields(of type: FrameType, from reader: inout PayloadReader) throws(WireError) -> Frame {
        switch type {
        case .hello: .hello(try self.hello(from: &reader))
        case .proof: .proof(Proof(signature: try reader.bytes("signature", in: 1...WireLimits.signature)))
        case .refusal: .refusal(try self.refusal(from: &reader))
        case .ping: .ping(try reader.integer("value"))
        case .pong: .pong(try reader.integer("value"))
        case .goodbye: .goodbye
        case .invite:
            .invite(
                Invite(
                    id: try reader.identifier("invitation"),
                    timeoutMilliseconds: try reader.integer("timeout", in: 1...WireLimits.invitationTimeoutMilliseconds),
                    context: try reader.bytes("context", in: 0...WireLimits.invitationContext)))
        case .inviteAnswer: .inviteAnswer(try self.inviteAnswer(from: &reader))
        case .inviteWithdraw:
            .inviteWithdraw(InviteWithdraw(id: try reader.identifier("invitation"), reason: try reader.choice("reason")))
        case .sessionResume: .sessionResume(try reader.identifier("session"))
        case .sessionEnd: .sessionEnd(try reader.identifier("session"))
        case .groupInvite: try GroupFrame.invite(from: &reader)
        case .groupAnswer: try GroupFrame.answer(from: &reader)
        case .groupWithdraw: try GroupFrame.withdraw(from: &reader)
        case .groupRecord: try GroupFrame.record(from: &reader)
        case .groupNames: try GroupFrame.names(from: &reader)
        case .groupIndex: try GroupFrame.index(from: &reader)
        case .message: .message(try self.message(from: &reader))
        case .messageReceipts: .messageReceipts(try self.receipts(from: &reader))
        case .resourceOffer: .resource(.offer(try self.offer(from: &reader)))
        case .resourceAccept: .resource(.accept(try self.accept(from: &reader)))
        case .resourceRefuse:
            .resource(.refuse(ResourceRefuse(id: try reader.identifier("resource"), refusal: try self.refusal(from: &reader))))
        case .resourceChunk: .resource(.chunk(try self.chunk(from: &reader)))
        case .resourceEnd:
            .resource(
                .end(
                    ResourceEnd(
                        id: try reader.identifier("resource"), algorithm: try reader.choice("algorithm"),
                        digest: try reader.bytes(
                            "digest", count: try reader.length("digest", as: UInt8.self, in: 1...WireLimits.digest)))))
        case .resourceDone: .resource(.done(try reader.identifier("resource")))
        case .resourceCancel:
            .resource(.cancel(ResourceRefuse(id: try reader.identifier("resource"), refusal: try self.refusal(from: &reader))))
        case .resourceHave:
            .resource(
                .have(
                    ResourceHave(
                        id: try reader.identifier("resource"), offset: try reader.integer("offset", in: 1...WireLimits.resourceSize),
                        digest: try reader.bytes("digest", count: WireLimits.prefixDigest))))
        case .resourceFrom:
            .resource(
                .from(
                    ResourceFrom(
                        id: try reader.identifier("resource"), offset: try reader.integer("offset", in: 0...WireLimits.resourceSize))))
        case .dataTicket:
            .dataTicket(DataTicket(transfer: try reader.identifier("transfer"), token: try self.token(from: &reader)))
        case .dataUnavailable: .dataUnavailable(try reader.identifier("transfer"))
        case .dataAttach: .dataAttach(try self.token(from: &reader))
        case .streamOpen: .stream(.open(try self.streamOpen(from: &reader)))
        case .streamAccept: .stream(.accept(StreamAccept(id: try reader.identifier("stream"), limit: try reader.integer("limit"))))
        case .streamRefuse: .stream(.refuse(StreamRefuse(id: try reader.identifier("stream"), refusal: try self.refusal(from: &reader))))
        case .streamData: .stream(.data(try self.streamData(from: &reader)))
        case .streamEnd: .stream(.end(StreamEnd(id: try reader.identifier("stream"), size: try reader.integer("size"))))
        case .streamDone: .stream(.done(try reader.identifier("stream")))
        case .streamAbort: .stream(.abort(StreamRefuse(id: try reader.identifier("stream"), refusal: try self.refusal(from: &reader))))
        case .streamReroute: .stream(.reroute(try self.streamReroute(from: &reader)))
        case .streamRerouted: .stream(.rerouted(try self.streamReroute(from: &reader)))
        case .verifyBegin, .verifyAnswer, .verifyReveal, .verifyEnd: .verification(try self.verification(type, from: &reader))
        }
    }

    private static func hello(from reader: inout PayloadReader) throws(WireError) -> Hello {
        let lowest = try reader.integer("versions", in: UInt8(1)...UInt8.max)
        let highest = try reader.integer("versions", in: lowest...UInt8.max)
        let publicKey = try reader.bytes("public_key", in: 1...WireLimits.publicKey)
        let scheme = SignatureScheme(rawValue: try reader.integer("signature_scheme"))
        let nonce = try reader.bytes("nonce", count: WireLimits.nonceLength)
        let serviceType: ServiceType
        let displayName: DisplayName
        do {
            let length = try reader.length("service_type", as: UInt8.self, in: 1...ServiceType.lengthLimit)
            serviceType = try ServiceType(try reader.text("service_type", count: length))
        } catch { throw reader.malformed("service_type") }
        do {
            let length = try reader.length("display_name", as: UInt8.self, in: 1...DisplayName.byteLimit)
            displayName = try DisplayName(try reader.text("display_name", count: length))
        } catch { throw reader.malformed("display_name") }
        guard let encryption = EncryptionPreference(wireValue: try reader.integer("encryption")) else {
            throw reader.malformed("encryption")
        }
        let count = try reader.length("extensions", as: UInt16.self, in: 0...WireLimits.helloExtensions)
        var extensions: [HelloExtension] = []
        for _ in 0..<count {
            let type: UInt16 = try reader.integer("extensions")
            extensions.append(HelloExtension(type: type, data: try reader.bytes("extensions", in: 0...WireLimits.helloPayload)))
        }
        return Hello(
            versions: lowest...highest, publicKey: publicKey, signatureScheme: scheme, nonce: nonce, serviceType: serviceType,
            displayName: displayName, encryption: encryption, extensions: extensions)
    }

    private static func verification(_ type: FrameType, from reader: inout PayloadReader) throws(WireError) -> VerificationFrame {
        let id: VerificationID = try reader.identifier("attempt")
        switch type {
        case .verifyBegin:
            return VerificationFrame(id: id, .begin(commitment: try reader.bytes("commitment", count: WireLimits.verificationPart)))
        case .verifyAnswer: return VerificationFrame(id: id, .answer(nonce: try reader.bytes("nonce", count: WireLimits.verificationPart)))
        case .verifyReveal: return VerificationFrame(id: id, .reveal(nonce: try reader.bytes("nonce", count: WireLimits.verificationPart)))
        default: return VerificationFrame(id: id, .end(try reader.choice("reason")))
        }
    }

    private static func refusal(from reader: inout PayloadReader) throws(WireError) -> Refusal {
        let code = WireErrorCode(rawValue: try reader.integer("code"))
        let length = try reader.length("explanation", as: UInt16.self, in: 0...WireLimits.explanation)
        return Refusal(code: code, explanation: try reader.text("explanation", count: length))
    }

    private static func inviteAnswer(from reader: inout PayloadReader) throws(WireError) -> InviteAnswer {
        let id: InvitationID = try reader.identifier("invitation")
        switch try reader.integer("decision", as: UInt8.self) {
        case 1: return InviteAnswer(id: id, decision: .accepted(try reader.identifier("session")))
        case 2: return InviteAnswer(id: id, decision: .declined)
        case 3: return InviteAnswer(id: id, decision: .busy)
        default: throw reader.malformed("decision")
        }
    }

    private static func message(from reader: inout PayloadReader) throws(WireError) -> MessageFrame {
        let session: SessionID = try reader.identifier("session")
        let id: MessageID = try reader.identifier("message")
        let flagged: UInt8 = try reader.integer("mode")
        guard let mode = MessageFrame.Mode(rawValue: flagged & ~MessageFrame.replyFlag) else { throw reader.malformed("mode") }
        let sequence: UInt64 = try reader.integer("sequence")
        let sentAt: Int64 = try reader.integer("sent_at")
        let inReplyTo: MessageID? = flagged & MessageFrame.replyFlag == 0 ? nil : try reader.identifier("in_reply_to")
        let typeLength = try reader.length("content_type", as: UInt8.self, in: 1...WireLimits.contentType)
        let contentType = try reader.text("content_type", count: typeLength)
        guard MessageFrame.isContentType(contentType) else { throw reader.malformed("content_type") }
        let bodyLength = try reader.length("body", as: UInt32.self, in: 0...WireLimits.messageBody)
        return MessageFrame(
            session: session, id: id, mode: mode, sequence: sequence, sentAtMilliseconds: sentAt, inReplyTo: inReplyTo,
            contentType: contentType, body: try reader.slice("body", count: bodyLength))
    }

    private static func receipts(from reader: inout PayloadReader) throws(WireError) -> [MessageReceipt] {
        let count = try reader.length("receipts", as: UInt16.self, in: 1...WireLimits.receiptsPerFrame)
        var receipts: [MessageReceipt] = []
        for _ in 0..<count {
            receipts.append(MessageReceipt(id: try reader.identifier("message"), outcome: try reader.choice("outcome")))
        }
        return receipts
    }

    private static func offer(from reader: inout PayloadReader) throws(WireError) -> ResourceOffer {
        let session: SessionID = try reader.identifier("session")
        let id: ResourceID = try reader.identifier("resource")
        let kind: ResourceOffer.Kind = try reader.choice("kind")
        let size = try reader.integer("size", in: 0...WireLimits.resourceSize)
        let length = try reader.length("name", as: UInt16.self, in: 0...WireLimits.resourceName)
        let name = try reader.text("name", count: length)
        let hasAttributes = kind == .file && reader.rest == WireLimits.fileAttributes
        let attributes = hasAttributes ? try FileAttributes(from: &reader) : nil
        return ResourceOffer(session: session, id: id, kind: kind, size: size, name: name, attributes: attributes)
    }

    private static func streamOpen(from reader: inout PayloadReader) throws(WireError) -> StreamOpen {
        let session: SessionID = try reader.identifier("session")
        let id: StreamID = try reader.identifier("stream")
        let length = try reader.length("name", as: UInt8.self, in: 1...StreamName.byteLimit)
        let text = try reader.text("name", count: length)
        guard let name = try? StreamName(text) else { throw reader.malformed("name") }
        return StreamOpen(session: session, id: id, name: name)
    }

    private static func streamReroute(from reader: inout PayloadReader) throws(WireError) -> StreamReroute {
        StreamReroute(id: try reader.identifier("stream"), offset: try reader.integer("offset"))
    }

    private static func streamData(from reader: inout PayloadReader) throws(WireError) -> StreamData {
        let head = try StreamDataHead(from: &reader)
        return StreamData(id: head.id, data: try reader.slice("data", count: head.count))
    }

    private static func accept(from reader: inout PayloadReader) throws(WireError) -> ResourceAccept {
        let id: ResourceID = try reader.identifier("resource")
        let offset = try reader.integer("offset", in: 0...WireLimits.resourceSize)
        return ResourceAccept(id: id, offset: offset, limit: try reader.integer("limit", in: offset...WireLimits.resourceSize))
    }

    private static func token(from reader: inout PayloadReader) throws(WireError) -> DataToken {
        guard let token = DataToken(bytes: try reader.bytes("token", count: WireLimits.dataToken)) else { throw reader.malformed("token") }
        return token
    }

    private static func chunk(from reader: inout PayloadReader) throws(WireError) -> ResourceChunk {
        let head = try ChunkHead(from: &reader)
        return ResourceChunk(id: head.id, offset: head.offset, data: try reader.slice("data", count: head.count))
    }
}

/// The fields before the bytes of a chunk.
struct ChunkHead {
    /// The length of the encoded fields, in bytes.
    static let encodedLength = 16 + 8 + 4

    let id: ResourceID
    let offset: UInt64
    let count: Int

    init(from reader: inout PayloadReader) throws(WireError) {
        self.id = try reader.identifier("resource")
        self.offset = try reader.integer("offset", in: 0...WireLimits.resourceSize)
        self.count = try reader.length("data", as: UInt32.self, in: 1...WireLimits.chunkData)
        // Both are below 2^63, so the sum is below 2^64.
        guard self.offset + UInt64(self.count) <= WireLimits.resourceSize else { throw reader.malformed("offset") }
    }
}

/// The fields before the bytes of a stream.
struct StreamDataHead {
    /// The length of the encoded fields, in bytes.
    static let encodedLength = 16 + 4

    let id: StreamID
    let count: Int

    init(from reader: inout PayloadReader) throws(WireError) {
        self.id = try reader.identifier("stream")
        self.count = try reader.length("data", as: UInt32.self, in: 1...WireLimits.streamData)
    }
}

extension MessageFrame {
    /// Whether `text` may be a content type: 1 to 255 printable ASCII characters (0x20 to 0x7E), without a space at either end.
    package static func isContentType(_ text: String) -> Bool {
        let space = UInt8(ascii: " ")
        let bytes = text.utf8
        return (1...WireLimits.contentType).contains(bytes.count) && bytes.first != space && bytes.last != space
            && bytes.allSatisfy { (space...UInt8(ascii: "~")).contains($0) }
    }
}

extension EncryptionPreference {
    /// The preference's number in a hello.
    var wireValue: UInt8 {
        switch self {
        case .none: 0
        case .optional: 1
        case .required: 2
        }
    }

    init?(wireValue: UInt8) {
        switch wireValue {
        case 0: self = .none
        case 1: self = .optional
        case 2: self = .required
        default: return nil
        }
    }
}
