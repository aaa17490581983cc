import Earshot
import Foundation

/// The joining and leaving of a session's peers, as a value without I/O. Inputs are calls, and all actions are returned as effects, in
/// order. A simulation tests it.
struct Pairing {
    let id: PeerID
    /// The time since the engine started.
    var now: Duration = .zero
    private(set) var pairs: [PeerID: Pair] = [:]
    /// Sessions that exist.
    private var tokens: Set<SessionToken> = []
    private(set) var questions = Questions()
    private var introductions: [PeerID: Introduced] = [:]
    /// Sessions that the node has left. The node may have reported them before, and will report their ends.
    private var leaving: Set<SessionID> = []
    private var effects: [Effect] = []

    init(id: PeerID) { self.id = id }

    /// Removes and returns the next effect.
    mutating func nextEffect() -> Effect? { self.effects.isEmpty ? nil : self.effects.removeFirst() }

    /// The pairs in a fixed order, so that the same inputs give the same effects.
    private var inOrder: [(key: PeerID, value: Pair)] { self.pairs.sorted { $0.key < $1.key } }

    mutating func emit(_ effect: Effect) { self.effects.append(effect) }

    // MARK: The program's sessions

    mutating func open(_ token: SessionToken) { self.tokens.insert(token) }

    /// Handles that the program leaves or releases a session.
    mutating func close(_ token: SessionToken) {
        self.tokens.remove(token)
        for (id, pair) in self.inOrder where pair.token == token { self.leave(id) }
        for (id, introduced) in self.introductions where introduced.token == token { self.introductions[id] = nil }
    }

    /// Handles that the program leaves a peer.
    mutating func leave(_ id: PeerID, of token: SessionToken) {
        if self.introductions[id]?.token == token { self.introductions[id] = nil }
        if self.pairs[id]?.token == token { self.end(id) }
    }

    /// Ends all pairs without telling the program.
    mutating func endAll() {
        for (id, _) in self.inOrder { self.leave(id) }
    }

    // MARK: Inviting

    /// Invites a peer to a session, for the program or because of an introduction.
    mutating func invite(_ peer: MCPeerID, to token: SessionToken, _ envelope: Envelope, for time: Duration, again: Bool = false) {
        guard self.tokens.contains(token), peer.id != self.id else { return }
        if let pair = self.pairs[peer.id] {
            // Two peers can be in only one common session.
            guard pair.token == token else { return self.emit(.tell(token, peer, .notConnected)) }
            if pair.lostAt != nil {
                self.end(peer.id)
            } else if pair.hasAgreed {
                self.pairs[peer.id]?.next = (envelope, self.now + time)
                return
            } else {
                self.pairs[peer.id]?.isWanted = true
                guard pair.isIntroduction, envelope != .introduced else { return }
                self.pairs[peer.id]?.next = (envelope, self.now + time)
                return self.emit(.wake(after: Self.introductionGrace))
            }
        }
        // The program already knows how an invitation that is made again has ended.
        let isWanted = envelope == .introduced ? self.introductions[peer.id]?.isOwed == true : !again
        guard envelope.bytes != nil, self.makeRoom(for: peer.id, in: token) else {
            if isWanted { self.emit(.tell(token, peer, .notConnected)) }
            return
        }
        self.pairs[peer.id] = Pair(
            token: token, began: self.now, isWanted: isWanted, isIntroduction: envelope == .introduced, peer: peer, stage: .inviting(nil))
        self.questions.asking[peer.id] = nil
        self.emit(.invite(peer.id, envelope, for: time))
    }

    /// Handles that the node has made an invitation, or has accepted a pending one from the peer.
    mutating func invitationBegan(_ id: PeerID, _ invitation: Invitation) {
        guard case .inviting? = self.pairs[id]?.stage else { return }
        guard invitation.direction == .outgoing else { return self.agreed(id) }
        self.pairs[id]?.stage = .inviting(invitation.id)
        if invitation.state != .pending { self.resolved(invitation.id, by: id, invitation.direction, invitation.state) }
    }

    /// Handles a failed invitation from this side. If members of the session have introduced the peer meanwhile, the introduction applies.
    mutating func invitationFailed(_ id: PeerID) {
        guard let pair = self.pairs[id], !pair.hasAgreed else { return }
        let asked = self.questions.crossed.removeValue(forKey: id)
        if let next = pair.next, next.until > self.now {
            self.leave(id)
            self.introductions[id]?.hasCalled = false
            self.invite(pair.peer, to: pair.token, next.envelope, for: next.until - self.now)
        } else if let introduced = self.introducedNow(id), introduced.token == pair.token, !introduced.hasCalled {
            self.leave(id)
            self.introductions[id]?.isOwed = introduced.isOwed || pair.isWanted
            self.approach(id)
        } else {
            self.introductions[id] = nil
            self.end(id)
        }
        if let asked { self.invited(asked) }
    }

    /// Handles the final state of an invitation.
    mutating func resolved(_ invitation: InvitationID, by id: PeerID, _ direction: Direction, _ state: Invitation.State) {
        if direction == .incoming, state != .pending { self.questions.remove(invitation, of: id) }
        guard direction == .outgoing, let pair = self.pairs[id], pair.stage == .inviting(invitation) || pair.stage == .inviting(nil) else {
            return
        }
        switch state {
        case .pending: break
        case .accepted: self.agreed(id)
        case .declined, .timedOut, .cancelled, .failed: self.invitationFailed(id)
        }
    }

    /// Returns whether a peer fits into a session, for which a lost peer may be removed. All peers that have agreed count, connected or
    /// not. Invited peers without an answer do not count: they may have ended, and still be announced. The peer that was lost first is
    /// removed, because it is often the same program before a restart.
    private mutating func makeRoom(for id: PeerID, in token: SessionToken) -> Bool {
        let members = self.pairs.filter { $0.key != id && $0.value.token == token && $0.value.hasAgreed }
        if members.count < kMCSessionMaximumNumberOfPeers - 1 { return true }
        let lost = members.compactMap { id, pair in pair.lostAt.map { (id: id, at: $0) } }
        guard let first = lost.min(by: { $0.at < $1.at }) else { return false }
        self.end(first.id)
        return true
    }

    /// Handles that both sides want the pair. When the last place of the session is taken, the open invitations end.
    mutating func agreed(_ id: PeerID) {
        guard let pair = self.pairs[id] else { return }
        if !pair.hasAgreed {
            guard self.makeRoom(for: id, in: pair.token) else { return self.end(id) }
            self.pairs[id]?.stage = .agreed
        }
        self.questions.crossed[id] = nil
        guard pair.agreedAt == nil else { return }
        self.pairs[id]?.agreedAt = self.now
        self.emit(.tell(pair.token, pair.peer, .connecting))
        self.emit(.wake(after: Self.connectionTime))
        let members = self.inOrder.filter { $0.value.token == pair.token }
        guard members.count(where: { $0.value.hasAgreed }) >= kMCSessionMaximumNumberOfPeers - 1 else { return }
        for (other, invited) in members where !invited.hasAgreed { self.end(other) }
    }

    // MARK: Invitations from peers

    /// Handles an invitation from a peer.
    mutating func invited(_ asked: Asked) {
        let id = asked.peer.id
        if let pair = self.pairs[id] {
            if pair.lostAt == nil {
                // If two peers invite each other, only one accepts. Otherwise the pair would have two sessions.
                guard pair.hasAgreed || id < self.id else { return self.questions.crossed[id] = asked }
                return self.accept(asked.invitation, of: id)
            }
            // A restarted program's invitation replaces the lost pair.
            self.end(id)
        }
        if let introduced = self.introducedNow(id) { return self.accept(asked.invitation, of: introduced.peer, into: introduced.token) }
        switch asked.envelope {
        case .introduced: self.questions.unintroduced[id] = asked.invitation
        case .invitation(let type, let context):
            self.questions.asking[id] = asked.invitation
            self.emit(.ask(asked.invitation, asked.peer, type: type, context))
        }
    }

    /// Handles the program's answer to an invitation. Without a session, it is declined. An answer has no effect if the invitation is over.
    mutating func answered(_ invitation: InvitationID, of peer: MCPeerID, into token: SessionToken?) {
        guard self.questions.asking[peer.id] == invitation else { return }
        self.questions.asking[peer.id] = nil
        guard let token else { return self.emit(.decline(invitation)) }
        self.accept(invitation, of: peer, into: token)
    }

    private mutating func accept(_ invitation: InvitationID, of peer: MCPeerID, into token: SessionToken) {
        self.questions.asking[peer.id] = nil
        self.questions.unintroduced[peer.id] = nil
        if let pair = self.pairs[peer.id] {
            return pair.token == token ? self.accept(invitation, of: peer.id) : self.emit(.decline(invitation))
        }
        guard self.tokens.contains(token), self.makeRoom(for: peer.id, in: token) else { return self.emit(.decline(invitation)) }
        self.pairs[peer.id] = Pair(
            token: token, began: self.now, isWanted: true, isIntroduction: false, peer: peer, stage: .agreed)
        self.agreed(peer.id)
        self.emit(.accept(invitation, of: peer.id))
    }

    private mutating func accept(_ invitation: InvitationID, of id: PeerID) {
        guard let pair = self.pairs[id], self.makeRoom(for: id, in: pair.token) else {
            self.emit(.decline(invitation))
            return self.end(id)
        }
        self.emit(.accept(invitation, of: id))
    }

    /// Handles that the invitation was already over, or was accepted with another one.
    mutating func acceptanceFailed(_ id: PeerID, hasSession: Bool) {
        if self.pairs[id]?.stage == .agreed, !hasSession { self.end(id) }
    }

    // MARK: Connections

    /// Handles that the node has left a session.
    mutating func left(_ session: SessionID) { self.leaving.insert(session) }

    /// Handles that the connection of a session is established.
    mutating func attached(_ session: SessionID, _ peer: MCPeerID, isAllowed: Bool) {
        let id = peer.id
        guard !self.leaving.contains(session) else { return }
        guard let pair = self.pairs[id] else { return self.emit(.leave(id)) }
        self.pairs[id]?.sessionID = session
        self.pairs[id]?.lostAt = nil
        switch pair.stage {
        case .checking, .approved, .connected: return
        case .inviting, .agreed: break
        }
        guard isAllowed else { return self.end(id) }
        self.pairs[id]?.peer = peer
        self.agreed(id)
        guard self.pairs[id] != nil else { return }
        self.pairs[id]?.stage = .checking
        self.emit(.check(id, pair.token, peer))
    }

    /// Handles the program's decision about a certificate.
    mutating func checked(_ id: PeerID, _ token: SessionToken, isGood: Bool) {
        guard let pair = self.pairs[id], pair.token == token, pair.stage == .checking else { return }
        guard isGood else { return self.end(id) }
        self.pairs[id]?.stage = .approved
        let others = self.inOrder.map(\.value).filter { $0.token == token && $0.stage == .connected }
        self.emit(.introduce(others.map(Introduction.Member.init), to: id, isFirst: true))
        self.connectIfApproved(id)
    }

    /// Reports the peer as connected if both programs have accepted the other's certificate. An introduction shows that the peer's has.
    private mutating func connectIfApproved(_ id: PeerID) {
        guard let pair = self.pairs[id], pair.stage == .approved, let introduction = pair.introduction else { return }
        self.pairs[id]?.stage = .connected
        self.introductions[id] = nil
        self.emit(.tell(pair.token, pair.peer, .connected))
        self.emit(.reach(id, nil))
        self.emit(.joined(id))
        // Introduces members that joined while the peer's program checked the certificate.
        for (other, known) in self.inOrder where other != id && known.token == pair.token && known.stage == .connected {
            self.emit(.introduce([Introduction.Member(known)], to: id, isFirst: false))
        }
        self.introduced(introduction, by: id)
    }

    /// Handles a lost connection, which may be restored.
    mutating func detached(_ session: SessionID, _ id: PeerID) {
        guard !self.leaving.contains(session) else { return }
        guard let pair = self.pairs[id] else { return self.emit(.leave(id)) }
        self.pairs[id]?.sessionID = session
        switch pair.stage {
        case .checking, .approved, .connected: break
        case .inviting, .agreed: return
        }
        guard pair.lostAt == nil else { return }
        self.pairs[id]?.lostAt = self.now
        self.emit(.wake(after: Self.lossGrace))
    }

    /// Handles the end of a session, by the peer or by the node.
    mutating func ended(_ session: SessionID, _ id: PeerID) {
        guard self.leaving.remove(session) == nil, let pair = self.pairs[id],
            pair.sessionID == session || pair.sessionID == nil && pair.stage == .agreed
        else { return }
        self.isOver(id)
    }

    /// Ends a pair that apparently neither program has left. If the peer's program returns, the two connect again.
    private mutating func isOver(_ id: PeerID) {
        guard let pair = self.pairs[id] else { return }
        self.end(id)
        guard pair.lostAt != nil else { return }
        if let next = pair.next, next.until > self.now {
            self.invite(pair.peer, to: pair.token, next.envelope, for: next.until - self.now, again: true)
        } else if self.introducedNow(id) != nil {
            self.approach(id)
        }
    }

    /// Ends the pair. The program learns of it once, and the node leaves its session.
    mutating func end(_ id: PeerID) {
        guard let pair = self.pairs[id] else { return }
        // Transfers end before the peer is reported gone, because a program may then discard its data about the peer.
        self.emit(.parted(pair))
        if pair.isWanted || pair.agreedAt != nil { self.emit(.tell(pair.token, pair.peer, .notConnected)) }
        self.leave(id)
    }

    /// Ends the pair without telling the program.
    private mutating func leave(_ id: PeerID) {
        guard let pair = self.pairs.removeValue(forKey: id) else { return }
        self.emit(.parted(pair))
        if case .inviting(let invitation?) = pair.stage { self.emit(.withdraw(invitation)) }
        self.emit(.leave(id))
        self.emit(.reach(id, nil))
    }

    // MARK: Introductions

    /// Handles a member's introduction of itself and others.
    mutating func introduced(_ introduction: Introduction, by id: PeerID) {
        guard let pair = self.pairs[id] else { return }
        guard pair.stage == .connected else {
            if pair.introduction == nil { self.pairs[id]?.introduction = introduction }
            return self.connectIfApproved(id)
        }
        for member in introduction.members.prefix(kMCSessionMaximumNumberOfPeers) {
            let addresses = Array(member.addresses.prefix(Introduction.addressLimit))
            guard member.id != id else {
                self.pairs[id]?.addresses = addresses
                continue
            }
            let name = (try? DisplayName(member.name))?.description ?? member.id.description
            self.bringTogether(MCPeerID(id: member.id, displayName: name), at: addresses, in: pair.token)
        }
        // Only once: the member was new when it first sent its addresses.
        guard pair.addresses == nil, let now = self.pairs[id], now.addresses != nil else { return }
        for (other, known) in self.inOrder where other != id && known.token == pair.token && known.stage == .connected {
            self.emit(.introduce([Introduction.Member(now)], to: other, isFirst: false))
        }
    }

    /// Connects to a peer without asking the program. The other side is told to do the same.
    mutating func bringTogether(_ peer: MCPeerID, at addresses: [String], in token: SessionToken) {
        guard peer.id != self.id, self.tokens.contains(token) else { return }
        let pair = self.pairs[peer.id]
        // The introduction applies when an invitation from this side has failed, or when a lost pair is over.
        guard pair == nil || pair?.token == token && (pair?.hasAgreed == false || pair?.lostAt != nil) else { return }
        let isKnown = self.introducedNow(peer.id) != nil
        if !isKnown {
            self.introductions[peer.id] = Introduced(
                token: token, peer: peer, until: self.now + Self.introductionTime,
                callAt: self.now + (self.id < peer.id ? .zero : Self.secondCall), isOwed: false)
            self.emit(.wake(after: Self.introductionTime))
        }
        self.emit(.reach(peer.id, addresses))
        guard pair == nil else {
            // A lost peer would not be introduced again.
            if pair?.lostAt != nil { self.isOver(peer.id) }
            return
        }
        guard self.makeRoom(for: peer.id, in: token) else { return self.introductions[peer.id] = nil }
        if let waiting = self.questions.waiting(of: peer.id) { return self.accept(waiting, of: peer, into: token) }
        if !isKnown { self.approach(peer.id) }
    }

    /// Invites an introduced peer, immediately or after the other side's turn.
    private mutating func approach(_ id: PeerID) {
        guard let introduced = self.introductions[id] else { return }
        if let waiting = self.questions.unintroduced[id] { return self.accept(waiting, of: introduced.peer, into: introduced.token) }
        if introduced.callAt <= self.now { self.emit(.look(id)) } else { self.emit(.wake(after: introduced.callAt - self.now)) }
    }

    /// Handles that the node knows addresses of a peer.
    mutating func listed(_ id: PeerID) {
        guard self.pairs[id] == nil, let introduced = self.introducedNow(id), introduced.callAt <= self.now, !introduced.hasCalled else {
            return
        }
        self.introductions[id]?.hasCalled = true
        self.invite(introduced.peer, to: introduced.token, .introduced, for: Self.introductionTime)
    }

    private func introducedNow(_ id: PeerID) -> Introduced? {
        self.introductions[id].flatMap { $0.until > self.now && self.tokens.contains($0.token) ? $0 : nil }
    }

    // MARK: Time

    mutating func timePassed() {
        for (id, pair) in self.inOrder {
            if let lost = pair.lostAt, lost + Self.lossGrace <= self.now { self.isOver(id) }
            // A program that has just started may not know the introduction. The program's own invitation is made instead.
            if case .inviting(let invitation?) = pair.stage, pair.next != nil, pair.began + Self.introductionGrace <= self.now {
                self.emit(.withdraw(invitation))
            }
            if pair.stage == .agreed, let agreed = pair.agreedAt, agreed + Self.connectionTime <= self.now { self.end(id) }
        }
        for (id, introduced) in self.introductions.sorted(by: { $0.key < $1.key }) {
            if introduced.until <= self.now {
                self.introductions[id] = nil
                // The program's own invitation has already ended.
                if introduced.isOwed, self.pairs[id] == nil { self.emit(.tell(introduced.token, introduced.peer, .notConnected)) }
            } else if introduced.callAt <= self.now, !introduced.hasCalled {
                self.emit(.look(id))
            }
        }
    }
}
