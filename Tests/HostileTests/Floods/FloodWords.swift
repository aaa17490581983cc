import Crypto
import EarshotWire
import NIOCore

/// The frames of a flood: for each type of frame, runs of frames that the codec can encode.
///
/// The switch has no default, so a new type of frame must be added to the floods before the tests compile. A run costs its receiver as much
/// as possible. It is in order if one peer alone can send it in order (an offer before its cancel), otherwise arbitrary. Values that differ
/// between runs carry ``mark`` and the run's number, which a ``FloodTemplate`` increments.
struct FloodWords {
    /// The four bytes before the number of a run.
    static let mark: UInt32 = 0xF10D_5EED
    /// A placeholder for the session that a peer has, or has had. For a stranger it is an ordinary session id.
    static let session = SessionID(high: 0x5E55_1014_0BAD_CAFE, low: 0x5E55_1014_DEAD_BEEF)
    /// A hello whose sender has not proven its key.
    private let hello: Hello
    /// The key of that sender, DER.
    var key: [UInt8] { self.hello.publicKey }

    init() throws {
        let key = P256.Signing.PrivateKey().publicKey
        self.hello = Hello(
            versions: WireLimits.versions, publicKey: Array(key.derRepresentation), signatureScheme: .ecdsaSecp256r1SHA256,
            nonce: [UInt8](repeating: 7, count: WireLimits.nonceLength), serviceType: try ServiceType("earshot"),
            displayName: try DisplayName("flood"), encryption: .none,
            extensions: [HelloExtension(type: 0xFF01, data: [UInt8](repeating: 1, count: 4096))])
    }

    /// Returns an identifier of the run; `part` distinguishes those of one run.
    static func id<Kind>(_ step: UInt32, _ part: UInt64 = 0) -> WireID<Kind> {
        WireID(high: UInt64(Self.mark) << 32 | UInt64(step), low: part)
    }

    private var refusal: Refusal { Refusal(code: .cancelled, explanation: String(repeating: "no ", count: 170)) }

    /// Returns the run of that number for a type of frame.
    func frames(of type: FrameType, _ step: UInt32) throws -> [Frame] {
        switch type {
        case .hello: return [.hello(self.hello)]
        case .proof: return [.proof(Proof(signature: [UInt8](repeating: 1, count: step % 2 == 0 ? 70 : WireLimits.signature)))]
        case .refusal: return [.refusal(self.refusal)]
        case .ping: return [.ping(UInt64(step))]
        case .pong: return [.pong(UInt64(step))]
        case .goodbye: return [.goodbye]
        case .invite: return [.invite(self.invite(step))]
        case .inviteAnswer:
            let decisions: [InviteAnswer.Decision] = [.accepted(Self.id(step, 1)), .declined, .busy]
            return [.inviteAnswer(InviteAnswer(id: Self.id(step), decision: decisions[Int(step) % decisions.count]))]
        case .inviteWithdraw:
            let reason: InviteWithdraw.Reason = step % 2 == 0 ? .withdrawn : .timedOut
            return [.invite(self.invite(step)), .inviteWithdraw(InviteWithdraw(id: Self.id(step), reason: reason))]
        case .sessionResume: return [.sessionResume(step % 2 == 0 ? Self.session : Self.id(step))]
        // Not the peer's own session: that may end before the flood.
        case .sessionEnd: return [.sessionEnd(Self.id(step))]
        case .groupInvite, .groupAnswer, .groupRecord, .groupWithdraw, .groupNames, .groupIndex:
            return try self.groupFrames(type, step).map { .group($0) }
        case .message: return [.message(self.message(step))]
        case .messageReceipts: return [.messageReceipts(self.receipts(step))]
        case .resourceOffer: return [.resource(.offer(self.offer(step)))]
        case .resourceAccept: return [.resource(.accept(ResourceAccept(id: Self.id(step), offset: 0, limit: WireLimits.resourceSize)))]
        case .resourceRefuse: return [.resource(.refuse(ResourceRefuse(id: Self.id(step), refusal: self.refusal)))]
        case .resourceChunk:
            let data = ByteBuffer(repeating: 1, count: step % 8 == 0 ? 65_536 : 1)
            return [.resource(.offer(self.offer(step))), .resource(.chunk(ResourceChunk(id: Self.id(step), offset: 0, data: data)))]
        case .resourceEnd:
            let end = ResourceEnd(id: Self.id(step), algorithm: .xxh3, digest: [UInt8](repeating: 3, count: 16))
            return [.resource(.offer(self.offer(step))), .resource(.end(end))]
        case .resourceDone: return [.resource(.done(Self.id(step)))]
        case .resourceCancel:
            return [.resource(.offer(self.offer(step))), .resource(.cancel(ResourceRefuse(id: Self.id(step), refusal: self.refusal)))]
        case .resourceHave:
            let digest = [UInt8](repeating: 4, count: WireLimits.prefixDigest)
            return [.resource(.have(ResourceHave(id: Self.id(step), offset: 1, digest: digest)))]
        case .resourceFrom: return [.resource(.offer(self.offer(step))), .resource(.from(ResourceFrom(id: Self.id(step), offset: 0)))]
        case .dataTicket: return [.dataTicket(DataTicket(transfer: Self.id(step), token: DataToken()))]
        case .dataUnavailable: return [.dataUnavailable(Self.id(step))]
        case .dataAttach: return [.dataAttach(DataToken())]
        case .streamOpen: return [.stream(.open(try self.open(step)))]
        case .streamAccept: return [.stream(.accept(StreamAccept(id: Self.id(step), limit: .max)))]
        case .streamRefuse: return [.stream(.refuse(StreamRefuse(id: Self.id(step), refusal: self.refusal)))]
        case .streamData:
            let data = ByteBuffer(repeating: 1, count: step % 8 == 0 ? 65_536 : 1)
            return [.stream(.open(try self.open(step))), .stream(.data(StreamData(id: Self.id(step), data: data)))]
        case .streamEnd: return [.stream(.open(try self.open(step))), .stream(.end(StreamEnd(id: Self.id(step), size: 0)))]
        case .streamDone: return [.stream(.done(Self.id(step)))]
        case .streamAbort:
            return [.stream(.open(try self.open(step))), .stream(.abort(StreamRefuse(id: Self.id(step), refusal: self.refusal)))]
        case .streamReroute: return [.stream(.open(try self.open(step))), .stream(.reroute(StreamReroute(id: Self.id(step), offset: 0)))]
        case .streamRerouted: return [.stream(.open(try self.open(step))), .stream(.rerouted(StreamReroute(id: Self.id(step), offset: 0)))]
        case .verifyBegin: return [self.verification(step, .begin(commitment: self.part(step)))]
        case .verifyAnswer: return [self.verification(step, .answer(nonce: self.part(step)))]
        case .verifyReveal:
            return [
                self.verification(step, .begin(commitment: self.part(step))), self.verification(step, .reveal(nonce: self.part(step))),
            ]
        case .verifyEnd:
            let reasons = VerificationFrame.EndReason.allCases
            return [
                self.verification(step, .begin(commitment: self.part(step))),
                self.verification(step, .end(reasons[Int(step) % reasons.count])),
            ]
        }
    }

    /// Returns a frame that a receiver skips: its header and payload, which the codec cannot encode.
    static func unknown(_ step: UInt32) -> [UInt8] {
        let lengths: [Int] = [0, 1, 21, 255, 4096, 16, 0, step % 64 == 7 ? WireLimits.framePayload : 1]
        let length = lengths[Int(step) % lengths.count]
        let type = FrameType.firstSkippable + UInt8(step % UInt32(0x100 - Int(FrameType.firstSkippable)))
        return withUnsafeBytes(of: UInt32(length).bigEndian) { Array($0) } + [type] + [UInt8](repeating: 0, count: length)
    }

    private func invite(_ step: UInt32) -> Invite {
        Invite(
            id: Self.id(step), timeoutMilliseconds: WireLimits.invitationTimeoutMilliseconds,
            context: [UInt8](repeating: 0x78, count: step % 16 == 0 ? WireLimits.invitationContext : 0))
    }

    private func message(_ step: UInt32) -> MessageFrame {
        let modes: [MessageFrame.Mode] = [.reliable, .unreliable, .reliable, .resumed]
        return MessageFrame(
            session: step % 8 == 7 ? Self.id(step, 1) : Self.session, id: Self.id(step), mode: modes[Int(step) % modes.count],
            sequence: UInt64(Self.mark) << 32 | UInt64(step), sentAtMilliseconds: 1_700_000_000_000, contentType: "text/plain",
            body: ByteBuffer(repeating: 0x78, count: step % 32 == 0 ? 16_384 : 20))
    }

    /// Returns a full frame of receipts, or one receipt, of every outcome.
    private func receipts(_ step: UInt32) -> [MessageReceipt] {
        let outcomes: [MessageReceipt.Outcome] = [.noted, .delivered, .read, .inboxFull, .refused]
        let count = step % 2 == 0 ? WireLimits.receiptsPerFrame : 1
        return (0..<count).map { MessageReceipt(id: Self.id(step, UInt64($0)), outcome: outcomes[Int(step / 2) % outcomes.count]) }
    }

    private func offer(_ step: UInt32) -> ResourceOffer {
        let sizes: [UInt64] = [0, 1, 5_000_000, 1_000, 64 << 30, 100, 4096, WireLimits.resourceSize]
        return ResourceOffer(
            session: Self.session, id: Self.id(step), kind: step % 3 == 2 ? .directory : .file, size: sizes[Int(step) % sizes.count],
            name: step % 5 == 4 ? "../\(step)" : "flood \(step)")
    }

    private func open(_ step: UInt32) throws -> StreamOpen {
        StreamOpen(session: Self.session, id: Self.id(step), name: try StreamName("flood \(step)"))
    }

    private func verification(_ step: UInt32, _ part: VerificationFrame.Part) -> Frame {
        .verification(VerificationFrame(id: Self.id(step), part))
    }

    private func part(_ step: UInt32) -> [UInt8] { [UInt8](repeating: UInt8(step % 256), count: WireLimits.verificationPart) }
}

extension FrameType {
    /// Whether the frame is meaningful only in a session, or for a transfer of one.
    var needsSession: Bool {
        switch self {
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd,
            .groupInvite, .groupAnswer, .groupRecord, .groupWithdraw, .groupNames, .groupIndex, .verifyBegin, .verifyAnswer, .verifyReveal,
            .verifyEnd:
            false
        case .message, .messageReceipts, .resourceOffer, .resourceAccept, .resourceRefuse, .resourceChunk, .resourceEnd, .resourceDone,
            .resourceCancel, .resourceHave, .resourceFrom, .dataTicket, .dataUnavailable, .dataAttach, .streamOpen, .streamAccept,
            .streamRefuse, .streamData, .streamEnd, .streamDone, .streamAbort, .streamReroute, .streamRerouted:
            true
        }
    }
}
