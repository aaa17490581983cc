import EarshotCore
import EarshotWire
import OrderedCollections

/// The invariants of every step. To add one, name it in ``Violation/Invariant``, check it here or in `EndInvariants.swift`, and add a
/// mutant to `Mutants` that only this invariant detects.
extension World {
    /// The state of a core that is remembered while it handles an input.
    struct Before {
        var core: NodeCore?
        var undecided = 0
    }

    func look(at machine: Int, before input: Input) -> Before {
        guard let core = self.machines[machine].core else { return Before() }
        switch input {
        case .call(_, .send), .call(_, .device(.cancel)): return Before()
        case .call, .committed(_, .some): return Before(core: core, undecided: core.undecidedCount)
        default: return Before()
        }
    }

    // MARK: Whole inputs

    mutating func check(_ input: Input, _ effects: [Effect], of machine: Int, at now: Now, _ before: Before) {
        guard let after = self.machines[machine].core else { return }
        if let next = after.nextDeadline, next <= now.monotonic {
            self.fail(.deadlines, "\(machine) has left something that is due, after \(input)")
        }
        switch input {
        case .device(.shipped(let id, _, let report)): self.note(report, of: id, at: machine)
        case .call(let call, .device(let command)):
            guard effects.contains(where: { if case .answer(call, .deviceRefusal) = $0 { true } else { false } }) else { return }
            if let core = before.core { self.checkRefusal(command, core, after, of: machine) }
        case .call(let call, let command):
            guard effects.contains(where: { if case .answer(call, .failure) = $0 { true } else { false } }) else { return }
            if before.core?.showsSame(as: after) == false {
                self.fail(.unchanged, "\(machine) has failed \(command), and something is another than before")
            }
        case .committed(_, .some):
            let failed = effects.compactMap { effect -> CallID? in if case .answer(let call, .failure) = effect { call } else { nil } }
            guard failed.count == 1, before.undecided == 1, after.undecidedCount == 0 else { return }
            // A stream that waited for the session is over.
            guard before.core?.isAwaitingStream(failed[0]) == false else { return }
            // The inviter has been told, and the invitation is over.
            guard before.core?.isAwaitingGroup(failed[0]) == false else { return }
            if before.core?.showsSame(as: after) == false {
                self.fail(.unchanged, "\(machine) has told that something could not be kept, and it is another than before")
            }
        default: break
        }
    }

    /// Checks the state after the effects of an input are carried out.
    mutating func checkRest(of machine: Int, at now: Now, _ input: Input) {
        guard self.violation == nil, let core = self.machines[machine].core else { return }
        self.machines[machine].latestWall = max(self.machines[machine].latestWall, now.wall)
        if case .committed(let commit, _) = input { self.machines[machine].disk.told(of: commit) }
        if case .device(.reserved) = input { self.machines[machine].devices.reserving -= 1 }
        self.checkLimits(of: machine, core)
        self.checkDevices(of: machine, core, input)
        switch input {
        case .deadline, .need, .dataPath, .outbox, .flush, .kept, .delivered, .bodies, .receipts, .taken, .read, .call(_, .send), .stream,
            .callerGone, .transfer, .transfers, .rowsRefused, .call(_, .resource), .call(_, .group), .signed, .checked, .streamsOver,
            .device,
            .call(_, .device):
            break
        case .call, .link, .discovery, .dial, .configuredDial, .committed, .settings, .start, .stop, .stopped:
            self.machines[machine].blocked = core.keptPeers.filter { $0.trust == .blocked }.map(\.id)
            guard core.undecidedCount == 0, self.machines[machine].disk.pending.isEmpty else { return }
            self.checkKept(of: machine, core)
            self.checkOpinions(of: machine, afterStart: false)
        }
    }

    /// Checks that memory and disk agree, except for times of day, which are written with other changes.
    mutating func checkKept(of machine: Int, _ core: NodeCore, isEnd: Bool = false) {
        let figures = core.figures
        if figures.agreements + figures.dueAcceptances + figures.decidingInvitations > 0 {
            self.fail(.kept, "\(machine) believes that a decision is under way, and none is")
        }
        let disk = self.machines[machine].disk
        let (unkeptPeers, unkeptSessions) = isEnd ? ([], []) : (disk.unkeptPeers, disk.unkeptSessions)
        let peers = core.keptPeers
        for peer in peers where !unkeptPeers.contains(peer.id) {
            guard let there = disk.peers[peer.id], peer.isSame(as: there) else {
                let there = disk.peers[peer.id].map { "\($0)" } ?? "nothing"
                return self.fail(.kept, "\(machine) has \(peer) in memory, and \(there) on disk")
            }
        }
        for peer in disk.peers.values where !unkeptPeers.contains(peer.id) && !peers.contains(where: { $0.id == peer.id }) {
            self.fail(.kept, "\(machine) has \(peer) on disk alone")
        }
        self.checkKeptGroups(of: machine, core, isEnd: isEnd)
        let sessions = core.keptSessions
        for session in sessions where !disk.sessions.contains(session) && !unkeptSessions.contains(session.members.last ?? core.id) {
            self.fail(.kept, "\(machine) has \(session) in memory alone")
        }
        for session in disk.sessions where !sessions.contains(session) && !unkeptSessions.contains(session.members.last ?? core.id) {
            self.fail(.kept, "\(machine) has \(session) on disk alone")
        }
    }

    private mutating func checkLimits(of machine: Int, _ core: NodeCore) {
        let figures = core.figures
        // Per address, the burst plus one per interval, as long as they wait.
        let addresses = 3 * self.schedule.hostile + self.schedule.honest
        let asking = EarshotLimits.askingBurstPerAddress + 3_000 / 250 + 1
        let limits: [(String, Int, Int)] = [
            ("discovered peers", figures.discovered, EarshotLimits.discoveredPeers),
            ("sightings of a peer", figures.mostSightings, EarshotLimits.sightingsPerPeer),
            ("strangers' invitations", figures.strangersInvitations, EarshotLimits.pendingInvitations),
            ("strangers' comparisons", figures.strangersComparisons, EarshotLimits.comparisonRequests),
            ("decided invitations", figures.decidedInvitations, EarshotLimits.decidedInvitations),
            ("late answers", figures.lateAnswers, asking * addresses),
            ("sightings by key", figures.sightingKeys, figures.sightings),
            ("connections", figures.links, self.machines[machine].links.count),
            ("muted connections", figures.mutedLinks, figures.links),
            ("streams that wait, of a peer", figures.waitingStreams, EarshotLimits.waitingStreams),
            ("streams to a peer", figures.outgoingStreams, EarshotLimits.outgoingStreams),
            ("streams from a peer", figures.incomingStreams, 64),
            ("streams that ask for data connections, to a peer", figures.movingStreams, EarshotLimits.streamReroutes),
            ("dials for data, to a peer", figures.dataDials, EarshotLimits.dataDials),
            ("closed streams", figures.closedStreams, EarshotLimits.closedStreams),
            ("callers that wait for streams", figures.streamAcceptors, EarshotLimits.streamAcceptors),
            ("movers of streams", self.machines[machine].streams.movers.count, figures.openStreams + figures.closedStreams),
            ("offers that wait, of a peer", figures.waitingOffers, EarshotLimits.waitingOffers),
            ("movers of resources from a peer", figures.incomingMovers, EarshotLimits.incomingMovers),
            ("movers of resources to a peer", figures.outgoingMovers, EarshotLimits.outgoingTransfers),
            ("finished transfers", figures.finishedTransfers, EarshotLimits.finishedTransfers),
            ("changes of rows", figures.transferCommits, self.machines[machine].disk.pending.count + 64),
            ("names", figures.names, 2 * figures.records),
            (
                "deadlines", figures.deadlines,
                // Per peer: its grace, its dial, its trust, its comparison and a step of that, and the retries of writing and reading.
                7 * figures.records + EarshotLimits.comparisonsPerPeriod + 2 * figures.pendingInvitations + figures.links
                    + figures.lateAnswers + figures.configured
                    + figures.dataPaths + figures.outboxes + 3 + figures.openStreams + figures.streamAcceptors
                    + 2 * figures.openTransfers
                    + 4 * figures.devices + figures.lateDeviceRefusals + figures.deviceSessions + 2
            ),
            ("conversations with messages", figures.outboxes, figures.conversations),
            ("calls that wait for messages", figures.sending, self.machines[machine].calls.count),
            ("changes of the outbox", figures.keeping, 4 * self.machines[machine].mailbox.pending.count + 64),
        ]
        for (what, count, limit) in limits + self.deviceLimits(of: machine, figures) where count > limit {
            self.fail(.limits, "\(machine) has \(count) \(what), of at most \(limit)")
        }
    }

    // MARK: Trust

    /// Checks that trust is as users were told, or has expired.
    mutating func checkOpinions(of machine: Int, afterStart: Bool) {
        guard let core = self.machines[machine].core else { return }
        let latest = self.machines[machine].latestWall
        let disk = self.machines[machine].disk
        let kept = core.keptPeers
        for peer in kept where self.machines[machine].opinions[peer.id] == nil {
            self.machines[machine].opinions[peer.id] = Machine.Opinion(trust: .unknown, until: nil)
        }
        for (id, opinion) in self.machines[machine].opinions {
            let stored = kept.first { $0.id == id }
            let isOver = stored?.trustedUntil.map { $0 <= latest } == true
            let trust = isOver ? .unknown : stored?.trust ?? .unknown
            guard trust != opinion.trust else {
                // Not before the change is on disk.
                if !opinion.doubts.isEmpty, disk.peers[id]?.trust ?? .unknown == stored?.trust ?? .unknown {
                    self.machines[machine].opinions[id] = Machine.Opinion(trust: trust, until: stored?.trustedUntil)
                }
                continue
            }
            let ends = [(opinion.trust, opinion.until)] + opinion.doubts
            let hasEnded = trust == .unknown && ends.contains { $0.0 == .trusted && $0.1.map { $0 <= latest } == true }
            let isMismatched = opinion.trust == .trusted && trust == .unknown && stored?.verified == .mismatched
            guard hasEnded || isMismatched || opinion.doubts.contains(where: { $0.0 == trust }) else {
                let words = afterStart ? "after its start" : "now"
                return self.fail(.opinions, "\(machine) takes \(id) for \(trust) \(words), and answered \(opinion.trust)")
            }
            self.machines[machine].opinions[id] = Machine.Opinion(trust: trust, until: stored?.trustedUntil, doubts: ends)
        }
    }

    /// Records that a machine stops: its waiting callers do not learn the outcome of their calls.
    mutating func doubt(_ machine: Int) {
        guard let core = self.machines[machine].core else { return }
        for call in self.machines[machine].calls {
            switch call.command {
            case .setTrust(let trust, _, let until): if let id = call.peer { self.doubt(machine, id, trust, until) }
            case .respond(let invitation, let decision, let always):
                guard let peer = try? core.invitation(invitation).peerID else { continue }
                if decision == .block { self.doubt(machine, peer, .blocked) }
                if decision == .accept, always { self.doubt(machine, peer, .trusted) }
            case .endVerification(_, mismatch: true): if let id = call.peer { self.doubt(machine, id, .unknown) }
            case .invite, .withdraw, .awaitInvitation, .setAlias, .leave, .verify, .endVerification, .send, .cancelQueued, .stream,
                .resource,
                .group, .device:
                break
            }
        }
    }

    mutating func doubt(_ machine: Int, _ peer: PeerID, _ trust: Trust, _ until: WallTime? = nil) {
        self.machines[machine].opinions[peer, default: Machine.Opinion(trust: .unknown, until: nil)].doubts.append((trust, until))
    }
}
