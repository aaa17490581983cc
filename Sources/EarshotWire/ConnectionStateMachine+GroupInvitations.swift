extension ConnectionStateMachine {
    /// The frames of groups. Only the invitations have an order: at most one pending in each direction, independent of those to a session.
    ///
    /// They do not cross: each side may have one pending for the other, to the same group or to another. Ended invitations are remembered
    /// for a while, because an answer or a withdrawal may be in flight. A late acceptance is a seat that nobody vouches for, so nothing has
    /// to be ended.
    struct GroupInvitationOrder: Sendable {
        /// The number of ended invitations of each direction that are remembered.
        static let remembered = 32

        private var outgoing: InvitationID?
        private var incoming: InvitationID?
        /// This side's withdrawn invitations: an answer may still arrive.
        private var endedOutgoing = RecentIDs<InvitationID>(capacity: remembered)
        /// The other side's answered invitations: a withdrawal may still arrive.
        private var endedIncoming = RecentIDs<InvitationID>(capacity: remembered)
        /// The accepted invitations of each side. The inviter may still withdraw them, until it has vouched for the seat.
        private var acceptedOutgoing = RecentIDs<InvitationID>(capacity: remembered)
        private var acceptedIncoming = RecentIDs<InvitationID>(capacity: remembered)
        /// The other side's latest invitations, whatever their state: an id is used only once.
        private var made = RecentIDs<InvitationID>(capacity: remembered)

        mutating func received(_ frame: GroupFrame) -> ReceivedAction {
            switch frame {
            case .invite(let invite): self.received(invite)
            case .inviteAnswer(let answer): self.received(answer)
            case .inviteWithdraw(let withdraw): self.received(withdraw)
            case .record, .names, .index: .deliver
            }
        }

        private mutating func received(_ invite: GroupInvite) -> ReceivedAction {
            guard invite.id != self.incoming, !self.made.contains(invite.id) else {
                return .violation(.outOfOrder(.groupInvite, why: "the invitation has been made before"))
            }
            self.made.insert(invite.id)
            guard self.incoming == nil else {
                self.endedIncoming.insert(invite.id)
                return .reply(.group(.inviteAnswer(GroupInviteAnswer(id: invite.id, decision: .busy))))
            }
            self.incoming = invite.id
            return .deliver
        }

        private mutating func received(_ answer: GroupInviteAnswer) -> ReceivedAction {
            if answer.id == self.outgoing {
                self.outgoing = nil
                if case .accepted = answer.decision { self.acceptedOutgoing.insert(answer.id) }
                return .deliver
            }
            guard self.endedOutgoing.remove(answer.id) else {
                return .violation(.outOfOrder(.groupAnswer, why: "it answers no invitation"))
            }
            return .ignore
        }

        private mutating func received(_ withdraw: InviteWithdraw) -> ReceivedAction {
            if withdraw.id == self.incoming {
                self.incoming = nil
                return .deliver
            }
            if self.acceptedIncoming.remove(withdraw.id) { return .deliver }
            guard self.endedIncoming.remove(withdraw.id) else {
                return .violation(.outOfOrder(.groupWithdraw, why: "it withdraws no invitation"))
            }
            return .ignore
        }

        mutating func sent(_ frame: GroupFrame) -> SentAction {
            switch frame {
            case .invite(let invite):
                guard self.outgoing == nil else { return .drop }
                self.outgoing = invite.id
            case .inviteAnswer(let answer):
                guard answer.id == self.incoming else { return .drop }
                self.incoming = nil
                if case .accepted = answer.decision {
                    self.acceptedIncoming.insert(answer.id)
                } else {
                    self.endedIncoming.insert(answer.id)
                }
            case .inviteWithdraw(let withdraw):
                guard withdraw.id == self.outgoing else { return self.acceptedOutgoing.remove(withdraw.id) ? .send : .drop }
                self.outgoing = nil
                self.endedOutgoing.insert(withdraw.id)
            case .record, .names, .index: break
            }
            return .send
        }
    }
}
