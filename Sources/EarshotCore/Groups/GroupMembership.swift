package import EarshotWire
package import OrderedCollections

/// The members of a group, computed from its records alone.
///
/// Seats form a tree. Each seat hangs on its voucher's seat, and seats that the creator signed stand at the top. If there are more seats
/// than may be kept, or more peers than may be members, places are given **round-robin** among the branches of every seat (`turns(of:)`).
/// A member that vouches for many keys therefore takes places only from peers that came in the same way, and never from another branch
/// that has not had its share. The result does not depend on the order in which the records came.
package struct GroupMembership: Sendable, Hashable {
    /// A peer that has a seat.
    package struct Member: Sendable, Hashable {
        package let peer: PeerID
        /// The peer's seat.
        package let seat: GroupRecordHash
    }

    /// The members, at most `EarshotLimits.groupMembers`: first the creator, then the peers that the creator signed for, then the others,
    /// round-robin.
    package private(set) var members: [Member] = []
    /// The candidates for whom there is no room.
    package private(set) var full: [Member] = []
    /// The counting seats, one for each peer and number, each after its voucher's seat.
    package private(set) var inOrder: OrderedSet<GroupRecordHash> = []
    /// The counting seats on which a member rests, or a candidate without room. Together with ``evidence``, at most
    /// `EarshotLimits.groupRecords`.
    package private(set) var needed: OrderedSet<GroupRecordHash> = []
    /// The seats that are kept only for the leaves that void them, and the seats on which those rest. Without the seat, anyone could forge
    /// a leave for it.
    package private(set) var evidence: OrderedSet<GroupRecordHash> = []
    /// The peers of which a seat is kept.
    private(set) var seated: Set<PeerID> = []
    /// The counting seat of each peer and number.
    private var places: OrderedDictionary<Place, Seat> = [:]

    struct Place: Hashable, Sendable {
        let peer: PeerID
        let number: UInt32
    }

    private struct Seat: Hashable, Sendable {
        let hash: GroupRecordHash
        /// The index of the voucher's seat; `nil` for a seat that the creator signed.
        let voucher: Int?
    }

    /// Creates an empty membership, of no group.
    init() {}

    /// Creates the membership of a group with these records, as if the given inviter also let in these newcomers.
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

    /// Returns the counting seat of a peer and number.
    func countingSeat(_ peer: PeerID, _ number: UInt32, of records: GroupRecords) -> GroupSeat? {
        self.places[Place(peer: peer, number: number)].flatMap { records.seats[$0.hash] }
    }

    // MARK: Counting

    /// Counts seats level by level, from the seats that the creator signed down to the vouched ones. A circle of vouchers is never reached.
    /// If a peer has several seats with one number, the seat with the fewest vouchers above it counts, then the seat with the lower hash.
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

    /// Adds the seats that the newcomers would have.
    private mutating func add(_ newcomers: [PeerID], letInBy inviter: PeerID, _ records: GroupRecords) {
        let own = self.highest { $0.peer == inviter }.first
        for (number, peer) in newcomers.enumerated() {
            let hash = GroupRecordHash(high: 0, low: UInt64(number))
            self.inOrder.append(hash)
            self.places[Place(peer: peer, number: .max)] = Seat(hash: hash, voucher: inviter == records.charter.creator ? nil : own)
        }
    }

    /// Returns the highest seat of each peer that has not left that seat.
    private func candidates(_ records: GroupRecords) -> Set<Int> {
        self.highest { $0.number > records.leaves[$0.peer]?.number ?? 0 }
    }

    /// Returns the highest seat of each peer up to the seat that the peer has left.
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

    // MARK: Seats to keep

    /// Returns the seats that are kept, round-robin. Each seat that a candidate needs is a branch of its voucher's seat. All seats that
    /// only leaves need form one more branch together.
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
        // Vouchers come first in the table. Going backwards handles the seats that a seat vouched for before that seat.
        var orders = [[Int]](repeating: [], count: count)
        func branched(_ index: Int) -> [Int] {
            let (own, rest) = branches[index]
            return Self.turns(of: own.map { orders[$0] } + [Self.turns(of: rest.map { orders[$0] })])
        }
        for index in (0..<count).reversed() where live[index] || left[index] { orders[index] = [index] + branched(index) }
        return branched(count).prefix(EarshotLimits.groupRecords)
    }

    /// Returns the first element of each branch, then the second of each, and so on.
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

    /// Marks these seats and the seats on which they rest.
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

    // MARK: Chains of vouchers

    /// Returns the chain of vouchers of a seat, from the seat that the creator signed down to the seat itself.
    func path(to seat: GroupRecordHash) -> [GroupRecordHash] {
        guard let index = self.inOrder.firstIndex(of: seat) else { return [] }
        return self.path(to: index).reversed()
    }

    /// Returns a seat, its voucher's seat, and so on up to the seat that the creator signed.
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
