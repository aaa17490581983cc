import EarshotWire

extension ConnectionHarness {
    /// A frame of groups, mostly an invitation or what becomes of one.
    static func groupFrame(_ kind: UInt8, _ dice: inout Dice) -> GroupFrame? {
        let id = InvitationID(high: 0, low: dice.number(below: 96))
        let group = GroupID(high: 0, low: id.low)
        switch kind % 8 {
        case 0, 1:
            guard let label = try? DisplayName("a"),
                let charter = try? GroupCharter(
                    nonce: [UInt8](repeating: 1, count: 16), creatorKey: [1], creatorScheme: .ed25519, createdAtMilliseconds: 0)
            else { return nil }
            let terms = GroupTerms(number: 1, name: label, signature: [1])
            return .invite(
                GroupInvite(
                    id: id, timeoutMilliseconds: 1, charter: charter, terms: terms, members: 1, voucherNumber: 1, seatNumber: 1, context: []
                ))
        case 2, 3: return .inviteAnswer(GroupInviteAnswer(id: id, decision: kind & 16 == 0 ? .declined : .busy))
        case 4, 5: return .inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn))
        case 6: return .names([GroupName(group: group, digest: .digest(of: []))])
        default: return .index(group, [])
        }
    }
}
