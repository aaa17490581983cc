import DequeModule
import EarshotWire
import OrderedCollections

/// The exchange of records on a connection, by which members come to hold the same records.
extension NodeCore {
    mutating func groupFrameCame(_ frame: GroupFrame, from id: PeerID, on link: LinkID) {
        switch frame {
        case .invite(let invite): self.groupInvitationCame(invite, from: id, on: link)
        case .inviteAnswer(let answer): self.groupAnswerCame(answer, from: id, on: link)
        case .inviteWithdraw(let withdraw): self.withdrawalCame(withdraw, from: id)
        case .record(let record, let group): self.groupRecordCame(record, of: group, from: id, on: link)
        case .names(let names): self.groupsNamed(names, by: id, on: link)
        case .index(let group, let hashes): self.groupIndexCame(hashes, of: group, from: id, on: link)
        }
    }

    // MARK: Names

    /// Names the shared groups on a new connection. The list is sent even if it is empty: the peer may have joined a group meanwhile, and
    /// then shows this side its seat.
    mutating func nameGroups(to id: PeerID) {
        self.renewTies(with: id)
        guard let current = self.records[id]?.link.current, !self.groups.isEmpty, self.knowsGroups(current.facts) else { return }
        let held = self.groups.all.filter {
            $0.invitation == nil && $0.records.membership.contains(id) && self.mayCarry($0, current.facts)
        }
        let names = (held.filter(\.isJoined) + held.filter(\.isOver)).prefix(WireLimits.groupsPerFrame).map {
            GroupName(group: $0.id, digest: $0.records.digest)
        }
        for name in names { self.records[id]?.groups.name(name.group, name.digest) }
        self.send(.group(.names(names)), on: current.id)
    }

    func knowsGroups(_ facts: LinkFacts) -> Bool { facts.peer.extensions.announce(.groups) }

    /// Names one group to a peer, also if it was named before.
    mutating func nameGroup(_ group: GroupID, to id: PeerID) {
        guard let current = self.records[id]?.link.current, let held = self.groups[group], held.invitation == nil,
            held.records.membership.contains(id), self.mayCarry(held, current.facts)
        else { return }
        let wasAttached = self.records[id]?.groups.isAttached(group) == true
        let digest = held.records.digest
        self.records[id]?.groups.name(group, digest)
        self.send(.group(.names([GroupName(group: group, digest: digest)])), on: current.id)
        guard !wasAttached, self.records[id]?.groups.isAttached(group) == true else { return }
        // The peer may have named the group before it was a member here.
        self.compareRecords(of: group, with: id)
        self.groupAttached(group, id)
    }

    private mutating func groupsNamed(_ names: [GroupName], by id: PeerID, on link: LinkID) {
        guard self.records[id]?.groups.isBehind == false else {
            for name in names { self.records[id]?.groups.hearLater(name) }
            return
        }
        // Only the last digest of each group describes what the peer holds.
        let last = OrderedDictionary(names.map { ($0.group, $0) }, uniquingKeysWith: { $1 })
        for name in last.values { self.groupNamed(name, by: id, on: link) }
        // The peer does not name these groups although it is a member here: it does not know that this side is one.
        for group in self.records[id]?.groups.named.keys ?? [] where self.records[id]?.groups.heard[group] == nil {
            if self.showSeat(in: group, to: id) { self.nameGroup(group, to: id) }
        }
    }

    /// Shows a peer that does not name a group that this machine is a member of it, once per connection. The peer may have no connection to
    /// the member that let this machine in. The seat is shown for a dissolved group too, because the peer hears of its end only from peers
    /// that it considers members.
    @discardableResult
    mutating func showSeat(in group: GroupID, to id: PeerID) -> Bool {
        guard let held = self.groups[group], held.invitation == nil, let record = self.records[id], record.groups.heard[group] == nil,
            let current = record.link.current, self.mayCarry(held, current.facts), self.records[id]?.groups.show(group) == true
        else { return false }
        self.send(held.records.path(to: self.id), of: group, on: current.id)
        return true
    }

    private mutating func groupNamed(_ name: GroupName, by id: PeerID, on link: LinkID) {
        let group = name.group
        guard let held = self.groups[group] else {
            // The peer may have admitted this machine after it gave up joining. If the peer answers with this machine's seat, this machine
            // sends it a leave.
            if self.records[id]?.groups.isStrange(group) == true { self.send(.group(.index(group, [])), on: link) }
            return
        }
        guard let facts = self.records[id]?.link.current?.facts, self.mayCarry(held, facts) else { return }
        let wasAttached = self.records[id]?.groups.isAttached(group) == true
        self.records[id]?.groups.hear(group, name.digest)
        // The peer considers this machine a member: it is the inviter, or has heard from the inviter.
        if let invitation = held.invitation { self.inviterIsThere(invitation) }
        guard held.invitation != nil || held.records.membership.contains(id) else { return self.showEnd(of: group, to: id) }
        if held.invitation == nil, self.records[id]?.groups.named[group] == nil { self.nameGroup(group, to: id) }
        self.compareRecords(of: group, with: id)
        if !wasAttached, self.records[id]?.groups.isAttached(group) == true { self.groupAttached(group, id) }
    }

    /// Asks a peer for the records that are missing here, if its digest differs. If the peer was asked often, the question is delayed.
    private mutating func compareRecords(of group: GroupID, with id: PeerID) {
        guard let held = self.groups[group], let ties = self.records[id]?.groups, let said = ties.heard[group], said != held.records.digest,
            let link = self.records[id]?.connection
        else { return }
        switch self.records[id]?.groups.ask(group, holding: held.records.digest, at: self.now.monotonic) {
        case .asks: self.send(.group(.index(group, held.records.hashes)), on: link)
        case .asksLater: self.set(.groupQuestions(id), after: EarshotLimits.groupQuestionInterval)
        case .isAsking, .isAnswered, nil: break
        }
    }

    /// Asks a peer about the groups whose questions were delayed.
    mutating func askLater(_ id: PeerID) {
        for group in self.records[id]?.groups.takeUnasked() ?? [] { self.compareRecords(of: group, with: id) }
    }

    /// Resumes traffic in a group that is now attached.
    private mutating func groupAttached(_ group: GroupID, _ id: PeerID) {
        guard self.groups[group]?.isJoined == true else { return }
        self.flushOutbox(Conversation(with: id, in: group))
        self.sendReceipts(to: id)
        self.resumeTransfers(of: id)
        self.publishGroupSoon(group)
    }

    /// Returns the attached group whose id a peer's frame gives as its session.
    func attachedGroup(_ session: SessionID, with id: PeerID) -> GroupID? {
        let group = GroupID(session: session)
        guard self.groups[group]?.isJoined == true, self.records[id]?.groups.isAttached(group) == true else { return nil }
        return group
    }

    /// Shows a peer the record that ended its membership, once per connection. The peer has named the group, or has sent something in it.
    /// It may not know that it was removed, or it may be restored from a backup that is older than its leave.
    mutating func showEnd(of group: GroupID, to id: PeerID) {
        guard let held = self.groups[group], !held.records.membership.contains(id), let current = self.records[id]?.link.current,
            let end = held.records.end(of: id), self.mayCarry(held, current.facts), self.records[id]?.groups.showEnd(group) == true
        else { return }
        self.send(.group(.record(end, of: group)), on: current.id)
    }

    // MARK: Exchange

    private mutating func groupIndexCame(_ hashes: [GroupRecordHash], of group: GroupID, from id: PeerID, on link: LinkID) {
        guard let held = self.groups[group], held.invitation == nil, held.records.membership.contains(id),
            let facts = self.records[id]?.link.current?.facts, self.mayCarry(held, facts),
            self.records[id]?.groups.mayAnswer(group, at: self.now.monotonic) == true
        else { return }
        self.send(held.records.lacking(in: Set(hashes)), of: group, on: link)
        self.nameGroup(group, to: id)
    }

    /// Sends new records to all peers that may lack them. A peer that has not named the group yet is included: if the records void its
    /// seat, the peer is no longer a member here and would not hear of them later.
    mutating func passOn(_ records: [GroupRecord], of group: GroupID, but source: PeerID?) {
        for record in self.records.values where record.id != source && record.groups.named[group] != nil {
            if let link = record.connection { self.send(records, of: group, on: link) }
        }
    }

    mutating func send(_ records: [GroupRecord], of group: GroupID, on link: LinkID) {
        if !records.isEmpty { self.emit(.send(link, records.map { .group(.record($0, of: group)) })) }
    }

    /// Handles a group without new records for a while. Drops seats that are not kept, and sends the new digest to peers that were last
    /// told another one.
    mutating func groupIsQuiet(_ group: GroupID) {
        self.groups.update(group) { $0.records.forget() }
        guard let held = self.groups[group], held.invitation == nil else { return }
        self.keepGroup(group)
        let digest = held.records.digest
        for record in self.records.values {
            guard let said = record.groups.named[group], said != digest else { continue }
            self.nameGroup(group, to: record.id)
        }
    }

    // MARK: Records

    private mutating func groupRecordCame(_ record: GroupRecord, of group: GroupID, from id: PeerID, on link: LinkID) {
        guard let held = self.groups[group] else { return self.recordOfUnheldGroupCame(record, of: group, from: id, on: link) }
        // Anyone can make keys, and a leave of any key is valid. A peer outside the group therefore may not fill places with leaves. A
        // leave of a held seat fills no place, and its sender may be a member by records that this side lacks after a restore from a
        // backup.
        if case .leave(let leave) = record, held.invitation == nil, !held.records.membership.isCandidate(id),
            held.records.highestSeat(of: leave.peer) == nil
        {
            return
        }
        guard held.records.refusal(of: record) != .known, self.records[id]?.groups.isFull == false else { return }
        let hold = self.hold(WireLimits.groupRecord)
        self.records[id]?.groups.queue(GroupRecordInput(group: group, record: record, hold: hold))
        self.checkRecords(of: id)
    }

    /// Starts the check of a peer's next records: few at once, and a limited number per second.
    mutating func checkRecords(of id: PeerID) {
        guard let ties = self.records[id]?.groups, !ties.isChecking, let link = self.records[id]?.connection else { return }
        var batch: [GroupRecordInput] = []
        var checks: [[ProofCheck]] = []
        while batch.count < EarshotLimits.groupRecordsPerTurn, let input = self.records[id]?.groups.nextRecord {
            guard let held = self.groups[input.group] else {
                self.dropRecord(of: id)
                continue
            }
            switch held.records.checks(for: input.record) {
            case .refuse(.unvouched) where batch.contains { $0.group == input.group && $0.record.kind == .seat }:
                // The voucher's seat may be among the records before it.
                return self.check(batch, checks, of: id, on: link)
            case .refuse(.void(let voiding)):
                self.send(voiding, of: input.group, on: link)
                self.dropRecord(of: id)
            case .refuse: self.dropRecord(of: id)
            case .verify(let needed):
                guard !needed.isEmpty else {
                    self.dropRecord(of: id)
                    continue
                }
                if let pause = self.records[id]?.groups.pauseBeforeCheck(at: self.now.monotonic) {
                    self.set(.groupRecords(id), after: pause)
                    return self.check(batch, checks, of: id, on: link)
                }
                _ = self.records[id]?.groups.takeRecord()
                batch.append(input)
                checks.append(needed)
            }
        }
        self.check(batch, checks, of: id, on: link)
        guard self.records[id]?.groups.isBehind == false, let late = self.records[id]?.groups.takeLate(), !late.isEmpty else { return }
        self.groupsNamed(late, by: id, on: link)
    }

    private mutating func dropRecord(of id: PeerID) {
        if let input = self.records[id]?.groups.takeRecord() { self.release(input.hold) }
    }

    private mutating func check(_ batch: [GroupRecordInput], _ checks: [[ProofCheck]], of id: PeerID, on link: LinkID) {
        guard !batch.isEmpty else { return }
        self.records[id]?.groups.setChecking(true)
        self.emit(.check(self.groups.signatures.beginChecking(.records(batch, from: id, link)), checks))
    }

    mutating func checked(_ id: SignatureID, _ areValid: [Bool]) {
        switch self.groups.signatures.endChecking(id) {
        case .records(let inputs, let peer, let link)?: self.recordsChecked(inputs, areValid, from: peer, on: link)
        case .invitation(let invite, let peer, let link, let hold)?:
            self.release(hold)
            // The peer was blocked during the check, and must not notice.
            guard !self.isMuted(link) else { return self.declineLater(invite.id, isToGroup: true, on: link) }
            guard self.records[peer]?.connection == link else { return }
            guard areValid.allSatisfy(\.self) else {
                self.signatureFailed(of: peer)
                return self.answerGroup(invite.id, .declined, on: link)
            }
            self.groupInvitationChecked(invite, from: peer, on: link)
        case .applicantSeat(let seat, let invitation)?:
            guard areValid.allSatisfy(\.self) else {
                self.signatureFailed(of: seat.peer)
                return self.refuseSeat(invitation, "the peer has accepted with a signature that is not valid")
            }
            self.applicantChecked(seat, invitation)
        case .ownSeat(let seat, let group, let link)?:
            if areValid.allSatisfy(\.self) { return self.leaveUnheld(seat, group, link) }
            if let peer = self.links.peer(of: link) { self.signatureFailed(of: peer) }
        case nil: break
        }
    }

    private mutating func recordsChecked(_ inputs: [GroupRecordInput], _ areValid: [Bool], from id: PeerID, on link: LinkID) {
        var merged: OrderedDictionary<GroupID, [GroupRecord]> = [:]
        var before: OrderedDictionary<GroupID, [GroupRecordHash]> = [:]
        for (input, isValid) in zip(inputs, areValid) where isValid {
            guard let hashes = self.groups[input.group]?.records.hashes else { continue }
            if before[input.group] == nil { before[input.group] = hashes }
            let isNew = self.groups.update(input.group) { $0.records.merge(input.record) == nil }
            if isNew == true { merged[input.group, default: []].append(input.record) }
        }
        for input in inputs { self.release(input.hold) }
        if self.records[id]?.connection == link { self.records[id]?.groups.setChecking(false) }
        for (group, records) in merged { self.recordsMerged(records, of: group, from: id, before: before[group] ?? []) }
        for isValid in areValid where !isValid { self.signatureFailed(of: id) }
        self.checkRecords(of: id)
    }

    private mutating func recordsMerged(_ records: [GroupRecord], of group: GroupID, from id: PeerID, before: [GroupRecordHash]) {
        guard let held = self.groups[group]?.records else { return }
        let kept = records.filter(held.goesOn)
        if !kept.isEmpty || held.hashes != before { return self.groupChanged(group, kept.isEmpty ? records : kept, from: id) }
        // Seats for which there is no room are dropped soon, and do not postpone the deadline.
        if !self.deadlines.contains(.groupQuiet(group)) { self.set(.groupQuiet(group), after: EarshotLimits.groupQuiet) }
    }

    /// Counts an invalid signature of a peer. The record changes nothing, and the connection stays: two versions that disagree about one
    /// signature would otherwise never stay connected. Further signatures of the peer are checked later instead.
    private mutating func signatureFailed(of id: PeerID) { self.records[id]?.groups.signatureFailed(at: self.now.monotonic) }

    // MARK: Groups that this machine does not hold

    /// Tells a peer that this machine has left a group, if the peer shows this machine's own seat there. This machine was let in after it
    /// had stopped joining, or the peer was away when this machine left.
    private mutating func recordOfUnheldGroupCame(_ record: GroupRecord, of group: GroupID, from id: PeerID, on link: LinkID) {
        guard case .seat(let seat) = record, seat.peer == self.id, !self.groups.signatures.isApplying(to: group),
            self.records[id]?.groups.mayCheckMore(at: self.now.monotonic) == true,
            self.records[id]?.groups.mayLeave(group, seat.number) == true, let input = try? seat.signedBytes(as: .peer, in: group)
        else { return }
        // Without this check, this machine would sign a leave for any seat that a peer makes up.
        let check = ProofCheck(scheme: seat.scheme, publicKey: seat.publicKey, input: input, signature: seat.signature)
        self.emit(.check(self.groups.signatures.beginChecking(.ownSeat(seat, of: group, link)), [[check]]))
    }

    /// Signs and sends a leave for this machine's own seat in a group that it does not hold.
    mutating func leaveUnheld(_ seat: GroupSeat, _ group: GroupID, _ link: LinkID) {
        guard self.groups[group] == nil else { return }
        let leave = GroupLeave(publicKey: seat.publicKey, scheme: seat.scheme, number: seat.number)
        guard let input = try? leave.signedBytes(in: group) else { return }
        self.emit(.sign(self.groups.signatures.beginSigning(.leaveUnheld(leave, of: group, link)), [input]))
    }

    /// Sends a leave for this machine's own seat to each of the peers that is connected.
    mutating func leaveUnheld(_ seat: GroupSeat, _ group: GroupID, to peers: some Sequence<PeerID>) {
        for peer in peers { if let link = self.records[peer]?.connection { self.leaveUnheld(seat, group, link) } }
    }
}
