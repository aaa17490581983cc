import EarshotWire
import Testing

/// The cases of the frames of groups.
extension ConnectionCase {
    private static func invite(_ number: UInt64) throws -> Frame {
        .group(.invite(try GroupFixtures().invite(InvitationID(high: 1, low: number))))
    }
    private static func answer(_ number: UInt64, _ decision: GroupInviteAnswer.Decision) -> Frame {
        .group(.inviteAnswer(GroupInviteAnswer(id: InvitationID(high: 1, low: number), decision: decision)))
    }
    private static func withdraw(_ number: UInt64) -> Frame {
        .group(.inviteWithdraw(InviteWithdraw(id: InvitationID(high: 1, low: number), reason: .withdrawn)))
    }

    static func groups() throws -> [ConnectionCase] {
        try self.groupInvitations().map { one in
            var one = one
            one.knowsGroups = true
            return one
        } + self.groupsUnknown()
    }

    private static func groupInvitations() throws -> [ConnectionCase] {
        let accepted = GroupInviteAnswer.Decision.accepted(try GroupFixtures().ownSeat())
        let (one, two) = (try self.invite(1), try self.invite(2))
        let session = Invite(id: InvitationID(high: 1, low: 1), timeoutMilliseconds: 30_000, context: [])
        let declined = InviteAnswer(id: session.id, decision: .declined)
        return [
            ConnectionCase("records, names and indexes pass at any time", try self.exchanges().flatMap { [got($0), .sent($0), got($0)] }),
            ConnectionCase("an invitation is answered once", [got(one), .sent(answer(1, accepted)), .held(answer(1, .declined))]),
            ConnectionCase(
                "a withdrawal that crossed the answer passes once",
                [got(one), .sent(answer(1, .declined)), late(withdraw(1)), wrong(withdraw(1))]),
            ConnectionCase(
                "what was accepted is taken back once",
                [got(one), .sent(answer(1, accepted)), got(withdraw(1)), wrong(withdraw(1))]),
            ConnectionCase(
                "an acceptance is turned down once", [.sent(one), got(answer(1, accepted)), .sent(withdraw(1)), .held(withdraw(1))]),
            ConnectionCase("what was withdrawn cannot be answered", [got(one), got(withdraw(1)), .held(answer(1, accepted)), got(two)]),
            ConnectionCase("what was withdrawn is not withdrawn again", [got(one), got(withdraw(1)), wrong(withdraw(1))]),
            ConnectionCase("an id is not used again while it is pending", [got(one), wrong(one)]),
            ConnectionCase("an id is not used again after its answer", [got(one), .sent(answer(1, .declined)), wrong(one)]),
            ConnectionCase("an id is not used again after its withdrawal", [got(one), got(withdraw(1)), wrong(one)]),
            ConnectionCase(
                "a second invitation is busy", [got(one), .answered(two, answer(2, .busy)), late(withdraw(2)), .sent(answer(1, accepted))]),
            ConnectionCase("an id that was busy is not used again", [got(one), .answered(two, answer(2, .busy)), wrong(two)]),
            ConnectionCase("an answer decides", [.sent(one), got(answer(1, accepted)), wrong(answer(1, accepted))]),
            ConnectionCase("one invitation at a time is made", [.sent(one), .held(two), .sent(withdraw(1)), .sent(two)]),
            ConnectionCase("a decided invitation is not withdrawn", [.sent(one), got(answer(1, .declined)), .held(withdraw(1))]),
            ConnectionCase(
                "a late acceptance passes once: nobody vouches for the seat",
                [.sent(one), .sent(withdraw(1)), late(answer(1, accepted)), wrong(answer(1, accepted))]),
            ConnectionCase(
                "a late refusal passes once", [.sent(one), .sent(withdraw(1)), late(answer(1, .busy)), wrong(answer(1, .busy))]),
            ConnectionCase("an answer to nothing", [wrong(answer(1, .busy))]),
            ConnectionCase("a withdrawal of nothing", [wrong(withdraw(1))]),
            ConnectionCase(
                "each side may have one pending, the lower one",
                [.sent(one), got(two), .sent(answer(2, accepted)), got(answer(1, accepted))]),
            ConnectionCase(
                "each side may have one pending, the higher one", isLower: false,
                [got(one), .sent(two), got(answer(2, accepted)), .sent(answer(1, accepted))]),
            ConnectionCase(
                "an invitation to a session is another one, under the same id, too",
                [
                    got(one), got(.invite(session)), .sent(answer(1, .declined)), .held(answer(1, .declined)),
                    .sent(.inviteAnswer(declined)),
                ]),
            ConnectionCase("an answer of the other kind answers no invitation", [.sent(one), wrong(.inviteAnswer(declined))]),
            ConnectionCase("a session's answer is none to a group", [.sent(.invite(session)), wrong(answer(1, .declined))]),
            ConnectionCase(
                "the end of a session leaves an invitation to a group",
                [.sent(one), got(.sessionEnd(Fixtures.session)), got(answer(1, accepted))]),
            ConnectionCase(
                "after its own goodbye a side says nothing more", [.sent(.goodbye), got(one), late(two), .held(answer(1, .declined))]),
        ]
    }

    private static func exchanges() throws -> [Frame] {
        try GroupFixtures().frames().map(\.frame).filter { [.groupRecord, .groupNames, .groupIndex].contains($0.type) }
    }

    private static func groupsUnknown() throws -> [ConnectionCase] {
        let frames = try GroupFixtures().frames().map(\.frame)
        return try [FrameType.groupInvite, .groupAnswer, .groupRecord, .groupWithdraw, .groupNames, .groupIndex].map { type in
            let frame = try #require(frames.first { $0.type == type })
            let name = "\(Vectors.name(of: type)) where a hello lacks the extension"
            return ConnectionCase(name, knowsGroups: false, [.held(frame), wrong(frame)])
        }
    }
}
