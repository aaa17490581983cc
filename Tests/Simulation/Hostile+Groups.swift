import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The knowledge of hostile peers about a group. One of them may be a member, or the creator.
struct HeardGroup {
    let charter: GroupCharter
    /// The latest records that they received or made, to be sent again.
    private(set) var records: [GroupRecord] = []

    init(_ charter: GroupCharter) { self.charter = charter }

    mutating func hear(_ record: GroupRecord) {
        guard !self.records.contains(record) else { return }
        self.records.append(record)
        if self.records.count > 48 { self.records.removeFirst() }
    }
}

/// The group frames of hostile peers. They admit anyone, also each other in circles, replay old seats after a removal, forge signatures,
/// and create groups of which they tell each member different records.
extension World {
    private static let scheme = SignatureScheme.ed25519

    /// Returns a key that one side of a connection may sign with: its own, or one that nobody connects with.
    private func key(on link: Int, _ side: Int, _ number: Int) -> [UInt8] {
        let machine = self.links[link].ends[side].machine
        let own = self.machines[machine].identities.firstIndex(of: self.links[link].ends[side].id) ?? 0
        // Few keys, so that a group has room for all of their records.
        return [UInt8(machine), UInt8(number == 0 ? own : 64 + number)]
    }

    private func sign(_ bytes: [UInt8]?, by key: [UInt8]) -> [UInt8] { bytes.map { ToySignature.sign($0, by: key) } ?? [] }

    private func seat(
        of key: [UInt8], in group: GroupID, number: UInt32, at milliseconds: Int64, by voucher: [UInt8], _ voucherNumber: UInt32,
        as role: GroupRecord.Role
    ) -> GroupSeat? {
        guard let name = try? DisplayName("mal") else { return nil }
        var seat = GroupSeat(
            publicKey: key, scheme: Self.scheme, name: name, number: number, joinedAtMilliseconds: milliseconds,
            voucher: PeerID(subjectPublicKeyInfo: voucher), voucherNumber: voucherNumber, warrant: GroupSeat.Warrant(role))
        seat.signature = self.sign(try? seat.signedBytes(as: .peer, in: group), by: key)
        seat.warrant.signature = self.sign(try? seat.signedBytes(as: role, in: group), by: voucher)
        return seat
    }

    // MARK: Unsolicited frames

    mutating func anyGroupFrame(on link: Int, _ side: Int, _ random: inout SplitMix64) -> Frame {
        let own = self.key(on: link, side, 0)
        guard !self.heardGroups.isEmpty, random.chance(85) else { return self.hostileInvite(by: own, &random) }
        let place = random.below(self.heardGroups.count)
        let (group, heard) = (self.heardGroups.keys[place], self.heardGroups.values[place])
        let number = UInt32(random.number(in: 1...3))
        let (one, other) = (self.key(on: link, side, random.below(3)), self.key(on: link, side, random.below(3)))
        let isCreator = heard.charter.creatorKey == own
        let role = random.chance(isCreator ? 70 : 5) ? GroupRecord.Role.creator : .voucher
        let record: GroupRecord?
        switch random.below(20) {
        case 0...6:
            let vouching = isCreator && role == .creator ? own : other
            record = self.seat(
                of: one, in: group, number: number, at: random.one(of: [0, 1_785_585_600_000]), by: vouching,
                UInt32(random.number(in: 1...2)), as: role
            ).map { .seat($0) }
        case 7, 8:
            var leave = GroupLeave(publicKey: one, scheme: Self.scheme, number: number)
            leave.signature = self.sign(try? leave.signedBytes(in: group), by: random.chance(95) ? one : other)
            record = .leave(leave)
        case 9:
            // Another's removal counts as a fault, after which the connection is closed. A creator's removal is valid.
            var removal = GroupRemoval(peer: self.machines[random.below(self.machines.count)].id, number: number)
            removal.signature = self.sign(try? removal.signedBytes(in: group), by: own)
            record = isCreator || random.chance(20) ? .removal(removal) : nil
        case 10:
            record = isCreator || random.chance(20) ? self.terms(of: group, number: number, by: own, &random).map { .terms($0) } : nil
        case 11...14: record = heard.records.isEmpty ? nil : random.one(of: heard.records)
        case 15:
            let message = MessageFrame(
                session: SessionID(high: group.high, low: group.low), id: MessageID(using: &random),
                mode: random.one(of: [.reliable, .unreliable, .resumed]), sequence: random.next() >> 1, sentAtMilliseconds: 0,
                contentType: "", body: ByteBuffer())
            return .message(message)
        case 16: return .group(.index(group, random.chance(50) ? [] : [GroupRecordHash(using: &random)]))
        default:
            let count = random.one(of: [1, 1, 3])
            return .group(.names((0..<count).map { _ in GroupName(group: group, digest: GroupRecordHash(using: &random)) }))
        }
        guard let record else { return .group(.names([])) }
        self.heardGroups[group]?.hear(record)
        return .group(.record(record, of: group))
    }

    // MARK: Crowds

    /// Admits many keys to a group in which the hostile peer is a member, also through each other, and has some of them leave. Leaves of
    /// keys that nobody admitted are sent too. These records try to take the room of others.
    mutating func crowd(by hostile: Int, _ choice: Int, _ count: Int, seed: Int) {
        let places = self.links.indices.flatMap { link in self.crowdedGroups(on: link, by: hostile) }
        guard !places.isEmpty else { return }
        let (link, side, group, seatNumber) = places[choice % places.count]
        let own = self.key(on: link, side, 0)
        var random = SplitMix64(seed: self.schedule.seed, 15, UInt64(seed))
        func key(_ number: Int) -> [UInt8] { [UInt8(hostile), 0xFF, UInt8(number >> 8), UInt8(number & 0xFF)] }
        // Seats through other keys must not count for more than seats of its own.
        let isTree = random.chance(30)
        let leaves = random.one(of: [0, 0, 40, 90])
        let first = random.below(100)
        for number in first..<(first + count) {
            let (one, other) = (key(number), isTree && number > first ? key(random.number(in: first...(number - 1))) : own)
            if random.chance(90) {
                let voucherNumber = other == own ? seatNumber : 1
                guard let seat = self.seat(of: one, in: group, number: 1, at: 0, by: other, voucherNumber, as: .voucher) else { continue }
                self.say(.group(.record(.seat(seat), of: group)), on: link, side)
            }
            guard random.chance(leaves) else { continue }
            var leave = GroupLeave(publicKey: one, scheme: Self.scheme, number: 1)
            leave.signature = self.sign(try? leave.signedBytes(in: group), by: one)
            self.say(.group(.record(.leave(leave), of: group)), on: link, side)
        }
    }

    /// Returns the open groups of an honest machine in which the hostile peer is a member by the key of their connection, and the number of
    /// its seat.
    private func crowdedGroups(on link: Int, by hostile: Int) -> [(link: Int, side: Int, group: GroupID, seatNumber: UInt32)] {
        let ends = self.links[link].ends
        guard let side = ends.indices.first(where: { ends[$0].machine == hostile && ends[$0].isOpen }) else { return [] }
        return (self.machines[ends[1 - side].machine].core?.keptGroups ?? []).compactMap { group in
            guard !group.stored.isOver, !group.stored.charter.isClosed, group.members.contains(ends[side].id) else { return nil }
            let numbers = group.stored.records.compactMap {
                if case .seat(let seat) = $0, seat.peer == ends[side].id { seat.number } else { nil }
            }
            return numbers.max().map { (link, side, group.stored.id, $0) }
        }
    }

    private func terms(of group: GroupID, number: UInt32, by key: [UInt8], _ random: inout SplitMix64) -> GroupTerms? {
        guard let name = try? DisplayName("trap \(random.below(3))") else { return nil }
        var terms = GroupTerms(number: number, name: name, isDissolved: random.chance(10))
        terms.signature = self.sign(try? terms.signedBytes(in: group), by: key)
        return terms
    }

    /// Invites others to a group of its own.
    private mutating func hostileInvite(by key: [UInt8], _ random: inout SplitMix64) -> Frame {
        let nonce = [UInt8](repeating: UInt8(random.below(2)), count: WireLimits.groupNonce)
        guard
            let charter = try? GroupCharter(
                nonce: nonce, creatorKey: key, creatorScheme: Self.scheme, isClosed: nonce[0] == 1, isUnprotected: true,
                createdAtMilliseconds: 0),
            let terms = self.terms(of: charter.id, number: 1, by: key, &random)
        else { return .group(.names([])) }
        if self.heardGroups[charter.id] == nil { self.heardGroups[charter.id] = HeardGroup(charter) }
        return .group(
            .invite(
                GroupInvite(
                    id: InvitationID(using: &random), timeoutMilliseconds: 60_000, charter: charter, terms: terms, members: 1,
                    voucherNumber: 1, seatNumber: 1, context: [])))
    }

    // MARK: Answers

    mutating func groupAnswers(to frame: GroupFrame, on link: Int, _ side: Int, _ random: inout SplitMix64) -> [Frame] {
        let own = self.key(on: link, side, 0)
        switch frame {
        case .invite(let invite):
            let charter = invite.charter
            if self.heardGroups[charter.id] == nil, self.heardGroups.count < 4 { self.heardGroups[charter.id] = HeardGroup(charter) }
            self.sessionIDs.append(SessionID(high: charter.id.high, low: charter.id.low))
            guard random.chance(80), let name = try? DisplayName("mal") else {
                return [.group(.inviteAnswer(GroupInviteAnswer(id: invite.id, decision: random.one(of: [.declined, .busy]))))]
            }
            let inviter = self.links[link].ends[1 - side].id
            var seat = GroupSeat(
                publicKey: own, scheme: Self.scheme, name: name, number: invite.seatNumber, joinedAtMilliseconds: 0, voucher: inviter,
                voucherNumber: invite.voucherNumber, warrant: GroupSeat.Warrant(inviter == charter.creator ? .creator : .voucher))
            // Forged sometimes, without drawing from the random numbers of others.
            let signer = invite.id.low % 16 == 0 ? self.key(on: link, side, 1) : own
            seat.signature = self.sign(try? seat.signedBytes(as: .peer, in: charter.id), by: signer)
            return [.group(.inviteAnswer(GroupInviteAnswer(id: invite.id, decision: .accepted(seat))))]
        case .inviteAnswer(let answer):
            // The seat of a peer that has accepted: usually admitted, and told of the group's creator.
            guard case .accepted(var seat) = answer.decision, random.chance(85),
                let group = self.heardGroups.keys.first(where: { self.heardGroups[$0]?.charter.creatorKey == own }),
                let creator = self.seat(of: own, in: group, number: 1, at: 0, by: own, 1, as: .creator)
            else { return [] }
            seat.warrant = GroupSeat.Warrant(.creator)
            seat.warrant.signature = self.sign(try? seat.signedBytes(as: .creator, in: group), by: own)
            let records: [GroupRecord] = [.seat(creator), .seat(seat)]
            for record in records { self.heardGroups[group]?.hear(record) }
            let names = GroupFrame.names([GroupName(group: group, digest: GroupRecordHash(using: &random))])
            return records.map { .group(.record($0, of: group)) } + [.group(names)]
        case .record(let record, let group):
            self.heardGroups[group]?.hear(record)
            return random.chance(10) ? [self.anyGroupFrame(on: link, side, &random)] : []
        case .names(let names):
            return names.filter { self.heardGroups[$0.group] != nil && random.chance(60) }.flatMap { name in
                let digest = random.chance(50) ? name.digest : GroupRecordHash(using: &random)
                return [
                    Frame.group(.names([GroupName(group: name.group, digest: digest)])), .group(.index(name.group, [])),
                ]
            }
        case .index(let group, _):
            guard let heard = self.heardGroups[group], random.chance(80) else { return [] }
            // In random order.
            var records = heard.records
            for place in records.indices { records.swapAt(place, random.below(records.count)) }
            return records.prefix(random.number(in: 0...24)).map { .group(.record($0, of: group)) }
        case .inviteWithdraw: return []
        }
    }

    // MARK: Invariants

    /// Checks that all records of a group have valid signatures. Runs at the end only, because of its cost.
    mutating func checkSignatures(of group: StoredGroup, at machine: Int) {
        let seats = group.records.compactMap { if case .seat(let seat) = $0 { seat } else { nil } }
        for record in group.records {
            let isSigned: Bool
            switch record {
            case .charter: isSigned = true
            case .terms(let terms):
                isSigned = terms.signature == self.sign(try? terms.signedBytes(in: group.id), by: group.charter.creatorKey)
            case .removal(let removal):
                isSigned = removal.signature == self.sign(try? removal.signedBytes(in: group.id), by: group.charter.creatorKey)
            case .leave(let leave): isSigned = leave.signature == self.sign(try? leave.signedBytes(in: group.id), by: leave.publicKey)
            case .seat(let seat):
                let voucher =
                    seat.warrant.role == .creator
                    ? group.charter.creatorKey
                    : seats.first { $0.peer == seat.voucher && $0.number == seat.voucherNumber }?.publicKey
                let warrant = voucher.map { self.sign(try? seat.signedBytes(as: seat.warrant.role, in: group.id), by: $0) }
                isSigned =
                    seat.signature == self.sign(try? seat.signedBytes(as: .peer, in: group.id), by: seat.publicKey)
                    && seat.warrant.signature == warrant
            }
            if !isSigned { self.fail(.groups, "\(machine) holds of \(group.id) what nobody has signed: \(record)") }
        }
    }

    /// Checks that the peers that the creator has admitted, directly or through one other, find room in the group whatever hostile members
    /// send, if all of them are honest.
    mutating func checkRoom(_ group: NodeCore.KeptGroup, at machine: Int) {
        guard !group.full.isEmpty else { return }
        self.counts[.crowdedGroups] += 1
        let honest = Set(self.machines.filter { !$0.isHostile }.map(\.id))
        guard honest.contains(group.stored.charter.creator) else { return }
        let seats = group.stored.records.compactMap { if case .seat(let seat) = $0 { seat } else { nil } }
        func isSigned(_ peer: PeerID, _ number: UInt32) -> Bool {
            seats.contains { $0.peer == peer && $0.number == number && $0.warrant.role == .creator }
        }
        for peer in group.full where honest.contains(peer) {
            let own = seats.filter { $0.peer == peer }
            let isLetIn = own.contains { seat in
                honest.contains(seat.voucher) && (seat.warrant.role == .creator || isSigned(seat.voucher, seat.voucherNumber))
            }
            if isLetIn {
                self.fail(.groups, "\(machine) has no room for \(peer) in \(group.stored.id), where others are made up")
            }
        }
    }

    /// Checks that each member was admitted by another, up to the creator, and that none of them was removed since. This computes from the
    /// member upwards, while the core computes from the creator downwards.
    mutating func checkMembers(_ members: [PeerID], of group: StoredGroup, at machine: Int) {
        var (seats, leaves, removals): ([GroupSeat], [PeerID: UInt32], [PeerID: UInt32]) = ([], [:], [:])
        for record in group.records {
            switch record {
            case .seat(let seat): seats.append(seat)
            case .leave(let leave): leaves[leave.peer] = leave.number
            case .removal(let removal): removals[removal.peer] = removal.number
            case .charter, .terms: break
            }
        }
        struct Place: Hashable {
            let peer: PeerID
            let number: UInt32
        }
        /// Whether a peer has such a seat by right, without the seats that depend on it.
        func isSeated(_ place: Place, for others: Set<Place>) -> Bool {
            seats.contains { seat in
                guard seat.peer == place.peer, seat.number == place.number else { return false }
                if seat.warrant.role == .creator { return place.number > removals[place.peer] ?? 0 }
                let voucher = Place(peer: seat.voucher, number: seat.voucherNumber)
                guard removals[place.peer] == nil, !group.charter.isClosed, !others.contains(voucher) else { return false }
                return isSeated(voucher, for: others.union([voucher]))
            }
        }
        for member in members {
            let numbers = Set(seats.filter { $0.peer == member }.map(\.number)).filter { $0 > leaves[member] ?? 0 }
            let places = numbers.map { Place(peer: member, number: $0) }
            if !places.contains(where: { isSeated($0, for: [$0]) }) {
                self.fail(.groups, "\(machine) takes \(member) for a member of \(group.id), which nobody has let in")
            }
        }
    }
}
