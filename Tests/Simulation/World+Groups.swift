import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// Groups: the users' calls, the shell's work for the core, and the invariants.
extension World {
    /// Returns a machine's key, whose digest is its id.
    static func key(of machine: Int) -> OwnKey { OwnKey(publicKey: [UInt8(machine), 0], scheme: .ed25519) }

    // MARK: Users

    mutating func group(_ action: Action, on machine: Int) {
        guard let core = self.machines[machine].core else { return }
        let groups = core.groupList
        // Few groups, so that each sees some activity.
        if action.verb == .group || (action.verb == .inviteToGroup && groups.isEmpty) {
            guard groups.count < 2 else { return }
            let (isClosed, isUnprotected) = (action[1] % 5 == 0, action[1] % 3 == 0)
            return self.call(
                .group(.create(name: "group \(action[1] % 4)", isClosed: isClosed, isUnprotected: isUnprotected)), on: machine)
        }
        guard !groups.isEmpty else { return }
        // Usually only the creator removes members.
        let own = action.verb == .removeMember ? groups.filter { $0.role == .creator } : []
        let group = own.isEmpty ? groups[action[1] % groups.count] : own[action[1] % own.count]
        let id = group.id.description
        switch action.verb {
        case .inviteToGroup:
            let peer = action[2] % self.machines.count
            let timeout: Duration? = action[3] == 0 ? nil : .seconds(action[3])
            self.call(.group(.invite(id, peers: [self.machines[peer].id.description], context: [], timeout: timeout)), on: machine)
        case .endGroup:
            switch action[2] % 3 {
            case 0: self.call(.group(.leave(id)), on: machine)
            case 1: self.call(.group(.dissolve(id)), on: machine)
            default: self.call(.group(.rename(id, to: "group \(action[1] % 4 + 4)")), on: machine)
            }
        case .removeMember:
            // Sometimes a member that another member has admitted.
            let guests = group.members.filter { $0.invitedBy != core.id }
            let others = (guests.isEmpty || action[2] % 4 == 0 ? group.members : guests).map(\.peerID).filter { $0 != core.id }
            guard !others.isEmpty else { return }
            let member = others[action[2] % others.count].description
            self.call(.group(.remove(id, peer: member, withInvited: action[3] == 1)), on: machine)
        case .sendToGroup: self.send(action, from: machine, to: .group(id))
        case .shareFile: self.shareFile(action, from: machine, to: group.id)
        default: break
        }
    }

    // MARK: Signatures

    mutating func sign(_ inputs: [[UInt8]], as id: SignatureID, on machine: Int) {
        let key = Self.key(of: machine).publicKey
        self.later(.signed(id, .success(inputs.map { ToySignature.sign($0, by: key) })), id, on: machine)
    }

    mutating func check(_ checks: [[ProofCheck]], as id: SignatureID, on machine: Int) {
        self.later(.checked(id, checks.map { $0.allSatisfy(ToySignature.isValid) }), id, on: machine)
    }

    private mutating func later(_ input: Input, _ id: SignatureID, on machine: Int) {
        let run = self.machines[machine].run
        var random = SplitMix64(seed: self.schedule.seed, 12, UInt64(machine), UInt64(run), id.number)
        self.clock.plan(.input(machine, run: run, input), after: .microseconds(random.number(in: 50...5_000)))
    }

    // MARK: Invariants

    /// Checks that no frame of a group goes to a peer that is not a member by this side's records.
    mutating func checkGroupFrame(_ frame: Frame, to peer: PeerID, of machine: Int) {
        guard let core = self.machines[machine].core else { return }
        let said: SessionID
        switch frame {
        case .message(let message): said = message.session
        case .resource(.offer(let offer)): said = offer.session
        default: return
        }
        let group = GroupID(session: said)
        guard let held = core.keptGroup(group) else { return }
        self.counts[.groupMessages] += 1
        if !held.members.contains(peer) { self.fail(.groups, "\(machine) sends to \(peer), which is no member of \(group): \(frame)") }
    }

    /// Checks that answers about groups are on disk.
    mutating func check(_ answer: Answer, to request: GroupRequest, of machine: Int) {
        let disk = self.machines[machine].disk
        switch (request, answer) {
        case (.create, .group(let group)):
            if disk.groups[group.id] == nil {
                self.fail(.committed, "\(machine) answers that it has made \(group.id), which is not on disk")
            }
            self.counts[.groups] += 1
        case (.rename(_, let name), .group(let group)):
            let names = disk.names(of: group.id)
            if !names.contains(name) {
                self.fail(.committed, "\(machine) answers that \(group.id) is called \(name), and on disk it is \(names)")
            }
        case (.remove, .group(let group)):
            if disk.groups[group.id] == nil { self.fail(.committed, "\(machine) answers of \(group.id), which is not on disk") }
        case (.leave(let name), .done), (.dissolve(let name), .done):
            guard let id = GroupID(name), let left = disk.groups[id], !left.isOver else { return }
            self.fail(.committed, "\(machine) answers that \(id) is over, and on disk it is not")
        case (.invite, .invitations): break
        default: self.fail(.answers, "\(machine) answers \(request) with \(answer)")
        }
    }

    /// Checks that memory and disk have the same groups, except those with a pending retry.
    mutating func checkKeptGroups(of machine: Int, _ core: NodeCore, isEnd: Bool) {
        let disk = self.machines[machine].disk
        let unkept: OrderedSet<GroupID> = isEnd ? [] : disk.unkeptGroups
        let held = core.keptGroups
        for group in held where !unkept.contains(group.stored.id) {
            guard let there = disk.groups[group.stored.id], there.isEqual(to: group.stored) else {
                let there = disk.groups[group.stored.id].map { "\($0.records.count) records, over: \($0.isOver)" } ?? "nothing"
                let words = "\(group.stored.records.count) records of \(group.stored.id) in memory, and \(there) on disk"
                return self.fail(.kept, "\(machine) has \(words)")
            }
        }
        for group in held where isEnd {
            self.checkSignatures(of: group.stored, at: machine)
            self.checkRoom(group, at: machine)
            if !group.stored.isOver { self.checkMembers(group.members, of: group.stored, at: machine) }
            let hostile = Set(self.machines.filter(\.isHostile).flatMap(\.identities))
            self.counts[.hostileMembers] += group.members.count(where: hostile.contains)
            if hostile.contains(group.stored.charter.creator) { self.counts[.hostileGroups] += 1 }
        }
        for id in disk.groups.keys where !unkept.contains(id) && !held.contains(where: { $0.stored.id == id }) {
            self.fail(.kept, "\(machine) has the group \(id) on disk alone")
        }
    }

    /// Checks that at the end all members of a group hold the same records and are connected, and that nothing waits.
    mutating func checkGroups(_ one: Int, _ other: Int) {
        guard let core = self.machines[one].core, let far = self.machines[other].core else { return }
        let (own, theirs) = (self.machines[one].id, self.machines[other].id)
        // A peer that has blocked another does not send to it, and the other cannot know.
        guard core.facts(of: theirs)?.trust != .blocked, far.facts(of: own)?.trust != .blocked else { return }
        for group in core.keptGroups where !group.stored.isOver && group.members.contains(theirs) {
            guard let there = far.keptGroup(group.stored.id) else {
                return self.fail(.groups, "\(one) has \(other) in \(group.stored.id), which \(other) is not in")
            }
            guard group.digest == there.digest, group.stored.charter == there.stored.charter else {
                return self.fail(.groups, "\(one) and \(other) hold different records of \(group.stored.id)")
            }
            self.counts[.groupPairs] += 1
            let conversation = Conversation(with: theirs, in: group.stored.id)
            guard core.isAttached(conversation) else {
                return self.fail(.groups, "\(one) and \(other) are in \(group.stored.id), and do not talk")
            }
            let waiting = core.outbox(in: conversation)?.count ?? 0
            if waiting > 0 { self.fail(.drained, "\(one) has \(waiting) messages for \(other) in \(group.stored.id) that do not go") }
        }
    }
}

extension StoredGroup {
    /// Whether both groups have the same records, in any order, including their signatures.
    func isEqual(to other: StoredGroup) -> Bool {
        self.charter == other.charter && self.isOver == other.isOver && self.records.count == other.records.count
            && (self.records == other.records || Set(self.records) == Set(other.records))
    }
}
