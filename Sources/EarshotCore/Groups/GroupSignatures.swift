import EarshotWire
import OrderedCollections

/// What happens once something is signed.
enum GroupSigning: Sendable {
    /// A group's terms and its creator's own seat, which is signed twice.
    case create(GroupCharter, GroupTerms, GroupSeat, CallID)
    /// Its creator's word: a new name, or its end.
    case terms(GroupTerms, of: GroupID, CallID)
    /// This machine leaves by a person's wish.
    case leave(GroupLeave, of: GroupID, CallID)
    /// A peer has shown this machine's own seat in a group that is not held: it hears that it is left.
    case leaveUnheld(GroupLeave, of: GroupID, LinkID)
    /// Seats that are countersigned, and a removal behind them.
    case removal(GroupRemoval, seats: [GroupSeat], of: GroupID, CallID)
    /// The seat that is taken by accepting an invitation.
    case application(GroupSeat, to: GroupID, InvitationID, CallID?)
    /// A peer's seat, by its inviter.
    case warrant(GroupSeat, InvitationID)
}

/// What happens once something is checked.
enum GroupChecking: Sendable {
    case records([GroupRecordInput], from: PeerID, LinkID)
    case invitation(GroupInvite, from: PeerID, LinkID, HoldID?)
    /// The seat of a peer that has accepted an invitation.
    case application(GroupSeat, InvitationID)
    /// A seat of this machine's own, in a group that it does not hold.
    case ownSeat(GroupSeat, of: GroupID, LinkID)
}

/// What is being signed, and checked.
struct GroupSignatures: Sendable {
    private var signings: OrderedDictionary<SignatureID, GroupSigning> = [:]
    private var checkings: OrderedDictionary<SignatureID, GroupChecking> = [:]
    private var total: UInt64 = 0

    mutating func begin(_ signing: GroupSigning) -> SignatureID {
        self.total += 1
        let id = SignatureID(number: self.total)
        self.signings[id] = signing
        return id
    }

    mutating func begin(_ checking: GroupChecking) -> SignatureID {
        self.total += 1
        let id = SignatureID(number: self.total)
        self.checkings[id] = checking
        return id
    }

    mutating func endSigning(_ id: SignatureID) -> GroupSigning? { self.signings.removeValue(forKey: id) }
    mutating func endChecking(_ id: SignatureID) -> GroupChecking? { self.checkings.removeValue(forKey: id) }

    /// Whether an invitation to a group was accepted, and the seat is being signed.
    func isApplying(to group: GroupID) -> Bool {
        self.signings.values.contains { if case .application(_, to: group, _, _) = $0 { true } else { false } }
    }

    /// An invitation of a peer's that is being checked is taken back: what was held for it.
    mutating func withdraw(_ id: InvitationID, of peer: PeerID) -> HoldID?? {
        for (signature, checking) in self.checkings {
            guard case .invitation(let invite, from: peer, _, let hold) = checking, invite.id == id else { continue }
            self.checkings[signature] = nil
            return .some(hold)
        }
        return nil
    }

    /// Nothing is signed any more: the calls that wait.
    mutating func dismiss() -> [CallID] {
        defer { self.signings = [:] }
        return self.signings.values.compactMap { signing in
            switch signing {
            case .create(_, _, _, let call), .terms(_, _, let call), .leave(_, _, let call), .removal(_, _, _, let call): call
            case .application(_, _, _, let call): call
            case .leaveUnheld, .warrant: nil
            }
        }
    }
}
