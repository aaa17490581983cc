import EarshotWire
import OrderedCollections

/// A pending signature, with the data for the step that follows it.
enum GroupSigning: Sendable {
    /// A group's terms, and its creator's own seat, which the creator signs twice.
    case create(GroupCharter, GroupTerms, GroupSeat, CallID)
    /// New terms by the creator: a new name, or the group's end.
    case terms(GroupTerms, of: GroupID, CallID)
    /// A leave of this machine, requested by a user.
    case leave(GroupLeave, of: GroupID, CallID)
    /// A leave for a peer that showed this machine's own seat in a group that this machine does not hold.
    case leaveUnheld(GroupLeave, of: GroupID, LinkID)
    /// A removal, and the seats that the creator countersigns before it.
    case removal(GroupRemoval, seats: [GroupSeat], of: GroupID, CallID)
    /// The seat that this machine takes by accepting an invitation.
    case application(GroupSeat, to: GroupID, InvitationID, CallID?)
    /// A peer's seat, countersigned by its inviter.
    case warrant(GroupSeat, InvitationID)
}

/// A pending check of signatures, with the data for the step that follows it.
enum GroupChecking: Sendable {
    case records([GroupRecordInput], from: PeerID, LinkID)
    case invitation(GroupInvite, from: PeerID, LinkID, HoldID?)
    /// The seat of a peer that accepted an invitation.
    case applicantSeat(GroupSeat, InvitationID)
    /// This machine's own seat in a group that it does not hold.
    case ownSeat(GroupSeat, of: GroupID, LinkID)
}

/// The pending signatures and checks.
struct GroupSignatures: Sendable {
    private var signings: OrderedDictionary<SignatureID, GroupSigning> = [:]
    private var checkings: OrderedDictionary<SignatureID, GroupChecking> = [:]
    private var total: UInt64 = 0

    mutating func beginSigning(_ signing: GroupSigning) -> SignatureID {
        self.total += 1
        let id = SignatureID(number: self.total)
        self.signings[id] = signing
        return id
    }

    mutating func beginChecking(_ checking: GroupChecking) -> SignatureID {
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

    /// Drops the check of an invitation that its peer has withdrawn. Returns the hold for the invitation.
    mutating func withdraw(_ id: InvitationID, of peer: PeerID) -> HoldID?? {
        for (signature, checking) in self.checkings {
            guard case .invitation(let invite, from: peer, _, let hold) = checking, invite.id == id else { continue }
            self.checkings[signature] = nil
            return .some(hold)
        }
        return nil
    }

    /// Drops all pending signatures. Returns the calls that wait for them.
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
