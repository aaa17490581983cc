import Earshot
import Foundation

/// Performs the effects of ``Pairing``.
extension PeerEngine {
    /// Runs a change of the pairing, and performs all resulting effects.
    func decide(_ change: (inout Pairing) -> Void) async {
        self.feed(change)
        while let effect = self.pairing.nextEffect() { await self.carryOut(effect) }
    }

    private func feed(_ change: (inout Pairing) -> Void) {
        self.pairing.now = self.began.duration(to: .now)
        change(&self.pairing)
    }

    private func carryOut(_ effect: Pairing.Effect) async {
        switch effect {
        case .invite(let id, let envelope, let time): await self.invite(id, envelope, for: time)
        case .withdraw(let invitation): _ = try? await (try? self.started())?.withdraw(invitation)
        case .accept(let invitation, let id): await self.accept(invitation, of: id)
        case .decline(let invitation): _ = try? await (try? self.started())?.respond(to: invitation, .reject, always: false)
        case .ask(let invitation, let peer, let type, let context): await self.ask(invitation, peer, type, context)
        case .leave(let id): await self.leaveSessions(with: id)
        case .check(let id, let token, let peer): await self.check(id, token, peer)
        case .tell(let token, let peer, let state): self.sessions[token]?.value?.tell(token, peer, state)
        case .joined(let id):
            for work in self.held.removeValue(forKey: id) ?? [] { await work(self) }
        case .parted(let pair):
            self.held[pair.peer.id] = nil
            self.parts[pair.peer.id] = nil
            self.endTransfers(of: pair)
        case .introduce(let members, let id, let isFirst): await self.introduce(members, to: id, isFirst: isFirst)
        case .reach(let id, let addresses): await self.reach(id, at: addresses ?? [])
        case .look(let id): if await self.isListed(id) { self.feed { $0.listed(id) } }
        case .wake(let time):
            Task { [weak self] in
                try? await Task.sleep(for: time)
                self?.post { await $0.decide { $0.timePassed() } }
            }
        }
    }

    func isListed(_ id: PeerID) async -> Bool { await (try? self.node?.peer(id.description)) != nil }

    private func invite(_ id: PeerID, _ envelope: Envelope, for time: Duration) async {
        guard let node = try? self.started(), let context = envelope.bytes,
            let invitation = try? await node.invite(id, context: context, timeout: time)
        else { return self.feed { $0.invitationFailed(id) } }
        self.feed { $0.invitationBegan(id, invitation) }
    }

    private func accept(_ invitation: InvitationID, of id: PeerID) async {
        let node = try? self.started()
        if let node, (try? await node.respond(to: invitation, .accept)) != nil { return self.feed { $0.agreed(id) } }
        let hasSession = await node?.sessions().contains { $0.members.contains { $0.peerID == id } } == true
        self.feed { $0.acceptanceFailed(id, hasSession: hasSession) }
    }

    private func ask(_ invitation: InvitationID, _ peer: MCPeerID, _ type: String, _ context: Data?) async {
        guard let advertiser = self.advertisers.values.compactMap(\.value).first(where: { $0.type == type }) else {
            return self.feed { $0.answered(invitation, of: peer, into: nil) }
        }
        advertiser.ask(peer, context) { [weak self] isAccepted, session in
            let token = isAccepted ? session?.token : nil
            self?.post { await $0.decide { $0.answered(invitation, of: peer, into: token) } }
        }
    }

    private func leaveSessions(with id: PeerID) async {
        guard let node = try? self.started() else { return }
        for session in await node.sessions() where session.members.contains(where: { $0.peerID == id }) {
            if (try? await node.leave(session.id)) != nil { self.feed { $0.left(session.id) } }
        }
    }

    private func check(_ id: PeerID, _ token: SessionToken, _ peer: MCPeerID) async {
        let certificate = (try? await (try? self.started())?.certificate(of: id.description)).flatMap { $0 }
        self.sessions[token]?.value?.check(token, peer, certificate.map { Data($0) }) { [weak self] isGood in
            self?.post { await $0.decide { $0.checked(id, token, isGood: isGood) } }
        }
    }

    private func introduce(_ members: [Introduction.Member], to id: PeerID, isFirst: Bool) async {
        var members = members
        if isFirst, let status = await (try? self.started())?.status() {
            members.insert(Introduction.Member(id: self.id, name: self.peer.displayName, addresses: status.addresses), at: 0)
        }
        self.send(Introduction(members: members), to: id)
    }

    // MARK: Events of the node

    func invited(_ invitation: Invitation) async {
        guard invitation.state == .pending else { return }
        await self.decide { pairing in
            guard let envelope = Envelope(invitation.context) else { return pairing.emit(.decline(invitation.id)) }
            let peer = MCPeerID(id: invitation.peerID, displayName: invitation.peerName)
            pairing.invited(Pairing.Asked(invitation: invitation.id, peer: peer, envelope: envelope))
        }
    }

    func changed(_ session: Session, isEnded: Bool) async {
        for member in session.members {
            let id = member.peerID
            let isAllowed = self.pairing.pairs[id].flatMap { self.sessions[$0.token]?.value }?.allows(member.protection) ?? false
            await self.decide { pairing in
                if isEnded {
                    pairing.ended(session.id, id)
                } else if member.state == .connected {
                    pairing.attached(session.id, MCPeerID(id: id, displayName: member.name), isAllowed: isAllowed)
                } else {
                    pairing.detached(session.id, id)
                }
            }
        }
    }

    /// Returns the pair of a peer and its session, if both exist.
    func member(_ id: PeerID) -> (pair: Pair, session: MCSession)? {
        guard let pair = self.pairing.pairs[id], let session = self.sessions[pair.token]?.value else { return nil }
        return (pair, session)
    }
}
