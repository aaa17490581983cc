package import EarshotWire
package import OrderedCollections

/// Who is in a group, by its records alone.
///
/// Seats form a tree: each hangs on that of its voucher, and those that the creator has signed stand at the top. Where there are more seats
/// than may be kept, or more peers than may be members, places are given **in turns** among the branches of every seat (``turns(of:)``).
/// A member that vouches for many keys so takes places from those alone that came in the same way, and never from another branch that has
/// not had its share. The result does not depend on the order in which the records came.
package struct GroupMembership: Sendable, Hashable {
    /// One peer that has a seat.
    package struct Member: Sendable, Hashable {
        package let peer: PeerID
        /// Its seat.
        package let seat: GroupRecordHash
    }

    /// At most `EarshotLimits.groupMembers`: the creator, those whom it has signed for, the others in turns.
    package private(set) var members: [Member] = []
    /// Those for whom there is no room.
    package private(set) var full: [Member] = []
    /// The seats that count, one of each peer and number, each behind its voucher's.
    package private(set) var inOrder: OrderedSet<GroupRecordHash> = []
    /// Those of them on which a member rests, or one without room. With the evidence, at most `EarshotLimits.groupRecords`.
    package private(set) var needed: OrderedSet<GroupRecordHash> = []
    /// Seats that are kept only for the leaves that void them, and the seats on which those rest: a leave whose seat nobody held would be anyone's
    /// to make up.
    package private(set) var evidence: OrderedSet<GroupRecordHash> = []
    /// The peers of which a seat is kept.
    private(set) var seated: Set<PeerID> = []
    /// Of each peer and number, the seat that counts.
    private var places: OrderedDictionary<Place, Seat> = [:]

    struct Place: Hashable, Sendable {
        let peer: PeerID
        let number: UInt32
    }

    private struct Seat: Hashable, Sendable {
        let hash: GroupRecordHash
        /// The index of its voucher's; `nil` for one that the creator has signed.
        let voucher: Int?
    }

    /// Of no group.
    init() {}

    /// Of a group with these records, as it would be if a member let in these peers, too.
    init(of records: GroupRecords, and newcomers: [PeerID] = [], letInBy inviter: PeerID? = nil) {
        self.count(records)
        if let inviter { self.add(newcomers, letInBy: inviter, records) }
        let candidates = self.candidates(records)
        let leavers = self.leftSeats(records)
        let kept = self.kept(candidates: candidates, leavers: leavers, creator: records.charter.creator)
        for index in kept where candidates.contains(index) {
            let member = Member(peer: self.places.keys[index].peer, seat: self.places.values[index].hash)
            if self.members.count < EarshotLimits.groupMembers { self.members.append(member) } else { self.full.append(member) }
            self.add(pathTo: index, to: \.needed)
        }
        for index in kept where leavers.contains(index) { self.add(pathTo: index, to: \.evidence) }
        self.evidence.subtract(self.needed)
        self.seated = Set(kept.filter { self.keeps(self.places.values[$0].hash) }.map { self.places.keys[$0].peer })
    }

    /// Whether a peer is a member.
    package func contains(_ peer: PeerID) -> Bool { self.members.contains { $0.peer == peer } }

    /// Whether a peer is a member, or would be if there were room.
    func isCandidate(_ peer: PeerID) -> Bool { self.contains(peer) || self.full.contains { $0.peer == peer } }

    /// Whether a seat is kept.
    func keeps(_ seat: GroupRecordHash) -> Bool { self.needed.contains(seat) || self.evidence.contains(seat) }

    /// The seat of that peer and number that counts.
    func countingSeat(_ peer: PeerID, _ number: UInt32, of records: GroupRecords) -> GroupSeat? {
        self.places[Place(peer: peer, number: number)].flatMap { records.seats[$0.hash] }
    }

    // MARK: Counting

    /// From the creator's word on, level by level from voucher to vouched: a circle of vouchers is never reached. Of several seats of one peer and
    /// number that with the fewest vouchers above it counts, then the lower hash.
    private mutating func count(_ records: GroupRecords) {
        var level: [(hash: GroupRecordHash, place: Place, voucher: Int?)] = []
        var vouched: OrderedDictionary<Place, [(hash: GroupRecordHash, place: Place)]> = [:]
        for (hash, seat) in records.seats {
            let (removal, place) = (records.removals[seat.peer], Place(peer: seat.peer, number: seat.number))
            switch seat.warrant.role {
            case .creator: if removal.map({ seat.number > $0.number }) ?? true { level.append((hash, place, nil)) }
            case .voucher:
                guard removal == nil, !records.charter.isClosed else { continue }
                vouched[Place(peer: seat.voucher, number: seat.voucherNumber), default: []].append((hash, place))
            case .peer: continue
            }
        }
        while !level.isEmpty {
            let first = self.places.count
            level.sort { $0.hash < $1.hash }
            for (hash, place, voucher) in level where self.places[place] == nil {
                self.places[place] = Seat(hash: hash, voucher: voucher)
                self.inOrder.append(hash)
            }
            level = []
            for index in first..<self.places.count {
                for (hash, place) in vouched[self.places.keys[index]] ?? [] { level.append((hash, place, index)) }
            }
        }
    }

    /// Seats that are not there yet.
    private mutating func add(_ newcomers: [PeerID], letInBy inviter: PeerID, _ records: GroupRecords) {
        let own = self.highest { $0.peer == inviter }.first
        for (number, peer) in newcomers.enumerated() {
            let hash = GroupRecordHash(high: 0, low: UInt64(number))
            self.inOrder.append(hash)
            self.places[Place(peer: peer, number: .max)] = Seat(hash: hash, voucher: inviter == records.charter.creator ? nil : own)
        }
    }

    /// The highest seat of each peer that has not left it.
    private func candidates(_ records: GroupRecords) -> Set<Int> {
        self.highest { $0.number > records.leaves[$0.peer]?.number ?? 0 }
    }

    /// The highest seat of each peer up to the one that it has left.
    private func leftSeats(_ records: GroupRecords) -> Set<Int> {
        guard !records.leaves.isEmpty else { return [] }
        return self.highest { $0.number <= records.leaves[$0.peer]?.number ?? 0 }
    }

    private func highest(where isMeant: (Place) -> Bool) -> Set<Int> {
        var found: OrderedDictionary<PeerID, Int> = [:]
        for (index, place) in self.places.keys.enumerated() where isMeant(place) {
            if found[place.peer].map({ self.places.keys[$0].number < place.number }) ?? true { found[place.peer] = index }
        }
        return Set(found.values)
    }

    // MARK: Who has a place

    /// The seats that are kept, in turns. What is needed by a candidate is a branch of its voucher's; what is there for leaves alone, all of it
    /// together, is one more.
    private func kept(candidates: Set<Int>, leavers: Set<Int>, creator: PeerID) -> ArraySlice<Int> {
        let count = self.places.count
        let (live, left) = (self.withVouchers(candidates), self.withVouchers(leavers))
        var branches = [(live: [Int], left: [Int])](repeating: ([], []), count: count + 1)
        let ranked = (0..<count).sorted { one, other in
            let (first, second) = (self.places.keys[one], self.places.keys[other])
            if first.peer == second.peer { return first.number < second.number }
            if first.peer == creator || second.peer == creator { return first.peer == creator }
            return first.peer < second.peer
        }
        for index in ranked {
            let voucher = self.places.values[index].voucher ?? count
            if live[index] { branches[voucher].live.append(index) } else if left[index] { branches[voucher].left.append(index) }
        }
        // Vouchers come first in the table: from its end on, those that a seat has vouched for are done before it.
        var orders = [[Int]](repeating: [], count: count)
        func branched(_ index: Int) -> [Int] {
            let (own, rest) = branches[index]
            return Self.turns(of: own.map { orders[$0] } + [Self.turns(of: rest.map { orders[$0] })])
        }
        for index in (0..<count).reversed() where live[index] || left[index] { orders[index] = [index] + branched(index) }
        return branched(count).prefix(EarshotLimits.groupRecords)
    }

    /// The first of each, then the second of each, and so on.
    private static func turns(of branches: [[Int]]) -> [Int] {
        var open = branches.filter { !$0.isEmpty }
        guard open.count > 1 else { return open.first ?? [] }
        var order: [Int] = []
        var turn = 0
        while !open.isEmpty {
            for branch in open { order.append(branch[turn]) }
            turn += 1
            open.removeAll { $0.count == turn }
        }
        return order
    }

    /// Which seats these are, and those on which they rest.
    private func withVouchers(_ ends: Set<Int>) -> [Bool] {
        var marked = [Bool](repeating: false, count: self.places.count)
        for end in marked.indices where ends.contains(end) {
            var next: Int? = end
            while let index = next, !marked[index] {
                marked[index] = true
                next = self.places.values[index].voucher
            }
        }
        return marked
    }

    // MARK: What a seat rests on

    /// A seat, behind those that it rests on, from the creator's word on.
    func path(to seat: GroupRecordHash) -> [GroupRecordHash] {
        guard let index = self.inOrder.firstIndex(of: seat) else { return [] }
        return self.path(to: index).reversed()
    }

    /// A seat, its voucher's, and so on up to the creator's word.
    private func path(to seat: Int) -> [GroupRecordHash] {
        var path: [GroupRecordHash] = []
        var next: Int? = seat
        while let index = next {
            path.append(self.places.values[index].hash)
            next = self.places.values[index].voucher
        }
        return path
    }

    private mutating func add(pathTo seat: Int, to set: WritableKeyPath<Self, OrderedSet<GroupRecordHash>>) {
        for hash in self.path(to: seat) {
            guard self[keyPath: set].append(hash).inserted else { return }
        }
    }
}
