import EarshotCore
import EarshotWire
import OrderedCollections

/// Invariants of every effect, at the time when it is carried out.
extension World {
    mutating func check(_ effect: Effect, of machine: Int, _ input: Input) {
        switch effect {
        case .send(let link, let frames):
            guard let peer = self.checkLink(link, of: machine, effect, input) else { return }
            for frame in frames { self.check(frame, on: link, to: peer, of: machine) }
        case .close(let link, _): _ = self.checkLink(link, of: machine, effect, input)
        case .answer(let call, let answer): self.check(answer, to: call, of: machine)
        case .hold(let hold, let link, _):
            _ = self.checkLink(link, of: machine, effect, input)
            if self.machines[machine].holds.contains(hold) { self.fail(.holds, "\(machine) charges \(hold) twice") }
        case .release(let hold):
            if !self.machines[machine].holds.contains(hold) { self.fail(.holds, "\(machine) gives \(hold) back, which is not charged") }
        case .dial(let peer, _):
            if self.isBlocked(peer, by: machine) { self.fail(.blocked, "\(machine) dials a blocked peer") }
        case .publish(let event): self.check(event, of: machine, input)
        case .dataPath(let transfer, .use):
            if self.machines[machine].data.attached == nil {
                self.fail(.dataPaths, "\(machine) uses a data connection for \(transfer) that is not there")
            }
        case .deliver(let link, _): _ = self.checkLink(link, of: machine, effect, input)
        case .sendUnreliable(let link, _):
            guard let peer = self.checkLink(link, of: machine, effect, input) else { return }
            if self.isBlocked(peer, by: machine) { self.fail(.blocked, "\(machine) sends a blocked peer messages") }
        case .stream(let stream, let command): self.check(command, for: stream, of: machine, effect, input)
        case .transfer(let resource, let command): self.check(command, for: resource, of: machine, effect, input)
        case .keep(_, let changes): self.checkPatience(changes, of: machine)
        case .flushSoon, .loadBodies, .loadReceipts, .dialConfigured, .commit, .pin, .log, .dataPath, .keepTransfers, .placeLeft,
            .sign, .check:
            break
        case .device(let effect): self.check(effect, of: machine)
        }
    }

    /// Checks that a connection exists. It exists once the core has received its proof. The input that reports its end is the last whose
    /// effects may use it, because work that is due by then comes first.
    mutating func checkLink(_ link: LinkID, of machine: Int, _ effect: Effect, _ input: Input) -> PeerID? {
        if let peer = self.machines[machine].links[link] { return peer }
        self.fail(.links, "\(machine) has \(effect), and there is no such connection, after \(input)")
        return nil
    }

    /// Whether the peer was blocked before this input, and still is.
    private func isBlocked(_ peer: PeerID, by machine: Int) -> Bool {
        self.machines[machine].blocked.contains(peer) && self.trust(in: peer, at: machine) == .blocked
    }

    // MARK: Frames to peers

    private mutating func check(_ frame: Frame, on link: LinkID, to peer: PeerID, of machine: Int) {
        self.overhear(frame)
        if self.isBlocked(peer, by: machine) { self.checkMuted(frame, of: machine) }
        self.checkMessage(frame, to: peer, of: machine)
        self.checkGroupFrame(frame, to: peer, of: machine)
        switch frame {
        case .inviteAnswer(let answer):
            guard case .accepted(let session) = answer.decision else { break }
            self.checkTold(session, to: peer, of: machine, "accepted")
        case .sessionResume(let session): self.checkTold(session, to: peer, of: machine, "resumed")
        case .resource(.from(let from)): if from.offset > 0 { self.counts[.resourcesResumed] += 1 }
        default: break
        }
    }

    private mutating func checkMuted(_ frame: Frame, of machine: Int) {
        self.counts[.muted] += 1
        switch frame {
        case .inviteAnswer(let answer):
            switch answer.decision {
            case .declined:
                // A user takes at least this long.
                guard let asked = self.machines[machine].asked.removeValue(forKey: answer.id) else { return }
                if self.clock.now - asked < .milliseconds(EarshotLimits.blockedAnswerMilliseconds.lowerBound) {
                    self.fail(.blocked, "\(machine) declines a blocked peer's invitation at once")
                }
            case .busy: break
            case .accepted: self.fail(.blocked, "\(machine) accepts a blocked peer's invitation")
            }
        case .group(.inviteAnswer(let answer)):
            switch answer.decision {
            case .declined:
                guard let asked = self.machines[machine].asked.removeValue(forKey: answer.id) else { return }
                if self.clock.now - asked < .milliseconds(EarshotLimits.blockedAnswerMilliseconds.lowerBound) {
                    self.fail(.blocked, "\(machine) declines a blocked peer's invitation to a group at once")
                }
            case .busy: break
            case .accepted: self.fail(.blocked, "\(machine) accepts a blocked peer's invitation to a group")
            }
        case .sessionEnd, .messageReceipts, .resource(.refuse), .stream(.refuse): break
        default: self.fail(.blocked, "\(machine) sends a blocked peer \(frame)")
        }
    }

    /// Checks that a session that this side names is on disk, or was named by the peer. A session that has ended on disk may still be named
    /// until the machine has been told of that, because the disk might as well have refused the end.
    private mutating func checkTold(_ session: SessionID, to peer: PeerID, of machine: Int, _ words: String) {
        if self.machines[machine].disk.session(with: peer)?.id == session { return }
        if self.machines[machine].disk.ended.values.contains(where: { $0.contains(session) }) { return }
        if self.machines[machine].named[peer]?.contains(session) == true { return }
        self.fail(.committed, "\(machine) tells \(peer) that \(session) is \(words), which is not on disk")
    }

    /// Notes the facts that a received frame implies about its sender.
    mutating func note(_ frame: Frame, from peer: PeerID, at machine: Int) {
        self.overhear(frame)
        switch frame {
        case .inviteAnswer(let answer):
            guard case .accepted(let session) = answer.decision else { return }
            self.machines[machine].named[peer, default: []].append(session)
        case .sessionResume(let session): self.machines[machine].named[peer, default: []].append(session)
        default: break
        }
    }

    /// Records ids that were ever sent, which hostile peers may learn.
    private mutating func overhear(_ frame: Frame) {
        switch frame {
        case .invite(let invite): self.invitationIDs.append(invite.id)
        case .sessionResume(let session), .sessionEnd(let session): self.sessionIDs.append(session)
        case .stream(.open(let open)): self.streamIDs.append(open.id)
        case .resource(.offer(let offer)): self.resourceIDs.append(offer.id)
        default: return
        }
        if self.invitationIDs.count > 16 { self.invitationIDs.removeFirst() }
        if self.sessionIDs.count > 16 { self.sessionIDs.removeFirst() }
        if self.streamIDs.count > 16 { self.streamIDs.removeFirst() }
        if self.resourceIDs.count > 16 { self.resourceIDs.removeFirst() }
    }

    // MARK: Answers to callers

    private mutating func check(_ answer: Answer, to call: CallID, of machine: Int) {
        guard let open = self.machines[machine].calls.first(where: { $0.id == call }) else {
            return self.fail(.answers, "\(machine) answers \(call), which nobody waits for: \(answer)")
        }
        let disk = self.machines[machine].disk
        switch (open.command, answer) {
        case (_, .failure): break
        case (.send(let drafts, _), .sent(let outcomes)): self.check(outcomes, of: drafts, at: machine)
        case (.setTrust(let trust, _, let until), .peer(let peer)):
            self.machines[machine].opinions[peer.id] = Machine.Opinion(trust: trust, until: until)
            if trust == .blocked { self.counts[.blocked] += 1 }
            guard disk.peers[peer.id]?.trust == trust, disk.peers[peer.id]?.trustedUntil == until else {
                return self.fail(.committed, "\(machine) answers that \(peer.id) is \(trust), which is not on disk")
            }
        case (.leave(let session), .done):
            if disk.sessions.contains(where: { $0.id == session }) {
                self.fail(.committed, "\(machine) answers that \(session) has ended, which is on disk")
            }
        case (.endVerification(_, mismatch: true), .verification(let verification)):
            if let opinion = self.machines[machine].opinions[verification.peerID], opinion.trust == .trusted {
                self.machines[machine].opinions[verification.peerID] = Machine.Opinion(trust: .unknown, until: nil)
            }
            if disk.peers[verification.peerID]?.verified != .mismatched {
                self.fail(.committed, "\(machine) answers that digits differed, which is not on disk")
            }
        case (.respond(_, .block, _), .invitation(let invitation)):
            self.machines[machine].opinions[invitation.peerID] = Machine.Opinion(trust: .blocked, until: nil)
            self.counts[.blocked] += 1
            if disk.peers[invitation.peerID]?.trust != .blocked {
                self.fail(.committed, "\(machine) answers that \(invitation.peerID) is blocked, which is not on disk")
            }
        case (.respond(_, .accept, let always), .invitation(let invitation)):
            if invitation.offer != nil {
                if always { self.machines[machine].opinions[invitation.peerID] = Machine.Opinion(trust: .trusted, until: nil) }
                if invitation.state != .accepted || always && disk.peers[invitation.peerID]?.trust != .trusted {
                    self.fail(.committed, "\(machine) answers that \(invitation) is accepted, which is not on disk")
                }
                return
            }
            if let group = invitation.group {
                if invitation.state != .accepted || disk.groups[group.id] == nil {
                    self.fail(.committed, "\(machine) answers that \(invitation) is accepted, which is not on disk")
                }
                return
            }
            let stored = disk.peers[invitation.peerID]
            if always { self.machines[machine].opinions[invitation.peerID] = Machine.Opinion(trust: .trusted, until: nil) }
            if invitation.state != .accepted || disk.session(with: invitation.peerID)?.id != invitation.sessionID
                || always && stored?.trust != .trusted
            {
                self.fail(.committed, "\(machine) answers that \(invitation) is accepted, which is not on disk")
            }
        case (.invite, .invitation(let invitation)):
            let isAccepted = invitation.direction == .incoming || invitation.state == .accepted
            if isAccepted, disk.session(with: invitation.peerID)?.id != invitation.sessionID {
                self.fail(.committed, "\(machine) answers that \(invitation) is accepted, which is not on disk")
            }
        case (.respond(_, .reject, _), .invitation), (.cancelQueued, .sent), (.withdraw, .invitation), (.awaitInvitation, .invitation),
            (.verify, .verification),
            (.endVerification(_, mismatch: false), .verification):
            break
        case (.stream(let request), _): self.check(answer, to: request, of: machine)
        case (.resource(let request), _): self.check(answer, to: request, open.resource, of: machine)
        case (.group(let request), _): self.check(answer, to: request, of: machine)
        case (.device(let command), _): self.check(answer, to: command, call, since: open.at, of: machine)
        default: self.fail(.answers, "\(machine) answers \(open.command) with \(answer)")
        }
    }

    // MARK: Events

    private mutating func check(_ event: CoreEvent, of machine: Int, _ input: Input) {
        let peer: PeerID
        switch event {
        case .peerFound(let found), .peerChanged(let found), .peerLost(let found): peer = found.id
        case .invitationReceived(let invitation), .invitationResolved(let invitation):
            self.note(invitation, of: machine, input)
            peer = invitation.peerID
        case .verificationChanged(let verification):
            // The user reported the mismatch, and had blocked the peer a moment before.
            if case .committed = input, verification.state == .mismatched { return }
            peer = verification.peerID
        case .sessionChanged(let session, let ended):
            if !ended { self.checkMembers(of: session, at: machine) }
            peer = session.members.first?.peerID ?? self.machines[machine].id
        case .streamOpened(let stream), .streamClosed(let stream):
            self.note(stream, at: machine)
            peer = stream.peerID
        case .messagesReceived(let messages): return self.checkReceived(messages, at: machine)
        case .resourceOffered(let row), .resourceProgress(let row), .resourceFinished(let row):
            self.note(event, row, at: machine)
            // The outcome of the user's own transfers, and the place of earlier files, is still published.
            if row.direction == .outgoing || row.state == .completed { return }
            // The file arrived completely before the block, and was being put in its place.
            if case .resourceFinished = event, row.error == .conflict, row.transferred == row.size { return }
            peer = row.peerID
        case .messageStatuses(let statuses): return self.checkAtDevices(statuses, of: machine)
        case .liveMessages, .discoveryChanged, .groupChanged, .groupLeft: return
        }
        guard self.isBlocked(peer, by: machine) else { return }
        // A subscriber of events knows nothing after a start, so the peer's existence is published once per start.
        let isFirst = !self.machines[machine].shownBlocked.contains(peer)
        self.machines[machine].shownBlocked.append(peer)
        if case .peerFound = event, isFirst { return }
        if case .peerChanged = event, isFirst { return }
        self.fail(.blocked, "\(machine) publishes \(event) of a blocked peer")
    }

    /// Checks that no two pairs of honest machines share the id of a session. A hostile peer may name another pair's session, which neither
    /// machine can detect.
    private mutating func checkMembers(of session: Session, at machine: Int) {
        guard let other = session.members.first.flatMap({ self.machine(of: $0.peerID) }), !self.machines[other].isHostile else { return }
        for third in 0..<self.schedule.honest where third != machine {
            for held in self.machines[third].core?.keptSessions ?? [] where held.id == session.id {
                let isSame = third == other && held.members.contains(self.machines[machine].id)
                let isHostile = held.members.contains { self.machine(of: $0).map { self.machines[$0].isHostile } == true }
                if !isSame, !isHostile { self.fail(.sessions, "\(machine) and \(third) have \(session.id) with different members") }
            }
        }
    }
}
