import EarshotWire

extension GroupFrame {
    /// The variable size of the frame, in bytes: keys, signatures, lists.
    var bulk: Int {
        switch self {
        case .invite(let invite): invite.context.count + invite.charter.bulk + invite.terms.signature.count
        case .inviteAnswer(let answer): answer.decision.bulk
        case .inviteWithdraw: 0
        case .record(let record, _): record.bulk
        case .names(let names): names.count * MemoryLayout<GroupName>.stride
        case .index(_, let hashes): hashes.count * MemoryLayout<GroupRecordHash>.stride
        }
    }

    /// The approximate amount of work that the frame causes for the node, in the units of ``EarshotWire/Frame/work``.
    var work: Int {
        switch self {
        case .invite, .inviteAnswer, .inviteWithdraw: 16
        // Two signatures may have to be verified.
        case .record: 64
        case .names(let names): 16 + names.count
        // The node sends the records that are missing in the index.
        case .index(_, let hashes): 64 + hashes.count / 8
        }
    }
}

extension GroupInviteAnswer.Decision {
    fileprivate var bulk: Int {
        switch self {
        case .accepted(let seat): seat.bulk
        case .declined, .busy: 0
        }
    }
}

extension GroupRecord {
    fileprivate var bulk: Int {
        switch self {
        case .charter(let charter): charter.bulk
        case .terms(let terms): terms.signature.count
        case .seat(let seat): seat.bulk
        case .leave(let leave): leave.publicKey.count + leave.signature.count
        case .removal(let removal): removal.signature.count
        }
    }
}

extension GroupCharter {
    fileprivate var bulk: Int { self.creatorKey.count + self.nonce.count }
}

extension GroupSeat {
    fileprivate var bulk: Int { self.publicKey.count + self.signature.count + self.warrant.signature.count }
}
