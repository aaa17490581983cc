package import EarshotWire
package import OrderedCollections

/// Who is in a group, by its records alone.
package struct GroupMembership: Sendable, Hashable {
    /// One peer that has a seat.
    package struct Member: Sendable, Hashable {
        package let peer: PeerID
        /// Its seat.
        package let seat: GroupRecordHash
    }

    /// At most `EarshotLimits.groupMembers`: the creator, those whom it has signed for, lower ids.
    package private(set) var members: [Member] = []
    /// Those for whom there is no room.
    package private(set) var full: [Member] = []
    /// The seats that count, each behind its voucher's.
    package private(set) var inOrder: OrderedSet<GroupRecordHash> = []
    /// Those of them on which a member rests, or one without room.
    package private(set) var needed: OrderedSet<GroupRecordHash> = []
    /// Of a peer and number, the seat that goes before the others that count: the creator's word, then the lower hash.
    private var best: OrderedDictionary<Place, GroupRecordHash> = [:]
    /// The seat by which a peer and number was reached first, on the shortest way from the creator's word: the one that goes before others
    /// may rest on the peer itself.
    private var first: OrderedDictionary<Place, GroupRecordHash> = [:]

    private struct Place: Hashable, Sendable {
        let peer: PeerID
        let number: UInt32
    }

    /// Of no group.
    init() {}

    /// Of a group with these records.
    init(of records: GroupRecords) {
        self.count(records)
        self.seat(records)
        self.need(records)
    }

    /// Whether a peer is a member.
    package func contains(_ peer: PeerID) -> Bool { self.members.contains { $0.peer == peer } }

    /// Whether a peer is a member, or would be if there were room.
    func isCandidate(_ peer: PeerID) -> Bool { self.contains(peer) || self.full.contains { $0.peer == peer } }

    /// The seat of that peer and number that counts.
    func countingSeat(_ peer: PeerID, _ number: UInt32, of records: GroupRecords) -> GroupSeat? {
        self.best[Place(peer: peer, number: number)].flatMap { records.seats[$0] }
    }

    /// From the creator's word on, from voucher to vouched: a circle of vouchers is never reached.
    private mutating func count(_ records: GroupRecords) {
        let sorted = records.seats.sorted { $0.key < $1.key }
        var vouched: OrderedDictionary<Place, [GroupRecordHash]> = [:]
        for (hash, seat) in sorted {
            let removal = records.removals[seat.peer]
            switch seat.warrant.role {
            case .creator:
                if removal.map({ seat.number > $0.number }) ?? true { self.take(hash, seat, of: records) }
            case .voucher:
                guard removal == nil, !records.charter.isClosed else { continue }
                vouched[Place(peer: seat.voucher, number: seat.voucherNumber), default: []].append(hash)
            case .peer: continue
            }
        }
        var index = 0
        while index < self.inOrder.count {
            if let seat = records.seats[self.inOrder[index]] {
                let place = Place(peer: seat.peer, number: seat.number)
                for hash in vouched.removeValue(forKey: place) ?? [] {
                    if let next = records.seats[hash] { self.take(hash, next, of: records) }
                }
            }
            index += 1
        }
    }

    private mutating func take(_ hash: GroupRecordHash, _ seat: GroupSeat, of records: GroupRecords) {
        self.inOrder.append(hash)
        let place = Place(peer: seat.peer, number: seat.number)
        if self.first[place] == nil { self.first[place] = hash }
        guard let other = self.best[place], let held = records.seats[other] else { return self.best[place] = hash }
        if Self.goesBefore((hash, seat), (other, held)) { self.best[place] = hash }
    }

    /// Of seats of one peer and number: the creator's word, then the lower hash.
    private static func goesBefore(_ one: (hash: GroupRecordHash, seat: GroupSeat), _ other: (hash: GroupRecordHash, seat: GroupSeat))
        -> Bool
    {
        let (isOwn, isOthers) = (one.seat.warrant.role == .creator, other.seat.warrant.role == .creator)
        return isOwn == isOthers ? one.hash < other.hash : isOwn
    }

    /// The highest seat of each peer that has not left it, in the order in which there is room.
    private mutating func seat(_ records: GroupRecords) {
        var highest: OrderedDictionary<PeerID, (number: UInt32, hash: GroupRecordHash)> = [:]
        for (place, hash) in self.best where place.number > records.leaves[place.peer]?.number ?? 0 {
            if highest[place.peer].map({ $0.number < place.number }) ?? true { highest[place.peer] = (place.number, hash) }
        }
        let creator = records.charter.creator
        let ranked = highest.map { (peer, seat) in
            (
                member: Member(peer: peer, seat: seat.hash),
                rank: peer == creator ? 0 : records.seats[seat.hash]?.warrant.role == .creator ? 1 : 2
            )
        }.sorted { ($0.rank, $0.member.peer) < ($1.rank, $1.member.peer) }.map(\.member)
        self.members = Array(ranked.prefix(EarshotLimits.groupMembers))
        self.full = Array(ranked.dropFirst(EarshotLimits.groupMembers))
    }

    /// A seat, behind those that it rests on, from the creator's word on.
    func path(to seat: GroupRecordHash, of records: GroupRecords) -> [GroupRecordHash] {
        var path: OrderedSet<GroupRecordHash> = []
        var next: GroupRecordHash? = seat
        while let hash = next, path.append(hash).inserted { next = self.voucherSeat(of: hash, of: records) }
        return path.reversed()
    }

    /// The seat of its voucher that it rests on; `nil` for the creator's word.
    private func voucherSeat(of hash: GroupRecordHash, of records: GroupRecords) -> GroupRecordHash? {
        guard let seat = records.seats[hash], seat.warrant.role == .voucher else { return nil }
        return self.first[Place(peer: seat.voucher, number: seat.voucherNumber)]
    }

    /// Those seats, and from each its voucher's, up to the creator's word.
    private mutating func need(_ records: GroupRecords) {
        for member in self.members + self.full {
            var next: GroupRecordHash? = member.seat
            while let hash = next, self.needed.append(hash).inserted { next = self.voucherSeat(of: hash, of: records) }
        }
    }
}
