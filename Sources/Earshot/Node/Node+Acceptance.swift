import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Who accepts an invitation.
enum InvitationDecider {
    /// Who may have said that the peer is trusted from now on.
    case person(always: Bool)
    /// The settings.
    case policy
}

/// What accepting an invitation comes to, while it is on its way to the disk.
struct Agreement: Sendable, Hashable {
    let session: StoredSession
    /// Whether a person has decided about the peer.
    let isDecided: Bool
    /// Whether it is trusted from now on.
    let isAlways: Bool
}

/// Accepting an invitation, and having one accepted: how a session begins.
///
/// A peer has one session, in memory and on disk. What is accepted is decided when its turn at the store comes, by what is there then, and
/// taken up when its commit comes: while it is on its way to the disk (`PeerRecord/agreement`) no other session with that peer begins.
extension Node {
    /// Accepts an incoming invitation by a person's word; `then` has the outcome once it is on disk. Where that cannot be, nothing has changed.
    func accept(_ invitation: Invitation, always: Bool, then: @escaping (Result<Invitation, EarshotError>) -> Void) {
        let id = invitation.id
        self.invitations[id]?.isDeciding = true
        let decision = {
            guard self.invitations[id]?.invitation.state == .pending else {
                return Result<StoreWork.Decision, EarshotError>.failure(self.isOver(invitation))
            }
            return self.agree(to: invitation, by: .person(always: always))
        }
        self.enqueue(
            .decide(decision) { result in
                self.invitations[id]?.isDeciding = false
                self.conclude(invitation, result, then)
            })
    }

    /// What accepting an invitation comes to now.
    private func agree(to invitation: Invitation, by decider: InvitationDecider) -> Result<StoreWork.Decision, EarshotError> {
        let peer = invitation.peerID
        guard let record = self.records[peer] else {
            return .failure(EarshotError(.notConnected, "\(invitation.peerName) is gone"))
        }
        if decider.isAlways, let mismatch = self.mismatch(of: record) { return .failure(mismatch) }
        let agreement = Agreement(
            session: record.session ?? StoredSession(id: .random(), members: [self.id, peer], createdAt: self.now),
            // A person's, also where it crosses one that a person here has made.
            isDecided: decider.isPerson || self.isInviting(peer), isAlways: decider.isAlways)
        self.records[peer]?.agreement = agreement
        var stored = self.storedPeer(record)
        stored.note(agreement)
        // One transaction: a session without its peer's trust would be half of what was decided.
        return .success(StoreWork.Decision(changes: [.putPeer(stored), .putSession(agreement.session)]))
    }

    /// It is on disk, or is not to be.
    private func conclude(
        _ invitation: Invitation, _ result: Result<Void, EarshotError>, _ then: @escaping (Result<Invitation, EarshotError>) -> Void
    ) {
        let peer = invitation.peerID
        switch result {
        case .failure(let error):
            self.records[peer]?.agreement = nil
            then(.failure(error))
        case .success:
            let agreement = self.records[peer]?.agreement
            self.records[peer]?.agreement = nil
            if let agreement, let decided = self.adopt(agreement, acceptedBy: invitation.id, with: peer) { return then(.success(decided)) }
            // It was over while the disk was busy, and what is told to have failed has changed nothing: neither session nor trust.
            self.keepPeer(peer, andSession: true) { undone in
                then(undone.flatMap { .failure(self.isOver(invitation)) })
            }
        }
    }

    private func isOver(_ invitation: Invitation) -> EarshotError {
        EarshotError(.conflict, "the invitation of \(invitation.peerName) was over meanwhile; see earshot invitations")
    }

    /// `nil` where the invitation is over.
    private func adopt(_ agreement: Agreement, acceptedBy id: InvitationID, with peer: PeerID) -> Invitation? {
        guard let record = self.records[peer], self.invitations[id]?.invitation.state == .pending else { return nil }
        // What was noted of the peer while the disk was busy stays.
        var stored = self.storedPeer(record)
        stored.note(agreement)
        self.records[peer]?.stored = stored
        self.keepSpokenTLS(stored)
        let session = agreement.session
        let decided = self.resolveInvitation(id, .accepted, session: session.id, answering: .accepted(session.id))
        if record.session?.id != session.id || !record.isAttached { self.adopt(session, with: peer, attached: true) }
        self.ensureConnection(peer, now: true)
        return decided
    }

    // MARK: By settings

    /// Has the settings accept what the peer asks when its turn comes. One turn a peer waits, however often it invites and withdraws.
    func acceptByPolicy(_ peer: PeerID) {
        guard self.records[peer]?.isAcceptanceDue == false else { return }
        self.records[peer]?.isAcceptanceDue = true
        let over = EarshotError(.conflict, "the settings accept nothing of it any more")
        let decision = {
            self.records[peer]?.isAcceptanceDue = false
            guard let invitation = self.undecidedInvitation(of: peer), let record = self.records[peer],
                self.policy(of: record).invitation().outcome == .accept
            else { return Result<StoreWork.Decision, EarshotError>.failure(over) }
            self.invitations[invitation.id]?.isDeciding = true
            self.records[peer]?.acceptedInvitation = invitation
            return self.agree(to: invitation, by: .policy)
        }
        self.enqueue(
            .decide(decision) { result in
                guard let invitation = self.records[peer]?.acceptedInvitation else { return self.followPolicy(of: peer, over) }
                self.records[peer]?.acceptedInvitation = nil
                self.invitations[invitation.id]?.isDeciding = false
                self.conclude(invitation, result) { outcome in
                    if case .failure(let error) = outcome { self.followPolicy(of: peer, error) }
                }
            })
    }

    /// The peer's invitation that nobody is answering.
    private func undecidedInvitation(of peer: PeerID) -> Invitation? {
        guard let id = self.pendingInvitation(with: peer, .incoming), let record = self.invitations[id], !record.isDeciding else {
            return nil
        }
        return record.invitation
    }

    /// What the settings did not accept, where it still waits: the settings may say something else meanwhile.
    private func followPolicy(of peer: PeerID, _ error: EarshotError) {
        guard let invitation = self.undecidedInvitation(of: peer), let record = self.records[peer] else { return }
        switch self.policy(of: record).invitation().outcome {
        case .ask:
            guard !self.hasRoom(forInvitationOf: record) else { return }
            self.resolveInvitation(invitation.id, .failed, error: Self.tooMany, answering: .busy)
        case .reject, .hide: self.resolveInvitation(invitation.id, .declined, answering: .declined)
        case .accept:
            guard !record.isAcceptanceDue else { return }
            self.logger.error("cannot accept an invitation", metadata: ["peer": "\(peer)", "error": "\(error)"])
            self.resolveInvitation(invitation.id, .failed, error: error, answering: .declined)
        }
    }

    /// Whether settings alone do not let one more peer in that nobody trusts.
    func isFull(forStranger record: PeerRecord) -> Bool {
        guard record.trust != .trusted else { return false }
        // Those on their way to the disk count too: many may come at once.
        let strangers = self.records.values.count { $0.trust != .trusted && ($0.session != nil || self.isBeingAccepted($0.id)) }
        guard strangers >= EarshotLimits.strangersSessions else { return false }
        self.logger.warning(
            "too many sessions with peers that nobody trusts; a person has to accept the next",
            metadata: ["peer": "\(record.id)", "name": "\(record.name)", "limit": "\(EarshotLimits.strangersSessions)"])
        return true
    }

    private func isBeingAccepted(_ id: PeerID) -> Bool {
        guard let pending = self.pendingInvitation(with: id, .incoming) else { return false }
        return self.records[id]?.isAcceptanceDue == true || self.invitations[pending]?.isDeciding == true
    }

    // MARK: By the other side

    /// Our invitation was accepted: messages may come in the session at once, and the invitation's end is told of once it is on disk here
    /// too.
    func invitationAccepted(_ id: InvitationID, session sessionID: SessionID) {
        guard let pending = self.invitations[id], !pending.isDeciding else { return }
        let peer = pending.invitation.peerID
        guard let record = self.records[peer] else { return }
        guard record.session == nil, record.agreement == nil else {
            // Another one begins, or has begun, and this invitation ends with it.
            if record.session?.id != sessionID { record.connection?.send([.sessionEnd(sessionID)]) }
            if let session = record.session { self.resolveInvitation(id, .accepted, session: session.id) }
            return
        }
        guard !self.records.values.contains(where: { $0.session?.id == sessionID }) else {
            self.logger.warning("a peer has named another peer's session as its own", metadata: ["peer": "\(peer)"])
            record.connection?.send([.sessionEnd(sessionID)])
            self.resolveInvitation(
                id, .failed, error: EarshotError(.protocolViolation, "\(record.name) has answered with a session that is another peer's"))
            return
        }
        let wasDecided = record.stored?.isDecided == true
        var stored = self.storedPeer(record)
        // Somebody here has asked for it.
        stored.isDecided = true
        self.invitations[id]?.isDeciding = true
        self.records[peer]?.stored = stored
        self.keepSpokenTLS(stored)
        self.adopt(StoredSession(id: sessionID, members: [self.id, peer], createdAt: self.now), with: peer, attached: true)
        self.keepPeer(peer, andSession: true) { result in
            self.invitations[id]?.isDeciding = false
            let isStanding = self.records[peer]?.session?.id == sessionID
            switch result {
            case .success where isStanding: self.resolveInvitation(id, .accepted, session: sessionID)
            case .success:
                self.resolveInvitation(id, .failed, error: EarshotError(.notConnected, "the session has ended already"))
            case .failure(let error):
                if isStanding {
                    if !wasDecided { self.records[peer]?.stored?.isDecided = false }
                    self.sessionEnded(peer, tellPeer: true)
                    self.keepPeer(peer, andSession: true)
                }
                self.resolveInvitation(id, .failed, error: error)
            }
        }
    }
}

extension InvitationDecider {
    fileprivate var isPerson: Bool {
        switch self {
        case .person: true
        case .policy: false
        }
    }

    fileprivate var isAlways: Bool {
        switch self {
        case .person(let always): always
        case .policy: false
        }
    }
}

extension StoredPeer {
    /// What accepting its invitation says of a peer.
    fileprivate mutating func note(_ agreement: Agreement) {
        if agreement.isDecided { self.isDecided = true }
        if agreement.isAlways { self.trustForGood() }
    }
}
