package import EarshotWire
package import OrderedCollections

/// The signed records of a group, and the members that follow from them (the DocC article "Groups" of EarshotWire).
///
/// Records are merged in any order and never undone, except for seats and leaves that exceed the limits. The choice of these does not
/// depend on the order either. All machines with the same records therefore have the same members, and they come to hold the same records
/// as soon as any path has carried them. Each record is checked before it is merged: ``checks(for:)`` names the keys to check it with.
package struct GroupRecords: Sendable, Hashable {
    /// A seat that is held, with the hash that identifies it.
    package struct Seat: Sendable, Hashable {
        package let hash: GroupRecordHash
        package let record: GroupSeat
    }

    /// The checks that a record needs, or the reason why it is refused.
    package enum Checks: Sendable, Hashable {
        /// Every signature in the list has to be valid.
        case verify([ProofCheck])
        case refuse(Refusal)
    }

    /// The reason why a record is refused.
    package enum Refusal: Sendable, Hashable {
        /// This side already holds the record, or one that takes precedence over it.
        case known
        /// A seat that does not count. These records void it, and its sender does not know them.
        case void(by: [GroupRecord])
        /// A seat whose voucher's seat is missing here, or does not count. The sender must show the voucher's seat first.
        case unvouched
        /// A record of another group, or one that nobody may make, such as a removal of the creator.
        case invalid
        /// A leave or a removal, while `EarshotLimits.groupRecords` of its kind are held that take precedence over it.
        case full
    }

    package let charter: GroupCharter
    package private(set) var terms: GroupTerms
    /// The seats by hash. ``forget()`` drops the seats that are not kept, at the end of an exchange.
    package private(set) var seats: OrderedDictionary<GroupRecordHash, GroupSeat> = [:]
    package private(set) var leaves: OrderedDictionary<PeerID, GroupLeave> = [:]
    package private(set) var removals: OrderedDictionary<PeerID, GroupRemoval> = [:]
    /// The members and kept seats that follow from the records.
    package private(set) var membership = GroupMembership()
    /// The hashes of all held records, sorted: the same records give the same list.
    package private(set) var hashes: [GroupRecordHash] = []
    /// A digest of the held records, which two sides compare. The evidence for leaves is not part of it, because earlier releases discard
    /// evidence.
    package private(set) var digest: GroupRecordHash
    /// The hashes of the records that are not stored by hash, cached because peers ask for all hashes, and often.
    private var termsHash: GroupRecordHash
    private var leaveHashes: OrderedDictionary<PeerID, GroupRecordHash> = [:]
    private var removalHashes: OrderedDictionary<PeerID, GroupRecordHash> = [:]
    /// The leave with the weakest claim to its place, if there are as many leaves as allowed. Among the peers of which no seat is kept,
    /// that is the leave of the peer with the highest id; if there is no such peer, the highest id of all. The same records give the same
    /// leave, so that all machines with too many leaves keep the same ones. Anyone can forge a leave of an unknown key, but a kept seat has
    /// used a voucher's place.
    private var lastLeave: LeavePlace?

    private struct LeavePlace: Sendable, Hashable {
        let hasSeat: Bool
        let peer: PeerID

        static func goesBefore(_ one: Self, _ other: Self) -> Bool {
            one.hasSeat == other.hasSeat ? one.peer < other.peer : one.hasSeat
        }
    }

    package var id: GroupID { self.charter.id }

    /// Creates a group from its charter and terms alone. Both were checked already.
    package init(_ charter: GroupCharter, _ terms: GroupTerms) {
        self.charter = charter
        self.terms = terms
        self.termsHash = GroupRecord.terms(terms).hash(in: charter.id)
        self.hashes = [self.termsHash]
        self.digest = .digest(of: self.hashes)
    }

    /// Creates a group from its stored records, in any order. They were checked before they were stored.
    /// Returns `nil` if there are no terms.
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

    /// Returns the signatures that have to be valid before a record is merged, or the reason to refuse it.
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

    /// Returns the reason to refuse a record regardless of its signatures, or `nil`.
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

    /// Updates ``lastLeave`` after seats or leaves have changed.
    private mutating func findLastLeave() {
        guard self.leaves.count >= EarshotLimits.groupRecords else { return self.lastLeave = nil }
        self.lastLeave = self.leaves.keys.map(self.place(ofLeaveOf:)).max(by: LeavePlace.goesBefore)
    }

    private func place(ofLeaveOf peer: PeerID) -> LeavePlace { LeavePlace(hasSeat: self.membership.seated.contains(peer), peer: peer) }

    /// Whether there is room for the leave of a peer of which no leave is held. A member's leave always has room, however many leaves
    /// of unknown keys other members send.
    private func hasRoom(forLeaveOf peer: PeerID) -> Bool {
        guard let last = self.lastLeave else { return true }
        return LeavePlace.goesBefore(self.place(ofLeaveOf: peer), last)
    }

    private func refusal(of seat: GroupSeat) -> Refusal? {
        // The creator vouches for itself alone, and nobody else vouches for the creator.
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
        // A held seat that no longer counts was refused above as void, so that its sender hears why.
        return self.seats[seat.hash(in: self.id)] == nil ? nil : .known
    }

    /// Whether terms take precedence over others: dissolved ones first, then the highest number, then the lower hash.
    private static func goesBefore(_ one: GroupTerms, _ other: GroupTerms, in group: GroupID) -> Bool {
        if one.isDissolved != other.isDissolved { return one.isDissolved }
        if one.number != other.number { return one.number > other.number }
        return GroupRecord.terms(one).hash(in: group) < GroupRecord.terms(other).hash(in: group)
    }

    // MARK: Merging

    /// Merges a record that was checked. Returns the reason for a refusal if the records have changed since the check.
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

    /// Recomputes the membership and the hashes after the records have changed. Dropping seats that are not kept does not change the
    /// result.
    private mutating func recount() {
        self.membership = GroupMembership(of: self)
        let others = [self.termsHash] + self.leaveHashes.values + self.removalHashes.values
        self.digest = .digest(of: (others + self.membership.needed).sorted())
        self.hashes = (others + self.membership.needed + self.membership.evidence).sorted()
        self.findLastLeave()
    }

    /// Drops the seats that are not kept: seats that do not count, seats that a later seat of their peer replaces, seats that were left,
    /// and seats for which there is no room. A seat on which a kept seat rests stays. Call this at the end of an exchange: during the
    /// exchange, a seat may be needed for a seat that follows.
    package mutating func forget() {
        let membership = self.membership
        guard membership.needed.count + membership.evidence.count < self.seats.count else { return }
        self.seats = self.seats.filter { membership.keeps($0.key) }
        self.findLastLeave()
    }

    /// Whether a merged record is passed on to others. A seat for which there is no room is not.
    func goesOn(_ record: GroupRecord) -> Bool {
        guard case .seat(let seat) = record, self.seats.count > EarshotLimits.groupRecords else { return true }
        return self.membership.keeps(seat.hash(in: self.id))
    }

    /// Returns how many of these peers would be members if this inviter let them in now.
    func room(for peers: [PeerID], letInBy inviter: PeerID) -> Int {
        let after = GroupMembership(of: self, and: peers, letInBy: inviter)
        return peers.count(where: after.contains)
    }

    /// Returns the seats of the members that would lose their membership through a removal, except the removed peer itself. These members
    /// came in through that peer.
    func seatsFalling(with removal: GroupRemoval) -> [GroupSeat] {
        var after = self
        after.merge(.removal(removal))
        let left = after.membership
        return (self.membership.members + self.membership.full).filter { member in
            member.peer != removal.peer && !left.isCandidate(member.peer)
        }.compactMap { self.seats[$0.seat] }
    }

    // MARK: Comparing

    /// All held records except the charter.
    package var all: [GroupRecord] { self.lacking(in: []) }

    /// Returns a member's seat after the seats on which it rests. These records prove to another side that the peer is a member.
    package func path(to peer: PeerID) -> [GroupRecord] {
        guard let member = self.membership.members.first(where: { $0.peer == peer }) else { return [] }
        return self.membership.path(to: member.seat).compactMap { self.seats[$0].map { .seat($0) } }
    }

    /// Returns the seat by which a peer is a member.
    package func seat(of peer: PeerID) -> GroupSeat? {
        self.membership.members.first { $0.peer == peer }.flatMap { self.seats[$0.seat] }
    }

    /// Returns the record that ended a peer's membership: its removal, or its own leave.
    func end(of peer: PeerID) -> GroupRecord? { self.removals[peer].map { .removal($0) } ?? self.leaves[peer].map { .leave($0) } }

    /// Returns the highest number among a peer's held seats.
    func highestSeat(of peer: PeerID) -> UInt32? { self.seats.values.lazy.filter { $0.peer == peer }.map(\.number).max() }

    /// Returns the records that another side lacks, given the hashes that it holds. Removals and leaves come first, and each seat follows
    /// the seats on which it rests.
    package func lacking(in others: Set<GroupRecordHash>) -> [GroupRecord] {
        var records: [GroupRecord] =
            [.terms(self.terms)] + self.removals.values.map { .removal($0) } + self.leaves.values.map { .leave($0) }
        records += self.membership.inOrder.filter(self.membership.keeps).compactMap { self.seats[$0].map { .seat($0) } }
        return others.isEmpty ? records : records.filter { !others.contains($0.hash(in: self.id)) }
    }

    /// Returns the next seat number for a peer, above all its known numbers; `nil` if there is none left.
    package func nextNumber(of peer: PeerID) -> UInt32? {
        let highest = max(self.highestSeat(of: peer) ?? 0, self.leaves[peer]?.number ?? 0, self.removals[peer]?.number ?? 0)
        return highest < EarshotLimits.groupSeatNumber ? highest + 1 : nil
    }
}

extension WireID where Kind == GroupRecordHashKind {
    /// Compares the bytes in order.
    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}

extension [GroupRecordHash] {
    package func sorted() -> [GroupRecordHash] { self.sorted { $0 < $1 } }
}
