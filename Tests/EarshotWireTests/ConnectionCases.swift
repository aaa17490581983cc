import EarshotWire
import NIOCore
import Testing

/// A case of the rules in "State machines": the frames that two proven peers exchange, and the verdict on each frame.
struct ConnectionCase {
    enum Verdict: String {
        case deliver
        case ignore
        case violation
    }

    enum Step {
        case received(Frame, Verdict)
        case answered(Frame, Frame)
        case sent(Frame)
        /// Not allowed to this side now.
        case held(Frame)
    }

    var name: String
    var isLower = true
    var reroutesStreams = true
    /// Whether both hellos carry the extension `groups`; `nil` if the case is not about groups.
    var knowsGroups: Bool?
    /// Whether both hellos carry the extension `file attributes`; `nil` if the case is not about them.
    var takesAttributes: Bool?
    /// Whether both hellos carry the extension `replies`; `nil` if the case is not about them.
    var takesReplies: Bool?
    let steps: [Step]

    init(
        _ name: String, isLower: Bool = true, reroutesStreams: Bool = true, knowsGroups: Bool? = nil, takesAttributes: Bool? = nil,
        takesReplies: Bool? = nil, _ steps: [Step]
    ) {
        self.name = name
        self.isLower = isLower
        self.reroutesStreams = reroutesStreams
        self.knowsGroups = knowsGroups
        self.takesAttributes = takesAttributes
        self.takesReplies = takesReplies
        self.steps = steps
    }

    /// Returns all cases.
    static func all() throws -> [ConnectionCase] {
        let resources = Self.offers() + Self.resources() + Self.elsewhere()
        let streams = try Self.streams() + Self.endsOfStreams() + Self.routes()
        return try Self.of("life", Self.life()) + Self.of("invitation", Self.invitations())
            + Self.of("session", Self.sessions() + Self.ends())
            + Self.of("message", Self.messages()) + Self.of("resource", resources) + Self.of("stream", streams)
            + Self.of("limit", Self.limits()) + Self.of("group", Self.groups())
    }

    private static func of(_ what: String, _ cases: [ConnectionCase]) -> [ConnectionCase] {
        cases.map { one in
            var one = one
            one.name = "\(what): \(one.name)"
            return one
        }
    }

    static func got(_ frame: Frame) -> Step { .received(frame, .deliver) }
    static func late(_ frame: Frame) -> Step { .received(frame, .ignore) }
    static func wrong(_ frame: Frame) -> Step { .received(frame, .violation) }

    // MARK: Life, invitations, sessions, messages

    private static func life() throws -> [ConnectionCase] {
        let token = try Fixtures.token
        return [
            ConnectionCase("a ping is answered", [.answered(.ping(7), .pong(7)), .answered(.ping(7), .pong(7))]),
            ConnectionCase(
                "every ping is answered, however many come at once", (0..<100).map { .answered(.ping($0), .pong($0)) }),
            ConnectionCase(
                "pongs come in the order of their pings",
                [.sent(.ping(1)), .sent(.ping(2)), got(.pong(1)), got(.pong(2)), wrong(.pong(2))]),
            ConnectionCase("a pong in another order", [.sent(.ping(1)), .sent(.ping(2)), wrong(.pong(2))]),
            ConnectionCase(
                "at most 8 pings are unanswered", (0..<8).map { .sent(.ping($0)) } + [.held(.ping(8)), got(.pong(0)), .sent(.ping(8))]),
            ConnectionCase("a hello behind the handshake", [wrong(.hello(try Fixtures.hello()))]),
            ConnectionCase("a proof behind the handshake", [wrong(.proof(Proof(signature: [1])))]),
            ConnectionCase("a token on a control connection", [wrong(.dataAttach(token))]),
            ConnectionCase(
                "a ticket and a refusal to dial for anything pass",
                [
                    got(.dataTicket(DataTicket(transfer: TransferID(Fixtures.resource), token: token))),
                    got(.dataUnavailable(TransferID(Fixtures.stream))),
                ]),
            ConnectionCase(
                "nothing follows a goodbye", [got(.goodbye), late(.ping(1)), late(.hello(try Fixtures.hello())), .held(.ping(1))]),
            ConnectionCase("nothing follows a refusal", [got(.refusal(Refusal(code: .superseded))), late(.ping(1)), .held(.goodbye)]),
            ConnectionCase(
                "after its own goodbye a side listens and says no more",
                [.sent(.goodbye), late(.ping(1)), .held(.ping(1)), got(.sessionEnd(Fixtures.session)), got(.goodbye)]),
            ConnectionCase(
                "after its own refusal a side does not listen",
                [.sent(.refusal(Refusal(code: .busy))), late(.sessionEnd(Fixtures.session))]),
        ]
    }

    private static func invite(_ number: UInt64) -> Frame {
        .invite(Invite(id: InvitationID(high: 1, low: number), timeoutMilliseconds: 30_000, context: []))
    }
    private static func answer(_ number: UInt64, _ decision: InviteAnswer.Decision) -> Frame {
        .inviteAnswer(InviteAnswer(id: InvitationID(high: 1, low: number), decision: decision))
    }
    private static func withdraw(_ number: UInt64) -> Frame {
        .inviteWithdraw(InviteWithdraw(id: InvitationID(high: 1, low: number), reason: .withdrawn))
    }
    private static let accepted = InviteAnswer.Decision.accepted(Fixtures.session)

    private static func invitations() -> [ConnectionCase] {
        [
            ConnectionCase("an invitation is answered once", [got(invite(1)), .sent(answer(1, accepted)), .held(answer(1, .declined))]),
            ConnectionCase(
                "a withdrawal that crossed the answer passes once",
                [got(invite(1)), .sent(answer(1, .declined)), late(withdraw(1)), wrong(withdraw(1))]),
            ConnectionCase(
                "what was withdrawn cannot be answered", [got(invite(1)), got(withdraw(1)), .held(answer(1, accepted)), got(invite(2))]),
            ConnectionCase("what was withdrawn is not withdrawn again", [got(invite(1)), got(withdraw(1)), wrong(withdraw(1))]),
            ConnectionCase("an id is not used again while it is pending", [got(invite(1)), wrong(invite(1))]),
            ConnectionCase("an id is not used again after its answer", [got(invite(1)), .sent(answer(1, .declined)), wrong(invite(1))]),
            ConnectionCase("an id is not used again after its withdrawal", [got(invite(1)), got(withdraw(1)), wrong(invite(1))]),
            ConnectionCase(
                "an id is not used again after a late withdrawal",
                [got(invite(1)), .sent(answer(1, .declined)), late(withdraw(1)), wrong(invite(1))]),
            ConnectionCase(
                "a second invitation is busy",
                [got(invite(1)), .answered(invite(2), answer(2, .busy)), late(withdraw(2)), .sent(answer(1, accepted))]),
            ConnectionCase(
                "an id that was busy is not used again", [got(invite(1)), .answered(invite(2), answer(2, .busy)), wrong(invite(2))]),
            ConnectionCase("an answer decides", [.sent(invite(1)), got(answer(1, accepted)), wrong(answer(1, accepted))]),
            ConnectionCase("one invitation at a time is made", [.sent(invite(1)), .held(invite(2)), .sent(withdraw(1)), .sent(invite(2))]),
            ConnectionCase("a decided invitation is not withdrawn", [.sent(invite(1)), got(answer(1, .declined)), .held(withdraw(1))]),
            ConnectionCase(
                "a late acceptance is ended",
                [.sent(invite(1)), .sent(withdraw(1)), .answered(answer(1, accepted), .sessionEnd(Fixtures.session))]),
            ConnectionCase(
                "a late refusal passes once",
                [.sent(invite(1)), .sent(withdraw(1)), late(answer(1, .declined)), wrong(answer(1, .declined))]),
            ConnectionCase("an answer to nothing", [wrong(answer(1, .busy))]),
            ConnectionCase("a withdrawal of nothing", [wrong(withdraw(1))]),
            ConnectionCase(
                "crossing, the lower side: its own stands",
                [.sent(invite(1)), late(invite(2)), .held(answer(2, .declined)), got(answer(1, accepted)), wrong(invite(2))]),
            ConnectionCase(
                "crossing, the lower side: the other may have been withdrawn",
                [.sent(invite(1)), late(invite(2)), late(withdraw(2)), wrong(withdraw(2))]),
            ConnectionCase(
                "crossing, the higher side: the other's stands", isLower: false,
                [.sent(invite(2)), got(invite(1)), .held(withdraw(2)), .sent(answer(1, accepted))]),
            ConnectionCase(
                "crossing, the higher side: its own may have been answered", isLower: false,
                [.sent(invite(2)), got(invite(1)), .answered(answer(2, accepted), .sessionEnd(Fixtures.session))]),
            ConnectionCase("the higher side does not invite while it is invited", isLower: false, [got(invite(1)), .held(invite(2))]),
            ConnectionCase("the lower side may, and theirs is ignored", [got(invite(2)), .sent(invite(1)), .held(answer(2, .declined))]),
        ]
    }

    private static func sessions() -> [ConnectionCase] {
        let (session, other) = (Frame.sessionResume(Fixtures.session), Frame.sessionEnd(SessionID(high: 9, low: 9)))
        return [
            ConnectionCase(
                "sessions may be named and ended at any time", [.sent(session), got(session), got(session), got(other), got(other)]),
            ConnectionCase(
                "a lost acceptance comes as a resume and as an answer",
                [.sent(invite(1)), got(session), .sent(session), got(answer(1, accepted)), wrong(answer(1, accepted))]),
        ]
    }

    private static func message(_ sequence: UInt64, _ mode: MessageFrame.Mode = .reliable) -> Frame {
        .message(Fixtures.message(sequence: sequence, mode: mode, contentType: "x", body: ByteBuffer()))
    }

    private static func messages() -> [ConnectionCase] {
        let reply = Frame.message(Fixtures.message(inReplyTo: Fixtures.otherMessage))
        let liveReply = Frame.message(Fixtures.message(mode: .unreliable, inReplyTo: Fixtures.otherMessage))
        return [
            ConnectionCase("sequences rise, with gaps", [got(message(0)), got(message(5)), got(message(.max))]),
            ConnectionCase("a sequence that comes twice", [got(message(5)), wrong(message(5))]),
            ConnectionCase("a sequence that falls", [got(message(5)), wrong(message(4))]),
            ConnectionCase(
                "unreliable messages are not part of the order",
                [got(message(5)), got(message(1, .unreliable)), got(message(9, .unreliable)), got(message(6))]),
            ConnectionCase(
                "a resumed message begins the order anew, refused before or not",
                [got(message(5)), got(message(3, .resumed)), got(message(4)), got(message(4, .resumed)), wrong(message(4))]),
            ConnectionCase(
                "receipts pass, also of what is unknown",
                [
                    got(
                        .messageReceipts([
                            MessageReceipt(id: Fixtures.message, outcome: .delivered),
                            MessageReceipt(id: Fixtures.message, outcome: .noted),
                        ]))
                ]),
            ConnectionCase("a message names the one to which it replies", takesReplies: true, [.sent(reply), got(liveReply), got(reply)]),
            ConnectionCase(
                "a reply that one side does not know", takesReplies: false,
                [.held(reply), .held(liveReply), .sent(message(7)), got(message(6)), wrong(reply)]),
            ConnectionCase("nor an unreliable one", takesReplies: false, [wrong(liveReply)]),
        ]
    }

    // MARK: Limits of one peer

    private static func limits() throws -> [ConnectionCase] {
        func offer(_ number: UInt64) -> Frame {
            .resource(
                .offer(ResourceOffer(session: Fixtures.session, id: ResourceID(high: 2, low: number), kind: .file, size: 1, name: "")))
        }
        func open(_ number: UInt64) throws -> Frame {
            .stream(.open(StreamOpen(session: Fixtures.session, id: StreamID(high: 3, low: number), name: try StreamName("a"))))
        }
        let full = Refusal(code: .busy, explanation: "64 transfers are open already")
        let fullOfStreams = Refusal(code: .busy, explanation: "64 streams are open already")
        let refused = Frame.resource(.refuse(ResourceRefuse(id: ResourceID(high: 2, low: 64), refusal: full)))
        let refusedStream = Frame.stream(.refuse(StreamRefuse(id: StreamID(high: 3, low: 64), refusal: fullOfStreams)))
        let first = ResourceRefuse(id: ResourceID(high: 2, low: 0), refusal: Refusal(code: .declined))
        let firstStream = StreamRefuse(id: StreamID(high: 3, low: 0), refusal: Refusal(code: .declined))
        return [
            ConnectionCase(
                "64 transfers of a peer, and one more when one has ended",
                (0..<64).map { got(offer($0)) } + [
                    .answered(offer(64), refused), .sent(.resource(.refuse(first))), got(offer(65)), wrong(offer(64)),
                ]),
            ConnectionCase(
                "64 streams of a peer, and one more when one has ended",
                try (0..<64).map { got(try open($0)) } + [
                    .answered(try open(64), refusedStream), .sent(.stream(.refuse(firstStream))), got(try open(65)), wrong(try open(64)),
                ]),
        ]
    }
}
