extension ConnectionStateMachine {
    /// The order of the frames of invitations on one connection: at most one invitation is pending in each direction, and never both for
    /// longer than it takes to notice.
    ///
    /// When both sides have invited, only the invitation of the lower peer id stands, regardless of the order. The lower side ignores the
    /// other's, and the higher side drops its own. Ended invitations are remembered for a while, because an answer or a withdrawal may be
    /// in flight. A late acceptance has created a session on the other side, which this side then ends. If this side has invited again, it
    /// does not: the answer to the new invitation names the same session.
    struct InvitationOrder: Sendable {
        /// The number of ended invitations of each direction that are remembered.
        static let remembered = 32

        /// Whether this side's peer id is the lower one.
        private let isLower: Bool
        private var outgoing: InvitationID?
        private var incoming: InvitationID?
        /// This side's invitations that were withdrawn or superseded: an answer may still arrive.
        private var endedOutgoing = RecentIDs<InvitationID>(capacity: remembered)
        /// The other side's invitations that were answered or ignored: a withdrawal may still arrive.
        private var endedIncoming = RecentIDs<InvitationID>(capacity: remembered)
        /// The other side's latest invitations, whatever their state: an id is used only once.
        private var made = RecentIDs<InvitationID>(capacity: remembered)

        init(isLower: Bool) { self.isLower = isLower }

        mutating func received(_ invite: Invite) -> ReceivedAction {
            guard invite.id != self.incoming, !self.made.contains(invite.id) else {
                return .violation(.outOfOrder(.invite, why: "the invitation has been made before"))
            }
            self.made.insert(invite.id)
            guard self.incoming == nil else {
                self.endedIncoming.insert(invite.id)
                return .reply(.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy)))
            }
            guard let outgoing else {
                self.incoming = invite.id
                return .deliver
            }
            if self.isLower {
                self.endedIncoming.insert(invite.id)
                return .ignore
            }
            self.endedOutgoing.insert(outgoing)
            self.outgoing = nil
            self.incoming = invite.id
            // It replaces this side's own: both want a session.
            return .deliver
        }

        mutating func received(_ answer: InviteAnswer) -> ReceivedAction {
            if answer.id == self.outgoing {
                self.outgoing = nil
                return .deliver
            }
            guard self.endedOutgoing.remove(answer.id) else {
                return .violation(.outOfOrder(.inviteAnswer, why: "it answers no invitation"))
            }
            switch answer.decision {
            // If the session were ended now, it would be over on the other side only: the answer that follows starts it here.
            case .accepted(let session): return self.outgoing == nil ? .reply(.sessionEnd(session)) : .ignore
            case .declined, .busy: return .ignore
            }
        }

        mutating func received(_ withdraw: InviteWithdraw) -> ReceivedAction {
            if withdraw.id == self.incoming {
                self.incoming = nil
                return .deliver
            }
            guard self.endedIncoming.remove(withdraw.id) else {
                return .violation(.outOfOrder(.inviteWithdraw, why: "it withdraws no invitation"))
            }
            return .ignore
        }

        mutating func sent(_ invite: Invite) -> SentAction {
            guard self.outgoing == nil else { return .drop }
            if let incoming {
                // The other side will see the two as crossing: it ignores the higher side's, and drops its own for the lower side's.
                guard self.isLower else { return .drop }
                self.endedIncoming.insert(incoming)
                self.incoming = nil
            }
            self.outgoing = invite.id
            return .send
        }

        mutating func sent(_ answer: InviteAnswer) -> SentAction {
            guard answer.id == self.incoming else { return .drop }
            self.incoming = nil
            self.endedIncoming.insert(answer.id)
            return .send
        }

        mutating func sent(_ withdraw: InviteWithdraw) -> SentAction {
            guard withdraw.id == self.outgoing else { return .drop }
            self.outgoing = nil
            self.endedOutgoing.insert(withdraw.id)
            return .send
        }
    }
}
