import EarshotWire
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore

/// The use of places when there are more seats, peers or leaves than places: independent of the order, and of records that a member makes
/// up.
@Suite struct GroupRoomTests {
    private static func key(_ number: Int) -> [UInt8] { [0x33, UInt8(number >> 8), UInt8(number & 0xFF)] }

    private static func peer(_ number: Int) -> PeerID { PeerID(subjectPublicKeyInfo: self.key(number)) }

    private static func seat(_ peer: Int, _ number: UInt32 = 1, by voucher: Int = 0, role: GroupRecord.Role? = nil) throws -> GroupRecord {
        .seat(
            GroupSeat(
                publicKey: self.key(peer), scheme: .ed25519, name: try DisplayName("x"), number: number, joinedAtMilliseconds: 2,
                voucher: self.peer(voucher), voucherNumber: 1, signature: [2],
                warrant: GroupSeat.Warrant(role ?? (voucher == 0 ? .creator : .voucher), signature: [3])))
    }

    private static func leave(_ peer: Int, _ number: UInt32 = 1) -> GroupRecord {
        .leave(GroupLeave(publicKey: self.key(peer), scheme: .ed25519, number: number, signature: [4]))
    }

    /// The peers with the highest ids first: an order by id would put them last.
    private static let honest = (1..<200).sorted { Self.peer($0) > Self.peer($1) }

    private static func group(_ records: GroupRecord...) throws -> GroupRecords {
        let charter = try GroupCharter(
            nonce: [UInt8](repeating: 7, count: 16), creatorKey: self.key(0), creatorScheme: .ed25519, createdAtMilliseconds: 1)
        var group = GroupRecords(charter, GroupTerms(number: 1, name: try DisplayName("team"), signature: [1]))
        for record in [try self.seat(0)] + records { group.merge(record) }
        return group
    }

    // MARK: Any order

    /// A tree of seats. Each seat is vouched for by an earlier one.
    private static func tree(of count: Int, _ random: inout SplitMix64) throws -> [GroupRecord] {
        try (1..<count).map { number in
            let voucher = Int.random(in: 0..<number, using: &random)
            return try Self.seat(number, by: voucher)
        }
    }

    /// Merges all records in a random order, and again those whose voucher was missing, as their holders would send them.
    private static func take(_ records: [GroupRecord], into group: inout GroupRecords, _ random: inout SplitMix64) {
        for _ in 0..<2 {
            var rest = records.shuffled(using: &random)
            var count = 0
            repeat {
                count = rest.count
                var unvouched: [GroupRecord] = []
                for record in rest {
                    if group.merge(record) == .unvouched { unvouched.append(record) }
                    if Int.random(in: 0..<40, using: &random) == 0 { group.forget() }
                }
                rest = unvouched
            } while rest.count < count
        }
        group.forget()
    }

    @Test(arguments: 0..<3) func theSameSeatsAreKeptInAnyOrder(_ number: Int) throws {
        var random = SplitMix64(seed: UInt64(number))
        let records = try Self.tree(of: EarshotLimits.groupRecords + 20 + 40 * number, &random)
        var groups: [GroupRecords] = []
        for _ in 0..<3 {
            var group = try Self.group()
            Self.take(records, into: &group, &random)
            #expect(group.seats.count == EarshotLimits.groupRecords)
            #expect(group.membership.members.count == EarshotLimits.groupMembers)
            groups.append(group)
        }
        #expect(Set(groups.map(\.digest)).count == 1)
        #expect(Set(groups.map(\.membership.members)).count == 1)
        // A peer that receives the kept seats, each after its voucher's, holds the same ones.
        var other = try Self.group()
        for record in groups[0].all { other.merge(record) }
        #expect(other.digest == groups[0].digest && other.hashes == groups[0].hashes)
    }

    /// Two holders that have seen one half each, with leaves, exchange the records that they lack.
    @Test(arguments: 0..<3) func twoThatHaveSeenDifferentSeatsAgree(_ number: Int) throws {
        var random = SplitMix64(seed: UInt64(100 + number))
        let records = try Self.tree(of: 500, &random)
        let leaves = (1..<500).filter { _ in Int.random(in: 0..<4, using: &random) == 0 }.map { Self.leave($0) }
        var (one, other) = (try Self.group(), try Self.group())
        Self.take(Array(records.prefix(330)) + leaves.prefix(70), into: &one, &random)
        Self.take(Array(records.prefix(100) + records.suffix(260)) + leaves.suffix(70), into: &other, &random)
        var rounds = 0
        while one.hashes != other.hashes, rounds < 4 {
            rounds += 1
            let (there, back) = (one.lacking(in: Set(other.hashes)), other.lacking(in: Set(one.hashes)))
            for record in there { other.merge(record) }
            for record in back { one.merge(record) }
            one.forget()
            other.forget()
        }
        #expect(one.hashes == other.hashes && one.digest == other.digest)
        #expect(one.membership.members == other.membership.members)
        #expect(one.hashes.count <= 3 * EarshotLimits.groupRecords + 1)
    }

    // MARK: Members

    /// The member vouches for any number of keys, and these vouch for one another. The other members came in by another branch, some of
    /// them late.
    @Test(arguments: [1, 3, 300]) func aMemberTakesNoPlacesFromOtherBranches(width: Int) throws {
        let (mallory, bob, carol, dave) = (400, Self.honest[0], Self.honest[1], Self.honest[2])
        var group = try Self.group(try Self.seat(mallory), try Self.seat(bob))
        for number in 0..<300 {
            let voucher = number < width ? mallory : 500 + number - width
            group.merge(try Self.seat(500 + number, by: voucher))
        }
        #expect(group.membership.members.count == EarshotLimits.groupMembers)
        group.forget()
        #expect(group.merge(try Self.seat(carol, by: bob)) == nil)
        #expect(group.merge(try Self.seat(dave, by: carol)) == nil)
        group.forget()
        for peer in [bob, carol, dave] { #expect(group.membership.contains(Self.peer(peer))) }
        #expect(group.room(for: [Self.peer(Self.honest[3])], letInBy: Self.peer(dave)) == 1)
        // Mallory has only its share. The creator and bob keep their places, and bob's guests get up to half of the others.
        for peer in Self.honest[3..<40] { group.merge(try Self.seat(peer, by: bob)) }
        let honest = group.membership.members.count { member in Self.honest.contains { Self.peer($0) == member.peer } }
        #expect(honest >= (EarshotLimits.groupMembers - 3) / 2)
        #expect(group.membership.contains(Self.peer(mallory)))
    }

    // MARK: Leaves

    /// The victim has the highest id: its leave would be the first to go.
    @Test(arguments: [false, true]) func noLeaveIsPushedOutByOnesThatAreMadeUp(areSeatsMadeUp: Bool) throws {
        let (mallory, victim) = (400, Self.honest[0])
        let old = try Self.seat(victim)
        var group = try Self.group(try Self.seat(mallory), old, Self.leave(victim))
        group.forget()
        #expect(group.membership.evidence.count == 1)
        for number in 500..<1000 {
            if areSeatsMadeUp { group.merge(try Self.seat(number, by: mallory)) }
            group.merge(Self.leave(number))
            if number % 50 == 0 { group.forget() }
        }
        group.forget()
        #expect(group.leaves.count == EarshotLimits.groupRecords)
        #expect(group.leaves[Self.peer(victim)] != nil)
        group.merge(old)
        #expect(!group.membership.isCandidate(Self.peer(victim)))
        // The records are loaded at the next start.
        let again = try #require(GroupRecords(StoredGroup(charter: group.charter, records: group.all, isOver: false)))
        #expect(again.hashes == group.hashes && again.digest == group.digest)
    }

    /// The peer has come back since, and its inviter is removed. The seat that the peer left stays left.
    @Test func whoCameBackHasLeftItsFirstSeatAllTheSame() throws {
        let (bob, carol) = (1, 2)
        var group = try Self.group(try Self.seat(carol), Self.leave(carol), try Self.seat(bob), try Self.seat(carol, 2, by: bob))
        group.forget()
        group.merge(.removal(GroupRemoval(peer: Self.peer(bob), number: 1, signature: [5])))
        group.forget()
        #expect(!group.membership.isCandidate(Self.peer(carol)))
        #expect(group.membership.evidence.count == 1)
    }

    /// Evidence for leaves is not part of the digest, because an older version drops it.
    @Test func theDigestIsThatOfOlderVersions() throws {
        var group = try Self.group(try Self.seat(1), try Self.seat(2, by: 1), try Self.seat(3, by: 2), Self.leave(1), Self.leave(3))
        group.forget()
        #expect(group.hashes.count == 7 && group.membership.evidence.count == 1)
        let counted = group.hashes.filter { !group.membership.evidence.contains($0) }
        #expect(group.digest == .digest(of: counted))
    }
}
