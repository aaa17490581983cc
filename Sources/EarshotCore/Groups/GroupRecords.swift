package import EarshotWire
package import OrderedCollections

/// The signed records that a group is made of, and who its members are by them (the DocC article "Groups" of EarshotWire).
///
/// Records are merged in any order and never undone, but for seats and leaves beyond those that there is room for. Which ones these are does not
/// depend on the order either, so that all who hold the same records have the same members, and hold the same ones as soon as any path has
/// carried them. Each is checked before it is merged: ``checks(for:)`` says by which keys.
package struct GroupRecords: Sendable, Hashable {
    /// A seat that is held, with what tells it apart and whether it counts.
    package struct Seat: Sendable, Hashable {
        package let hash: GroupRecordHash
        package let record: GroupSeat
    }

    /// By what a record is to be checked, or why it is not taken.
    package enum Checks: Sendable, Hashable {
        /// All of these signatures have to be valid.
        case verify([ProofCheck])
        case refuse(Refusal)
    }

    /// Why a record is not taken.
    package enum Refusal: Sendable, Hashable {
        /// It is held, or something that goes before it.
        case known
        /// A seat that does not count: void by these records, which who has shown it does not know.
        case void(by: [GroupRecord])
        /// A seat whose voucher's is not there, or does not count: whoever shows it shows that one first.
        case unvouched
        /// Another group's, or one that nobody may make, such as a removal of the creator.
        case invalid
        /// A leave or a removal: `EarshotLimits.groupRecords` of its kind are held, which go before it.
        case full
    }

    package let charter: GroupCharter
    package private(set) var terms: GroupTerms
    /// By hash; those that are not kept are forgotten once an exchange is over (``forget()``).
    package private(set) var seats: OrderedDictionary<GroupRecordHash, GroupSeat> = [:]
    package private(set) var leaves: OrderedDictionary<PeerID, GroupLeave> = [:]
    package private(set) var removals: OrderedDictionary<PeerID, GroupRemoval> = [:]
    /// What follows from them.
    package private(set) var membership = GroupMembership()
    /// The hashes of everything that is held, in their order: the same records give the same ones.
    package private(set) var hashes: [GroupRecordHash] = []
    /// What tells all that is held from what another holds; not the evidence for leaves, which an older version forgets.
    package private(set) var digest: GroupRecordHash
    /// The hashes of what is not kept by its hash: peers ask for all of them, and may often.
    private var termsHash: GroupRecordHash
    private var leaveHashes: OrderedDictionary<PeerID, GroupRecordHash> = [:]
    private var removalHashes: OrderedDictionary<PeerID, GroupRecordHash> = [:]
    /// Which leave has the last claim to its place, where there are as many as may be: of the peers of which no seat is kept, the highest id;
    /// else of all. The same records give the same one, so that all who hold more than there is room for keep the same. Anyone can make up a
    /// leave; a seat that is kept has taken a voucher's turn.
    private var lastLeave: LeavePlace?

    private struct LeavePlace: Sendable, Hashable {
        let hasSeat: Bool
        let peer: PeerID

        static func goesBefore(_ one: Self, _ other: Self) -> Bool {
            one.hasSeat == other.hasSeat ? one.peer < other.peer : one.hasSeat
        }
    }

    package var id: GroupID { self.charter.id }

    /// A group of which only its charter and its terms are known, which were checked.
    package init(_ charter: GroupCharter, _ terms: GroupTerms) {
        self.charter = charter
        self.terms = terms
        self.termsHash = GroupRecord.terms(terms).hash(in: charter.id)
        self.hashes = [self.termsHash]
        self.digest = .digest(of: self.hashes)
    }

    /// What was kept of a group: it was checked before it was kept, and may come in any order.
    /// `nil` without terms.
    package init?(_ kept: StoredGroup) {
        guard case .terms(let terms)? = kept.records.first(where: { $0.kind == .terms }) else { return nil }
        self.init(kept.charter, terms)
        for record in kept.records {
            switch record {
            case .charter: break
            case .terms(let terms): if self.refusal(of: record) == nil { self.take(terms) }
            case .seat(let seat): self.seats[seat.hash(in: self.id)] = seat
            case .leave(let leave): self.take(leave)
            case .removal(let removal): self.take(removal)
            }
        }
        self.recount()
    }

    // MARK: Checking

    /// What has to be valid of a record for it to be merged.
    package func checks(for record: GroupRecord) -> Checks {
        if let refusal = self.refusal(of: record) { return .refuse(refusal) }
        do throws(WireError) {
            switch record {
            case .charter: return .verify([])
            case .terms(let terms): return .verify([self.creatorCheck(try terms.signedBytes(in: self.id), terms.signature)])
            case .removal(let removal): return .verify([self.creatorCheck(try removal.signedBytes(in: self.id), removal.signature)])
            case .leave(let leave):
                let input = try leave.signedBytes(in: self.id)
                return .verify([ProofCheck(scheme: leave.scheme, publicKey: leave.publicKey, input: input, signature: leave.signature)])
            case .seat(let seat):
                let own = ProofCheck(
                    scheme: seat.scheme, publicKey: seat.publicKey, input: try seat.signedBytes(as: .peer, in: self.id),
                    signature: seat.signature)
                let input = try seat.signedBytes(as: seat.warrant.role, in: self.id)
                guard seat.warrant.role == .voucher else { return .verify([own, self.creatorCheck(input, seat.warrant.signature)]) }
                guard let voucher = self.membership.countingSeat(seat.voucher, seat.voucherNumber, of: self) else {
                    return .refuse(.unvouched)
                }
                let warrant = ProofCheck(
                    scheme: voucher.scheme, publicKey: voucher.publicKey, input: input, signature: seat.warrant.signature)
                return .verify([own, warrant])
            }
        } catch {
            return .refuse(.invalid)
        }
    }

    private func creatorCheck(_ input: [UInt8], _ signature: [UInt8]) -> ProofCheck {
        ProofCheck(scheme: self.charter.creatorScheme, publicKey: self.charter.creatorKey, input: input, signature: signature)
    }

    /// Why a record is not taken whatever its signatures, if so.
    package func refusal(of record: GroupRecord) -> Refusal? {
        switch record {
        case .charter(let charter): return charter.id == self.id ? .known : .invalid
        case .terms(let terms): return Self.goesBefore(terms, self.terms, in: self.id) ? nil : .known
        case .leave(let leave):
            if let removal = self.removals[leave.peer], removal.number >= leave.number { return .known }
            guard let held = self.leaves[leave.peer] else { return self.hasRoom(forLeaveOf: leave.peer) ? nil : .full }
            return held.number < leave.number ? nil : .known
        case .removal(let removal):
            guard removal.peer != self.charter.creator else { return .invalid }
            guard let held = self.removals[removal.peer] else { return self.removals.count < EarshotLimits.groupRecords ? nil : .full }
            return held.number < removal.number ? nil : .known
        case .seat(let seat): return self.refusal(of: seat)
        }
    }

    /// Once seats or leaves have changed.
    private mutating func findLastLeave() {
        guard self.leaves.count >= EarshotLimits.groupRecords else { return self.lastLeave = nil }
        self.lastLeave = self.leaves.keys.map(self.place(ofLeaveOf:)).max(by: LeavePlace.goesBefore)
    }

    private func place(ofLeaveOf peer: PeerID) -> LeavePlace { LeavePlace(hasSeat: self.membership.seated.contains(peer), peer: peer) }

    /// Whether a leave has a place, of a peer of which none is held: a member's has one whatever members say of keys that nobody knows.
    private func hasRoom(forLeaveOf peer: PeerID) -> Bool {
        guard let last = self.lastLeave else { return true }
        return LeavePlace.goesBefore(self.place(ofLeaveOf: peer), last)
    }

    private func refusal(of seat: GroupSeat) -> Refusal? {
        // The creator vouches for itself alone, and nobody else does.
        guard seat.peer != self.charter.creator || seat.warrant.role == .creator else { return .invalid }
        if let removal = self.removals[seat.peer], seat.warrant.role == .voucher || seat.number <= removal.number {
            return .void(by: [.removal(removal)])
        }
        if seat.warrant.role == .voucher {
            // Only the creator lets others in: no honest member vouches.
            guard !self.charter.isClosed, seat.voucher != seat.peer else { return .invalid }
            guard self.membership.countingSeat(seat.voucher, seat.voucherNumber, of: self) != nil else {
                return self.removals[seat.voucher].map { .void(by: [.removal($0)]) } ?? .unvouched
            }
        }
        // One that is held and does not count any more is void all the same, and who shows it hears why.
        return self.seats[seat.hash(in: self.id)] == nil ? nil : .known
    }

    /// Of terms the highest number counts, then the lower hash; that a group is dissolved goes before any that say otherwise.
    private static func goesBefore(_ one: GroupTerms, _ other: GroupTerms, in group: GroupID) -> Bool {
        if one.isDissolved != other.isDissolved { return one.isDissolved }
        if one.number != other.number { return one.number > other.number }
        return GroupRecord.terms(one).hash(in: group) < GroupRecord.terms(other).hash(in: group)
    }

    // MARK: Merging

    /// Takes a record in that was checked; returns why not, where something has changed since then.
    @discardableResult
    package mutating func merge(_ record: GroupRecord) -> Refusal? {
        if let refusal = self.refusal(of: record) { return refusal }
        switch record {
        case .charter: break
        case .terms(let terms): self.take(terms)
        case .leave(let leave):
            if self.leaves[leave.peer] == nil, let last = self.lastLeave {
                self.leaves[last.peer] = nil
                self.leaveHashes[last.peer] = nil
            }
            self.take(leave)
        case .removal(let removal):
            self.take(removal)
            if let leave = self.leaves[removal.peer], leave.number <= removal.number {
                self.leaves[removal.peer] = nil
                self.leaveHashes[removal.peer] = nil
            }
        case .seat(let seat):
            if self.seats.count >= EarshotLimits.groupSeatsHeld { self.forget() }
            self.seats[seat.hash(in: self.id)] = seat
        }
        self.recount()
        return nil
    }

    private mutating func take(_ terms: GroupTerms) {
        self.terms = terms
        self.termsHash = GroupRecord.terms(terms).hash(in: self.id)
    }

    private mutating func take(_ leave: GroupLeave) {
        self.leaves[leave.peer] = leave
        self.leaveHashes[leave.peer] = GroupRecord.leave(leave).hash(in: self.id)
    }

    private mutating func take(_ removal: GroupRemoval) {
        self.removals[removal.peer] = removal
        self.removalHashes[removal.peer] = GroupRecord.removal(removal).hash(in: self.id)
    }

    /// What follows from the records, once they have changed. Forgetting what is not needed changes nothing of it.
    private mutating func recount() {
        self.membership = GroupMembership(of: self)
        let others = [self.termsHash] + self.leaveHashes.values + self.removalHashes.values
        self.digest = .digest(of: (others + self.membership.needed).sorted())
        self.hashes = (others + self.membership.needed + self.membership.evidence).sorted()
        self.findLastLeave()
    }

    /// Forgets the seats that are not kept: those that do not count, those that are behind another of their peer or have been left, and those
    /// for which there is no room; but not one on which a seat rests that is kept. For the end of an exchange: within it, a seat may be there
    /// for one that follows.
    package mutating func forget() {
        let membership = self.membership
        guard membership.needed.count + membership.evidence.count < self.seats.count else { return }
        self.seats = self.seats.filter { membership.keeps($0.key) }
        self.findLastLeave()
    }

    /// Whether a record that was merged goes on to others: not a seat for which there is no room.
    func goesOn(_ record: GroupRecord) -> Bool {
        guard case .seat(let seat) = record, self.seats.count > EarshotLimits.groupRecords else { return true }
        return self.membership.keeps(seat.hash(in: self.id))
    }

    /// How many of these peers would be members if a member let them in now.
    func room(for peers: [PeerID], letInBy inviter: PeerID) -> Int {
        let after = GroupMembership(of: self, and: peers, letInBy: inviter)
        return peers.count(where: after.contains)
    }

    /// The seats of members that would be none any more with a removal, but for whom it removes: that came in through that one.
    func seatsFalling(with removal: GroupRemoval) -> [GroupSeat] {
        var after = self
        after.merge(.removal(removal))
        let left = after.membership
        return (self.membership.members + self.membership.full).filter { member in
            member.peer != removal.peer && !left.isCandidate(member.peer)
        }.compactMap { self.seats[$0.seat] }
    }

    // MARK: Comparing

    /// Everything that is held but the charter.
    package var all: [GroupRecord] { self.lacking(in: []) }

    /// A member's seat, behind those that it rests on: what shows another side that it is a member.
    package func path(to peer: PeerID) -> [GroupRecord] {
        guard let member = self.membership.members.first(where: { $0.peer == peer }) else { return [] }
        return self.membership.path(to: member.seat).compactMap { self.seats[$0].map { .seat($0) } }
    }

    /// The seat by which a peer is a member.
    package func seat(of peer: PeerID) -> GroupSeat? {
        self.membership.members.first { $0.peer == peer }.flatMap { self.seats[$0.seat] }
    }

    /// Why a peer is no member that was one: its removal, or its own leave.
    func end(of peer: PeerID) -> GroupRecord? { self.removals[peer].map { .removal($0) } ?? self.leaves[peer].map { .leave($0) } }

    /// The highest number of a seat of a peer's that is held.
    func highestSeat(of peer: PeerID) -> UInt32? { self.seats.values.lazy.filter { $0.peer == peer }.map(\.number).max() }

    /// The records that another does not hold, of which these are the hashes: each seat behind those that it rests on, and what takes away
    /// first.
    package func lacking(in others: Set<GroupRecordHash>) -> [GroupRecord] {
        var records: [GroupRecord] =
            [.terms(self.terms)] + self.removals.values.map { .removal($0) } + self.leaves.values.map { .leave($0) }
        records += self.membership.inOrder.filter(self.membership.keeps).compactMap { self.seats[$0].map { .seat($0) } }
        return others.isEmpty ? records : records.filter { !others.contains($0.hash(in: self.id)) }
    }

    /// The seat number that a peer is to take next: above all that are known of it; `nil` where there is none left.
    package func nextNumber(of peer: PeerID) -> UInt32? {
        let highest = max(self.highestSeat(of: peer) ?? 0, self.leaves[peer]?.number ?? 0, self.removals[peer]?.number ?? 0)
        return highest < EarshotLimits.groupSeatNumber ? highest + 1 : nil
    }
}

extension WireID where Kind == GroupRecordHashKind {
    /// The order of the bytes.
    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}

extension [GroupRecordHash] {
    package func sorted() -> [GroupRecordHash] { self.sorted { $0 < $1 } }
}
