package import EarshotWire
import OrderedCollections

/// The groups as users and programs see them, and their requests to change them.
extension NodeCore {
    mutating func take(_ request: GroupRequest, _ call: CallID) {
        do throws(EarshotError) {
            guard !self.isStopping else { throw .stopping }
            switch request {
            case .create(let name, let isClosed, let isUnprotected):
                try self.createGroup(name, isClosed: isClosed, isUnprotected: isUnprotected, call)
            case .rename(let group, let name):
                let id = try self.ownGroup(group, to: "rename")
                try self.say(try self.displayName(name), isOver: false, of: id, call)
            case .dissolve(let group):
                let id = try self.ownGroup(group, to: "dissolve")
                guard let terms = self.groups[id]?.records.terms else { return }
                try self.say(terms.name, isOver: true, of: id, call)
            case .leave(let group): try self.leaveGroup(try self.groupID(group), call)
            case .remove(let group, let peer, let withInvited):
                let id = try self.ownGroup(group, to: "take members out of")
                try self.remove(try self.member(peer, of: id), from: id, withInvited: withInvited, call)
            case .invite(let group, let peers, let context, let timeout):
                try self.invite(peers, to: try self.groupID(group), context: context, timeout: timeout, call)
            }
        } catch {
            self.answer(call, .failure(error))
        }
    }

    // MARK: Lookup

    /// The groups that this machine is in or is joining, in the order in which they were made or joined.
    package var groupList: [Group] { self.groups.all.filter { !$0.isOver }.map(self.snapshot) }

    /// - Throws: `unknown-group`, `ambiguous-group`.
    package func group(_ name: String) throws(EarshotError) -> Group {
        let id = try self.groupID(name)
        guard let group = self.groups[id] else { throw .unknownGroup(name) }
        return self.snapshot(group)
    }

    /// Returns the id of the group that a user names by its id, by 8 or more of the id's first characters, or by the group's name.
    /// - Throws: `unknown-group`, `ambiguous-group`.
    package func groupID(_ name: String) throws(EarshotError) -> GroupID {
        let held = self.groups.all.filter { !$0.isOver }
        if let id = GroupID(name), held.contains(where: { $0.id == id }) { return id }
        var meant = held.filter { $0.records.terms.name.description == name }
        let prefix = name.lowercased().filter { $0 != "-" }
        if prefix.count >= PeerID.shortestPrefix {
            meant += held.filter { group in
                group.id.description.filter { $0 != "-" }.hasPrefix(prefix) && !meant.contains { $0.id == group.id }
            }
        }
        guard let first = meant.first else { throw .unknownGroup(name) }
        guard meant.count == 1 else {
            let list = meant.map { "\($0.records.terms.name) (\($0.id))" }.joined(separator: ", ")
            throw EarshotError(.ambiguousGroup, "\"\(name)\" could be any of \(meant.count) groups: \(list)")
        }
        return first.id
    }

    /// Returns the label of a group. If the group is not held, the name is the id.
    package func label(of group: GroupID) -> GroupLabel {
        GroupLabel(id: group, name: self.groups[group]?.records.terms.name.description ?? group.description)
    }

    /// Returns the other members of a group that are not blocked here.
    func fellowMembers(of group: GroupID) -> [PeerID] {
        guard let held = self.groups[group], held.isJoined else { return [] }
        return held.records.membership.members.map(\.peer).filter { $0 != self.id && self.records[$0]?.trust != .blocked }
    }

    /// Whether this machine and a peer that is not blocked here are both members of a group.
    func isFellowMember(_ peer: PeerID, in group: GroupID) -> Bool {
        guard let record = self.records[peer], self.groups[group]?.isJoined == true else { return false }
        return record.trust != .blocked && record.groups.shared.contains(group)
    }

    private func displayName(_ name: String) throws(EarshotError) -> DisplayName {
        do {
            return try DisplayName(name)
        } catch {
            throw EarshotError(.invalidParameter, "a group's name is as a peer's: \(error)")
        }
    }

    /// Returns the id of a group of which this machine is the creator.
    private func ownGroup(_ name: String, to doWhat: String) throws(EarshotError) -> GroupID {
        let id = try self.groupID(name)
        guard let held = self.groups[id], held.records.charter.creator == self.id else {
            let label = self.label(of: id)
            throw EarshotError(.forbidden, "only its creator may \(doWhat) the group \(label.name)")
        }
        return id
    }

    /// Returns the other member that a user names by its id, by 8 or more of the id's first characters, or by its name in the group.
    private func member(_ name: String, of group: GroupID) throws(EarshotError) -> PeerID {
        guard let held = self.groups[group] else { throw .unknownGroup(name) }
        let membership = held.records.membership
        let all = (membership.members + membership.full).map(\.peer).filter { $0 != self.id }
        if let id = PeerID(name) {
            guard all.contains(id) else { throw .notMember(name) }
            return id
        }
        let prefix = name.uppercased()
        let isPrefix = prefix.utf8.count >= PeerID.shortestPrefix
        // As everywhere, an alias comes before the names that peers give themselves.
        let aliased = all.filter { self.alias(of: $0) == name }
        let meant =
            aliased.isEmpty
            ? all.filter { self.ownName(ofMember: $0, in: held) == name || (isPrefix && $0.description.hasPrefix(prefix)) } : aliased
        guard let first = meant.first else { throw .notMember(name) }
        guard meant.count == 1 else { throw .ambiguous(name, meant.map { ($0, self.name(ofMember: $0, in: held)) }) }
        return first
    }

    private func name(ofMember peer: PeerID, in group: HeldGroup) -> String {
        self.alias(of: peer) ?? self.ownName(ofMember: peer, in: group)
    }

    private func alias(of peer: PeerID) -> String? { self.records[peer]?.standing.stored?.alias?.description }

    /// The name that a member has given itself.
    private func ownName(ofMember peer: PeerID, in group: HeldGroup) -> String {
        if let record = self.records[peer], record.link.provenName != nil { return record.ownName }
        return group.records.seat(of: peer)?.name.description ?? peer.description
    }

    // MARK: Snapshots

    func snapshot(_ held: HeldGroup) -> Group {
        let records = held.records
        let membership = records.membership
        var members = membership.members.compactMap { self.member($0, of: held, isFull: false) }
        members += membership.full.compactMap { self.member($0, of: held, isFull: true) }
        members.sort { ($0.joined.milliseconds, $0.peerID) < ($1.joined.milliseconds, $1.peerID) }
        return Group(
            id: held.id, name: records.terms.name.description, creator: records.charter.creator, isClosed: records.charter.isClosed,
            isUnprotected: records.charter.isUnprotected, state: held.isJoined ? .joined : .joining,
            role: records.charter.creator == self.id ? .creator : .member, members: members,
            removalsLeft: max(0, EarshotLimits.groupRecords - records.removals.count),
            created: WallTime(milliseconds: records.charter.createdAtMilliseconds))
    }

    private func member(_ member: GroupMembership.Member, of held: HeldGroup, isFull: Bool) -> Group.Member? {
        guard let seat = held.records.seats[member.seat] else { return nil }
        let record = self.records[member.peer]
        let state: Group.Member.State
        var error: Peer.Failure?
        if isFull {
            state = .full
        } else if member.peer == self.id {
            state = .connected
        } else if record?.trust == .blocked {
            state = .blocked
        } else if record?.groups.isAttached(held.id) == true {
            state = .connected
        } else {
            state = record?.reach.isDialling == true ? .connecting : .notConnected
            error = record.flatMap { self.failure(of: $0, in: held) }
        }
        return Group.Member(
            peerID: member.peer, name: self.name(ofMember: member.peer, in: held), state: state, error: error,
            joined: WallTime(milliseconds: seat.joinedAtMilliseconds), invitedBy: seat.voucher)
    }

    private func failure(of record: PeerRecord, in held: HeldGroup) -> Peer.Failure? {
        if let facts = record.link.current?.facts, !self.knowsGroups(facts) {
            return Peer.Failure(code: .unsupported, message: Self.words(noGroups: record.name))
        }
        if let facts = record.link.current?.facts, !self.mayCarry(held, facts) {
            return Peer.Failure(
                code: .encryptionMismatch, message: "\(record.name) is connected without TLS, and the group is for protected connections")
        }
        return record.failure
    }

    /// Publishes a group's state if the change is visible to a user.
    mutating func publishGroup(_ id: GroupID) {
        self.groups.forgetNews(of: id)
        guard let held = self.groups[id], !held.isOver else { return }
        let group = self.snapshot(held)
        guard held.published != group else { return }
        self.groups.update(id) { $0.publish(group) }
        self.publish(.groupChanged(group))
    }

    /// Publishes a group's state after a short delay, together with other changes until then: members often come and go in numbers.
    mutating func publishGroupSoon(_ id: GroupID) {
        if self.groups.addNews(of: id) { self.set(.groupNews, after: EarshotLimits.groupNewsDelay) }
    }

    mutating func publishGroupNews() {
        for id in self.groups.takeNews() { self.publishGroup(id) }
    }

    // MARK: Creating a group

    private mutating func createGroup(_ name: String, isClosed: Bool, isUnprotected: Bool, _ call: CallID) throws(EarshotError) {
        let name = try self.displayName(name)
        guard let key = self.key, let own = self.settings.name else {
            throw EarshotError(.unavailable, "this machine has no key to sign with")
        }
        guard self.groups.count < EarshotLimits.groups else { throw .tooManyGroups }
        let time = self.now.wall.milliseconds
        do throws(WireError) {
            let nonce = (0..<WireLimits.groupNonce).map { _ in UInt8(truncatingIfNeeded: self.random.next()) }
            let charter = try GroupCharter(
                nonce: nonce, creatorKey: key.publicKey, creatorScheme: key.scheme, isClosed: isClosed, isUnprotected: isUnprotected,
                createdAtMilliseconds: time)
            let terms = GroupTerms(number: 1, name: name)
            let seat = GroupSeat(
                publicKey: key.publicKey, scheme: key.scheme, name: own, number: 1, joinedAtMilliseconds: time, voucher: self.id,
                voucherNumber: 1, warrant: GroupSeat.Warrant(.creator))
            let id = charter.id
            let inputs = [
                try terms.signedBytes(in: id), try seat.signedBytes(as: .peer, in: id), try seat.signedBytes(as: .creator, in: id),
            ]
            self.emit(.sign(self.groups.signatures.beginSigning(.create(charter, terms, seat, call)), inputs))
        } catch {
            throw EarshotError(.invalidParameter, "the group cannot be made: \(error)")
        }
    }

    // MARK: Records that only the creator makes

    private mutating func say(_ name: DisplayName, isOver: Bool, of group: GroupID, _ call: CallID) throws(EarshotError) {
        guard let held = self.groups[group] else { return }
        guard held.records.terms.number < UInt32.max else { throw EarshotError(.noSpace, "the group has been renamed too often") }
        let terms = GroupTerms(number: held.records.terms.number + 1, name: name, isDissolved: isOver)
        let input = try self.input { () throws(WireError) in try terms.signedBytes(in: group) }
        self.emit(.sign(self.groups.signatures.beginSigning(.terms(terms, of: group, call)), [input]))
    }

    private func input(_ make: () throws(WireError) -> [UInt8]) throws(EarshotError) -> [UInt8] {
        do throws(WireError) {
            return try make()
        } catch {
            throw EarshotError(.invalidParameter, "the group's record cannot be made: \(error)")
        }
    }

    /// Removes a member. The members that came in through it stay, with seats that the creator countersigns, unless `withInvited` is set.
    private mutating func remove(_ peer: PeerID, from group: GroupID, withInvited: Bool, _ call: CallID) throws(EarshotError) {
        guard let held = self.groups[group], let number = held.records.highestSeat(of: peer) else { throw .notMember(peer) }
        let removal = GroupRemoval(peer: peer, number: number)
        if held.records.refusal(of: .removal(removal)) == .full {
            throw EarshotError(.noSpace, "the group has had too many removals", remedy: .renewGroup)
        }
        let seats = withInvited ? [] : held.records.seatsFalling(with: removal)
        var inputs: [[UInt8]] = []
        for seat in seats { inputs.append(try self.input { () throws(WireError) in try seat.signedBytes(as: .creator, in: group) }) }
        inputs.append(try self.input { () throws(WireError) in try removal.signedBytes(in: group) })
        self.emit(.sign(self.groups.signatures.beginSigning(.removal(removal, seats: seats, of: group, call)), inputs))
    }

    // MARK: Leaving

    private mutating func leaveGroup(_ group: GroupID, _ call: CallID) throws(EarshotError) {
        guard let held = self.groups[group] else { return }
        if let invitation = held.invitation {
            // The inviter may still let this machine in, and then hears that this machine has left.
            self.stopJoining(group, invitation, .cancelled, EarshotError(.cancelled, "a user here has left the group"))
            // A write that records the admission, by this invitation or an earlier one, may be in flight. A restart before this write would
            // load it.
            return self.decide(.group(.keep(group, call)))
        }
        guard let key = self.key, let number = held.records.highestSeat(of: self.id) else {
            throw EarshotError(.unavailable, "this machine has no key to sign with")
        }
        let leave = GroupLeave(publicKey: key.publicKey, scheme: key.scheme, number: number)
        let input = try self.input { () throws(WireError) in try leave.signedBytes(in: group) }
        self.emit(.sign(self.groups.signatures.beginSigning(.leave(leave, of: group, call)), [input]))
    }
}

extension EarshotError {
    static func unknownGroup(_ name: String) -> Self {
        Self(.unknownGroup, "this machine is in no group \"\(name)\"", remedy: .listGroups)
    }

    static func notMember(_ peer: some CustomStringConvertible) -> Self { Self(.notMember, "\(peer) is no member of the group") }

    static func aloneInGroup(_ group: GroupLabel) -> Self {
        Self(.invalidParameter, "there is no other member in the group \(group.name) to send to")
    }

    static var tooManyGroups: Self {
        Self(.noSpace, "this machine is in \(EarshotLimits.groups) groups already; leave one first")
    }
}
