import Earshot
import Foundation

/// How two peers come into one session, and how they part.
extension PeerEngine {
    // MARK: Inviting

    /// Asks a peer to join a session, as the program or an introduction has it.
    func invite(_ peer: MCPeerID, to session: MCSession, _ token: SessionToken, _ envelope: Envelope, for time: Duration) async {
        guard session.token == token, peer.id != self.id else { return }
        if let pair = self.pairs[peer.id] {
            // Two ids meet in one session at a time.
            if pair.token != token { session.tell(token, peer, .notConnected) }
            return
        }
        guard let context = envelope.bytes, let node = try? self.started(), await self.hasRoom(for: peer.id, in: token) else {
            return session.tell(token, peer, .notConnected)
        }
        self.pairs[peer.id] = Pair(
            session: WeakReference(session), token: token, isWanted: envelope != .introduced, peer: peer, stage: .inviting(nil))
        self.asking[peer.id] = nil
        do throws(EarshotError) {
            let invitation = try await node.invite(peer.id.description, context: context, timeout: time)
            guard self.pairs[peer.id]?.token == token, case .inviting? = self.pairs[peer.id]?.stage else { return }
            self.pairs[peer.id]?.stage = .inviting(invitation.id)
            if invitation.state != .pending { await self.resolved(invitation) }
        } catch {
            await self.end(peer.id)
        }
    }

    /// Whether a peer fits into a session. All that have agreed count, on their way or connected. A peer that was invited and has not
    /// answered does not: it may have ended, and still be announced. Of the peers whose connection is gone, the one that was lost first
    /// gives way: it is often the same program that has started again.
    private func hasRoom(for id: PeerID, in token: SessionToken) async -> Bool {
        let members = self.pairs.filter { $0.key != id && $0.value.token == token && $0.value.hasAgreed }
        if members.count < kMCSessionMaximumNumberOfPeers - 1 { return true }
        let lost = members.compactMap { id, pair in pair.lostAt.map { (id: id, at: $0) } }
        guard let first = lost.min(by: { $0.at < $1.at }) else { return false }
        await self.end(first.id)
        return true
    }

    /// What has become of an invitation. That another one has led to a session is told by the session.
    func resolved(_ invitation: Invitation) async {
        let id = invitation.peerID
        guard invitation.direction == .outgoing else {
            if self.asking[id] == invitation.id { self.asking[id] = nil }
            if self.unintroduced[id] == invitation.id { self.unintroduced[id] = nil }
            return
        }
        guard let pair = self.pairs[id], pair.stage == .inviting(invitation.id) || pair.stage == .inviting(nil) else { return }
        switch invitation.state {
        case .pending: break
        case .accepted: await self.agreed(id)
        case .declined, .timedOut, .cancelled, .failed: await self.end(id)
        }
    }

    /// Both want the pair. More peers may have been invited than there are places: with the last place, the open invitations end.
    private func agreed(_ id: PeerID) async {
        guard let pair = self.pairs[id], let session = pair.session.value else { return }
        if !pair.hasAgreed {
            guard await self.hasRoom(for: id, in: pair.token) else { return await self.end(id) }
            self.pairs[id]?.stage = .agreed
        }
        guard pair.agreedAt == nil else { return }
        let now = ContinuousClock.now
        self.pairs[id]?.agreedAt = now
        session.tell(pair.token, pair.peer, .connecting)
        Task { [weak self] in
            try? await Task.sleep(for: Self.connectionTime)
            self?.post { engine in
                guard let pair = engine.pairs[id], pair.agreedAt == now, pair.stage == .agreed else { return }
                await engine.end(id)
            }
        }
        let members = self.pairs.filter { $0.value.token == pair.token }
        guard members.count(where: { $0.value.hasAgreed }) >= kMCSessionMaximumNumberOfPeers - 1 else { return }
        for (other, invited) in members where !invited.hasAgreed { await self.end(other) }
    }

    // MARK: Being invited

    func invited(_ invitation: Invitation) async {
        let id = invitation.peerID
        guard invitation.state == .pending, let envelope = Envelope(invitation.context) else { return await self.decline(invitation.id) }
        if let pair = self.pairs[id] {
            // Of two that invite each other, one accepts: else there would be two sessions of the same pair.
            if !pair.hasAgreed, self.id < id { return }
            return await self.accept(invitation.id, of: id)
        }
        switch envelope {
        case .introduced:
            if let introduced = self.introducedNow(id) {
                await self.accept(invitation.id, of: introduced.peer, into: introduced.session.value, introduced.token)
            } else {
                self.unintroduced[id] = invitation.id
            }
        case .invitation(let type, let context):
            let advertisers = self.advertisers.values.compactMap(\.value)
            guard let advertiser = advertisers.first(where: { $0.serviceType == type }) else { return await self.decline(invitation.id) }
            let peer = MCPeerID(id: id, displayName: invitation.peerName)
            self.asking[id] = invitation.id
            advertiser.ask(peer, context) { [weak self] isAccepted, session in
                let token = session?.token
                self?.post { engine in
                    guard isAccepted, let session, let token else { return await engine.decline(invitation.id) }
                    await engine.accept(invitation.id, of: peer, into: session, token)
                }
            }
        }
    }

    private func accept(_ invitation: InvitationID, of peer: MCPeerID, into session: MCSession?, _ token: SessionToken) async {
        self.asking[peer.id] = nil
        self.unintroduced[peer.id] = nil
        if let pair = self.pairs[peer.id] {
            return pair.token == token ? await self.accept(invitation, of: peer.id) : await self.decline(invitation)
        }
        guard let session, session.token == token, session.owner.engine === self, await self.hasRoom(for: peer.id, in: token) else {
            return await self.decline(invitation)
        }
        self.pairs[peer.id] = Pair(session: WeakReference(session), token: token, isWanted: true, peer: peer, stage: .agreed)
        await self.agreed(peer.id)
        await self.accept(invitation, of: peer.id)
    }

    private func accept(_ invitation: InvitationID, of id: PeerID) async {
        guard let pair = self.pairs[id], await self.hasRoom(for: id, in: pair.token) else {
            await self.decline(invitation)
            return await self.end(id)
        }
        do throws(EarshotError) {
            guard let node = try? self.started() else { return }
            _ = try await node.respond(to: invitation, .accept, always: false)
            await self.agreed(id)
        } catch {
            // Over already, or accepted with another one.
            if self.pairs[id]?.stage == .agreed,
                await (try? self.started())?.sessions().contains(where: { $0.members.contains { $0.peerID == id } }) != true
            {
                await self.end(id)
            }
        }
    }

    func decline(_ invitation: InvitationID) async {
        _ = try? await (try? self.started())?.respond(to: invitation, .reject, always: false)
    }

    // MARK: Connected and lost

    func changed(_ session: Session, isEnded: Bool) async {
        for member in session.members {
            guard let pair = self.pairs[member.peerID] else {
                // Of a pair that is over here.
                if !isEnded { try? await (try? self.started())?.leave(session.id) }
                continue
            }
            if isEnded {
                if pair.sessionID == session.id || pair.sessionID == nil && pair.stage == .agreed { await self.end(member.peerID) }
                continue
            }
            self.pairs[member.peerID]?.sessionID = session.id
            if member.state == .connected { await self.attached(member) } else { self.lost(member.peerID) }
        }
    }

    private func attached(_ member: Session.Member) async {
        let id = member.peerID
        self.pairs[id]?.lostAt = nil
        guard let pair = self.pairs[id], pair.stage != .checking, pair.stage != .connected, let session = pair.session.value else { return }
        guard session.allows(member.protection) else { return await self.end(id) }
        self.pairs[id]?.peer = MCPeerID(id: id, displayName: member.name)
        await self.agreed(id)
        guard self.pairs[id] != nil else { return }
        self.pairs[id]?.stage = .checking
        let certificate = (try? await (try? self.started())?.certificate(of: id.description)).flatMap { $0 }
        let token = pair.token
        session.check(token, MCPeerID(id: id, displayName: member.name), certificate.map { Data($0) }) { [weak self] isGood in
            self?.post { engine in
                guard let pair = engine.pairs[id], pair.token == token, pair.stage == .checking else { return }
                await isGood ? engine.connected(id) : engine.end(id)
            }
        }
    }

    private func connected(_ id: PeerID) async {
        self.pairs[id]?.stage = .connected
        guard let pair = self.pairs[id], let session = pair.session.value else { return }
        session.tell(pair.token, pair.peer, .connected)
        self.introduced[id] = nil
        await self.reachNoMore(id)
        let held = pair.held
        self.pairs[id]?.held = []
        for work in held { await work(self) }
        await self.introduce(to: id)
    }

    /// Its connection is gone; it may come back.
    private func lost(_ id: PeerID) {
        guard let pair = self.pairs[id], pair.stage == .connected || pair.stage == .checking, pair.lostAt == nil else { return }
        let now = ContinuousClock.now
        self.pairs[id]?.lostAt = now
        Task { [weak self] in
            try? await Task.sleep(for: Self.lossGrace)
            self?.post { engine in
                guard let pair = engine.pairs[id], pair.lostAt == now else { return }
                await engine.end(id)
            }
        }
    }

    /// The pair is over: the program hears of it once, and the node lets go of it.
    func end(_ id: PeerID) async {
        guard let pair = self.pairs[id] else { return }
        // What has begun ends before the peer goes, for a program that forgets all of a peer that is gone.
        self.endTransfers(of: pair)
        if pair.isWanted || pair.agreedAt != nil { pair.session.value?.tell(pair.token, pair.peer, .notConnected) }
        await self.leave(id, pair)
    }

    /// The same without a word to the program.
    func leave(_ id: PeerID, _ pair: Pair) async {
        self.pairs[id] = nil
        self.introduced[id] = nil
        self.endTransfers(of: pair)
        guard let node = try? self.started() else { return }
        if case .inviting(let invitation?) = pair.stage { _ = try? await node.withdraw(invitation) }
        for session in await node.sessions() where session.members.contains(where: { $0.peerID == id }) {
            try? await node.leave(session.id)
        }
        await self.reachNoMore(id)
    }

    /// The program leaves a session, or has let go of it.
    func leaveAll(of token: SessionToken) async {
        for (id, pair) in self.pairs where pair.token == token { await self.leave(id, pair) }
        self.introduced = self.introduced.filter { $0.value.token != token }
    }

    func leave(_ peer: MCPeerID, of token: SessionToken) async {
        guard let pair = self.pairs[peer.id], pair.token == token else { return }
        await self.end(peer.id)
    }

    // MARK: Introductions

    /// Tells a new member where we are, and who else is here.
    private func introduce(to newcomer: PeerID) async {
        guard let token = self.pairs[newcomer]?.token, let node = try? self.started() else { return }
        let own = Introduction.Member(id: self.id, name: self.peer.displayName, addresses: await node.status().addresses)
        let others = self.pairs.values.filter { $0.token == token && $0.stage == .connected && $0.peer.id != newcomer }
        self.send(Introduction(members: [own] + others.map(Introduction.Member.init)), to: newcomer)
    }

    /// What a member of a session has said of itself, which the others are to know, and of others in it.
    func introduced(_ introduction: Introduction, by id: PeerID) async {
        guard let pair = self.pairs[id], let session = pair.session.value else { return }
        for member in introduction.members.prefix(kMCSessionMaximumNumberOfPeers) {
            let addresses = Array(member.addresses.prefix(Introduction.addressLimit))
            guard member.id != id else {
                self.pairs[id]?.addresses = addresses
                continue
            }
            let name = (try? DisplayName(member.name))?.description ?? member.id.description
            await self.bringTogether(MCPeerID(id: member.id, displayName: name), at: addresses, in: session, pair.token)
        }
        // Once: it was new when it said where it is.
        guard pair.addresses == nil, let now = self.pairs[id], now.addresses != nil else { return }
        for (other, known) in self.pairs where other != id && known.token == pair.token && known.stage == .connected {
            self.send(Introduction(members: [Introduction.Member(now)]), to: other)
        }
    }

    /// Connects to a peer without asking the program, which the same is told on the other side.
    func bringTogether(_ peer: MCPeerID, at addresses: [String], in session: MCSession, _ token: SessionToken) async {
        guard peer.id != self.id, session.token == token, self.pairs[peer.id] == nil, await self.hasRoom(for: peer.id, in: token) else {
            return
        }
        let isKnown = self.introducedNow(peer.id) != nil
        self.introduced[peer.id] = Introduced(
            session: WeakReference(session), token: token, peer: peer, until: .now + Self.introductionTime)
        if let waiting = self.unintroduced[peer.id] ?? self.asking[peer.id] {
            return await self.accept(waiting, of: peer, into: session, token)
        }
        guard !isKnown else { return }
        await self.reach(peer.id, at: addresses)
        guard peer.id < self.id else { return await self.call(peer, session, token) }
        Task { [weak self] in
            try? await Task.sleep(for: Self.secondCall)
            self?.post { engine in
                guard let introduced = engine.introducedNow(peer.id), let session = introduced.session.value else { return }
                await engine.call(peer, session, introduced.token)
            }
        }
    }

    /// Invites a peer that was introduced, as soon as the node knows where it may be; it may call first.
    func call(_ peer: MCPeerID, _ session: MCSession, _ token: SessionToken) async {
        guard self.pairs[peer.id] == nil, await (try? self.started().peer(peer.id.description)) != nil else { return }
        await self.invite(peer, to: session, token, .introduced, for: Self.introductionTime)
    }

    func introducedNow(_ id: PeerID) -> Introduced? {
        guard let introduced = self.introduced[id], introduced.until > .now, introduced.session.value?.token == introduced.token else {
            self.introduced[id] = nil
            return nil
        }
        return introduced
    }
}
