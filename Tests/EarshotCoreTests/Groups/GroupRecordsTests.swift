import EarshotWire
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore

/// The members that follow from records, independently of the records' order and path.
@Suite struct GroupRecordsTests {
    /// Keys that sign nothing here: merged records count as checked.
    private static func key(_ number: UInt8) -> [UInt8] { [0x30, number] }

    private static func peer(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: self.key(number)) }

    private static func charter(isClosed: Bool = false) throws -> GroupCharter {
        try GroupCharter(
            nonce: [UInt8](repeating: 7, count: 16), creatorKey: self.key(0), creatorScheme: .ed25519, isClosed: isClosed,
            createdAtMilliseconds: 1)
    }

    private static func terms(_ number: UInt32 = 1, _ name: String = "team", isDissolved: Bool = false) throws -> GroupTerms {
        GroupTerms(number: number, name: try DisplayName(name), isDissolved: isDissolved, signature: [1])
    }

    private static func seat(
        _ peer: UInt8, _ number: UInt32 = 1, by voucher: UInt8 = 0, _ voucherNumber: UInt32 = 1, role: GroupRecord.Role? = nil,
        name: String = "x"
    ) throws -> GroupRecord {
        .seat(
            GroupSeat(
                publicKey: self.key(peer), scheme: .ed25519, name: try DisplayName(name), number: number, joinedAtMilliseconds: 2,
                voucher: self.peer(voucher), voucherNumber: voucherNumber, signature: [2],
                warrant: GroupSeat.Warrant(role ?? (voucher == 0 ? .creator : .voucher), signature: [3])))
    }

    private static func leave(_ peer: UInt8, _ number: UInt32 = 1) -> GroupRecord {
        .leave(GroupLeave(publicKey: self.key(peer), scheme: .ed25519, number: number, signature: [4]))
    }

    private static func removal(_ peer: UInt8, _ number: UInt32 = 1) -> GroupRecord {
        .removal(GroupRemoval(peer: self.peer(peer), number: number, signature: [5]))
    }

    private static func group(isClosed: Bool = false, _ records: GroupRecord...) throws -> GroupRecords {
        var group = GroupRecords(try self.charter(isClosed: isClosed), try self.terms())
        group.merge(try self.seat(0))
        for record in records { group.merge(record) }
        return group
    }

    private static func members(_ group: GroupRecords) -> Set<PeerID> { Set(group.membership.members.map(\.peer)) }

    // MARK: Members

    @Test func membersLetOthersIn() throws {
        let group = try Self.group(try Self.seat(1), try Self.seat(2, by: 1), try Self.seat(3, by: 2))
        #expect(Self.members(group) == [Self.peer(0), Self.peer(1), Self.peer(2), Self.peer(3)])
        #expect(group.membership.members.first?.peer == Self.peer(0))
        #expect(group.membership.members.dropFirst().first?.peer == Self.peer(1), "the creator's word goes before")
    }

    @Test func whoLeftIsNoMemberButItsGuestsAre() throws {
        var group = try Self.group(try Self.seat(1), try Self.seat(2, by: 1), Self.leave(1))
        #expect(Self.members(group) == [Self.peer(0), Self.peer(2)])
        group.forget()
        #expect(group.seats.count == 3, "the voucher's seat is needed")
        #expect(group.merge(try Self.seat(3, by: 1)) == nil, "it may have vouched before it left")
        #expect(group.nextNumber(of: Self.peer(1)) == 2)
        group.merge(try Self.seat(1, 2, by: 2))
        #expect(Self.members(group) == [Self.peer(0), Self.peer(1), Self.peer(2), Self.peer(3)])
    }

    @Test func whoIsRemovedTakesAlongThoseWhomItLetIn() throws {
        var group = try Self.group(try Self.seat(1), try Self.seat(2, by: 1), try Self.seat(3, by: 2), Self.removal(1))
        #expect(Self.members(group) == [Self.peer(0)])
        group.forget()
        #expect(group.seats.count == 1)
        #expect(group.merge(try Self.seat(1, by: 0)) == .void(by: [Self.removal(1)]))
        #expect(group.merge(try Self.seat(1, 2, by: 0, role: .voucher)) == .void(by: [Self.removal(1)]), "only by the creator")
        #expect(group.merge(try Self.seat(4, by: 1)) == .void(by: [Self.removal(1)]), "back-dated")
        #expect(group.merge(try Self.seat(1, 2)) == nil)
        #expect(Self.members(group) == [Self.peer(0), Self.peer(1)])
        #expect(group.merge(try Self.seat(4, by: 1, 2)) == nil, "let in again, it lets others in again")
    }

    @Test func whomTheCreatorHasSignedForStaysWithoutTheVoucher() throws {
        var group = try Self.group(try Self.seat(1), try Self.seat(2, by: 1), try Self.seat(2, by: 1, role: .creator), Self.removal(1))
        #expect(Self.members(group) == [Self.peer(0), Self.peer(2)])
        group.forget()
        #expect(group.seats.count == 2)
    }

    @Test func circlesDoNotCount() throws {
        var group = try Self.group()
        #expect(group.merge(try Self.seat(1, by: 2)) == .unvouched)
        #expect(group.merge(try Self.seat(1, by: 1)) == .invalid)
        #expect(group.merge(try Self.seat(0, 2, by: 1)) == .invalid, "nobody vouches for the creator")
        #expect(group.merge(Self.removal(0)) == .invalid)
        // Two peers vouch for each other. One of them was let in by a third peer, which is removed.
        for record in [try Self.seat(1), try Self.seat(2, by: 1), try Self.seat(3, by: 2), try Self.seat(2, 1, by: 3)] {
            group.merge(record)
        }
        #expect(group.membership.members.count == 4)
        group.merge(Self.removal(1))
        #expect(Self.members(group) == [Self.peer(0)])
    }

    /// A member lets in a peer that vouches for the member in turn. Whichever of its two seats comes first, the member stays by the seat
    /// that rests on the creator.
    @Test func whoIsVouchedForByItsOwnGuestKeepsItsVoucher() throws {
        var before: Set<Bool> = []
        for name in (0..<16).map({ "x\($0)" }) {
            let (own, others) = (try Self.seat(2, by: 1), try Self.seat(2, by: 3, 2, name: name))
            var group = try Self.group(try Self.seat(1), own, try Self.seat(3, 2, by: 2), others, Self.leave(1))
            let members = Self.members(group)
            #expect(members == [Self.peer(0), Self.peer(2), Self.peer(3)])
            before.insert(others.hash(in: group.id) < own.hash(in: group.id))
            let digest = group.digest
            group.forget()
            #expect(Self.members(group) == members)
            #expect(group.digest == digest)
            for member in members.subtracting([Self.peer(0)]) {
                var other = try Self.group()
                for record in group.path(to: member) { #expect(other.merge(record) == nil, "each behind those that it rests on") }
                #expect(Self.members(other).contains(member))
            }
            // The records are loaded at the next start in any order.
            var again = try Self.group()
            for record in group.all { again.merge(record) }
            #expect(Self.members(again) == members)
            #expect(again.digest == digest)
        }
        #expect(before == [true, false])
    }

    @Test func inAClosedGroupOnlyTheCreatorLetsIn() throws {
        var group = try Self.group(isClosed: true, try Self.seat(1))
        #expect(group.merge(try Self.seat(2, by: 1)) == .invalid)
        #expect(group.merge(try Self.seat(2, by: 1, role: .creator)) == nil)
        #expect(Self.members(group).count == 3)
    }

    @Test func termsOfTheHighestNumber() throws {
        var group = try Self.group()
        #expect(group.merge(.terms(try Self.terms())) == .known)
        #expect(group.merge(.terms(try Self.terms(3, "three"))) == nil)
        #expect(group.merge(.terms(try Self.terms(2, "two"))) == .known)
        var other = try Self.group(.terms(try Self.terms(3, "drei")))
        other.merge(.terms(try Self.terms(3, "three")))
        group.merge(.terms(try Self.terms(3, "drei")))
        #expect(group.terms == other.terms, "of one number the same wins everywhere")
        #expect(group.merge(.terms(try Self.terms(2, "over", isDissolved: true))) == nil)
        #expect(group.merge(.terms(try Self.terms(9, "back"))) == .known, "dissolved is final")
        #expect(group.terms.isDissolved)
    }

    @Test func noMoreThanTheLimits() throws {
        #expect(EarshotLimits.groupMembers == 64 && EarshotLimits.groupRecords == 256)
        var group = try Self.group(try Self.seat(1))
        for number in UInt8(2)...65 { #expect(group.merge(try Self.seat(number, by: 1)) == nil) }
        #expect(group.membership.members.count == 64 && group.membership.full.count == 2)
        let last = try #require(group.membership.full.last?.peer)
        let others = group.membership.members.dropFirst(2).map(\.peer)
        #expect(others.allSatisfy { $0 < last })
        // The creator's signature makes room for the peer.
        let number = try #require((UInt8(2)...65).first { Self.peer($0) == last })
        group.merge(try Self.seat(number, by: 1, role: .creator))
        #expect(group.membership.contains(last) && group.membership.full.count == 2)
        for number in UInt8(66)...254 { group.merge(try Self.seat(number, by: 1)) }
        #expect(group.membership.needed.count == 255)
        for number in UInt8(2)...10 { group.merge(try Self.seat(number, 2, by: 1)) }
        #expect(group.membership.needed.count == 255, "the later seat of a peer takes the place of the earlier one")
        group.merge(try Self.seat(255, by: 1))
        group.forget()
        #expect(group.membership.needed.count == 256 && group.seats.count == 256)
        for number in UInt8(1)...255 { group.merge(Self.leave(number, 2)) }
        #expect(group.merge(Self.leave(0)) == nil)
        #expect(group.leaves.count == 256)
        for number in UInt8(1)...255 { group.merge(Self.removal(number, 2)) }
        #expect(group.leaves.keys.elementsEqual([Self.peer(0)]), "a removal says more than a leave")
    }

    // MARK: Checks

    @Test func whoseSignatureARecordNeeds() throws {
        let group = try Self.group(try Self.seat(1))
        func keys(_ record: GroupRecord) -> [[UInt8]]? {
            guard case .verify(let checks) = group.checks(for: record) else { return nil }
            return checks.map(\.publicKey)
        }
        #expect(keys(.terms(try Self.terms(2))) == [Self.key(0)])
        #expect(keys(try Self.seat(2)) == [Self.key(2), Self.key(0)])
        #expect(keys(try Self.seat(2, by: 1)) == [Self.key(2), Self.key(1)])
        #expect(keys(try Self.seat(2, by: 1, role: .creator)) == [Self.key(2), Self.key(0)])
        #expect(keys(Self.leave(1)) == [Self.key(1)])
        #expect(keys(Self.removal(1)) == [Self.key(0)])
        #expect(group.checks(for: try Self.seat(3, by: 2)) == .refuse(.unvouched))
        guard case .verify(let checks) = group.checks(for: try Self.seat(2, by: 1)) else { return }
        #expect(Set(checks.map(\.input)).count == 2, "no signature in one role is one in another")
        #expect(checks.allSatisfy { $0.input.starts(with: Array("earshot/1 group".utf8) + [3]) })
    }

    // MARK: Any order

    /// A holder of a group's records.
    private struct Holder {
        var group: GroupRecords

        /// Exchanges missing records in both directions, as over a connection. Both drop unneeded seats at the end.
        static func exchange(in holders: inout [Holder], _ first: Int, _ second: Int) {
            guard first != second else { return }
            var (one, other) = (holders[first], holders[second])
            defer { (holders[first], holders[second]) = (one, other) }
            let (mine, theirs) = (Set(one.group.hashes), Set(other.group.hashes))
            guard mine != theirs else { return }
            let there = one.group.lacking(in: theirs)
            let back = other.group.lacking(in: mine)
            for record in there { other.take(record, from: &one) }
            for record in back { one.take(record, from: &other) }
            one.group.forget()
            other.group.forget()
        }

        private mutating func take(_ record: GroupRecord, from other: inout Holder) {
            if case .void(let by)? = self.group.merge(record) { for record in by { other.group.merge(record) } }
        }
    }

    /// Holders let each other in, leave, are removed and let in again, each by the records that it has at the time, and meet at random.
    @Test(arguments: 0..<100) func theSameRecordsGiveTheSameMembers(_ number: Int) throws {
        var random = SplitMix64(seed: UInt64(number))
        let count = 8
        let start = try Self.group()
        var holders = Array(repeating: Holder(group: start), count: count)
        func seatNumber(_ holder: Int, _ peer: UInt8) -> UInt32? {
            let group = holders[holder].group
            return group.membership.members.first { $0.peer == Self.peer(peer) }.flatMap { group.seats[$0.seat]?.number }
        }
        for _ in 0..<60 {
            let actor = Int.random(in: 0..<count, using: &random)
            let other = Int.random(in: 0..<count, using: &random)
            let peer = UInt8(other)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                // The actor lets the other in. By the actor's records, the other may still be a member or not.
                guard other != 0, actor != other, let own = seatNumber(actor, UInt8(actor)) else { continue }
                let highest = [actor, other].compactMap { holders[$0].group.nextNumber(of: Self.peer(peer)) }.max() ?? 1
                let seat = try Self.seat(peer, highest, by: UInt8(actor), own)
                holders[actor].group.merge(seat)
                Holder.exchange(in: &holders, actor, other)
            case 4:
                guard other != 0, let own = seatNumber(other, peer) else { continue }
                holders[other].group.merge(Self.leave(peer, own))
            case 5:
                guard other != 0, let known = holders[0].group.nextNumber(of: Self.peer(peer)), known > 1 else { continue }
                holders[0].group.merge(Self.removal(peer, known - 1))
            case 6:
                // The creator countersigns a vouched seat.
                let seats = holders[0].group.seats.values.filter { $0.warrant.role == .voucher }
                guard let seat = seats.randomElement(using: &random) else { continue }
                var own = seat
                own.warrant = GroupSeat.Warrant(.creator, signature: [3])
                holders[0].group.merge(.seat(own))
            case 7: holders[0].group.merge(.terms(try Self.terms(holders[0].group.terms.number + 1, "name \(number)")))
            default: Holder.exchange(in: &holders, actor, other)
            }
        }
        // Repeats until no holder has new records for another.
        var rounds = 0
        while Set(holders.map(\.group.hashes)).count > 1, rounds < count {
            rounds += 1
            for one in 0..<count { for other in 0..<count where one != other { Holder.exchange(in: &holders, one, other) } }
        }
        let hashes = Set(holders.map(\.group.hashes))
        #expect(hashes.count == 1, "they do not hold the same records")
        #expect(Set(holders.map(\.group.membership.members)).count == 1)
        #expect(Set(holders.map(\.group.terms)).count == 1)
        // A holder that receives all records at once gets the same result.
        var whole = start
        for record in holders[3].group.lacking(in: []) { whole.merge(record) }
        #expect(whole.membership.members == holders[0].group.membership.members && whole.hashes == holders[0].group.hashes)
        for removal in holders[0].group.removals.values {
            let seats = whole.seats.values.filter { $0.peer == removal.peer }
            #expect(seats.allSatisfy { $0.number > removal.number && $0.warrant.role == .creator })
        }
    }
}
