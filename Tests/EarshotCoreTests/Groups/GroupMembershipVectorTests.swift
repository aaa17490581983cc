import EarshotWire
import FoundationEssentials
import NIOCore
import Testing

@testable import EarshotCore

/// The test vectors of memberships: the members that follow from records, and the seats that are kept. The published file is generated from
/// the cases below, and its records give the same result in another order.
@Suite struct GroupMembershipVectorTests {
    private struct Vector: Codable, Sendable {
        let name: String
        let group: String
        /// The charter first. The signatures have one byte and are not checked.
        let records: [String]
        /// Peer ids, in the order of their places.
        let members: [String]
        let full: [String]
        /// The hashes of the index, and those among them that the digest leaves out.
        let hashes: [String]
        let evidence: [String]
        let digest: String
    }

    private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("EarshotWireTests/Vectors/memberships.json")

    // MARK: Cases

    private static func key(_ peer: Int) -> [UInt8] { [0x30, UInt8(peer >> 8), UInt8(peer & 0xFF)] }
    private static func peer(_ peer: Int) -> PeerID { PeerID(subjectPublicKeyInfo: self.key(peer)) }

    /// Makes a seat. Without a voucher, the creator, peer 0, signs it in role 3.
    private static func seat(_ peer: Int, _ number: UInt32 = 1, by voucher: Int? = nil) throws -> GroupRecord {
        .seat(
            GroupSeat(
                publicKey: self.key(peer), scheme: .ed25519, name: try DisplayName("peer \(peer)"), number: number,
                joinedAtMilliseconds: 0, voucher: self.peer(voucher ?? 0), voucherNumber: 1, signature: [1],
                warrant: GroupSeat.Warrant(voucher == nil ? .creator : .voucher, signature: [1])))
    }

    private static func leave(_ peer: Int, _ number: UInt32 = 1) -> GroupRecord {
        .leave(GroupLeave(publicKey: self.key(peer), scheme: .ed25519, number: number, signature: [1]))
    }

    private static func removal(_ peer: Int, _ number: UInt32 = 1) -> GroupRecord {
        .removal(GroupRemoval(peer: self.peer(peer), number: number, signature: [1]))
    }

    /// Makes seats of several peers, all vouched for by one member.
    private static func seats(_ peers: Range<Int>, by voucher: Int) throws -> [GroupRecord] {
        try peers.map { try self.seat($0, by: voucher) }
    }

    private static func cases() throws -> [(name: String, records: [GroupRecord])] {
        let three = [try self.seat(0), try self.seat(1), try self.seat(2, by: 1)]
        return [
            ("who came in through a member", three + [try self.seat(3, by: 2)]),
            (
                "a member is taken out, and one that it let in was signed for",
                three + [try self.seat(2), try self.seat(3, by: 2), self.removal(1)]
            ),
            ("a member is taken out with whom it let in", three + [try self.seat(3, by: 2), self.removal(1)]),
            ("who has left can vouch", three + [self.leave(1), try self.seat(3, by: 1)]),
            ("a leave keeps its seat", three + [self.leave(2)]),
            ("who left is back, and the seat that it left stays left", three + [self.leave(2), try self.seat(2, 2, by: 1)]),
            ("two seats of one number, on two levels", three + [try self.seat(3, by: 1), try self.seat(3, by: 2)]),
            ("the creator has left and is back", [try self.seat(0), try self.seat(1), self.leave(0), try self.seat(0, 2)]),
            (
                "more candidates than places: two branches, of which one has let in many",
                three + (try self.seats(3..<103, by: 1)) + (try self.seats(103..<123, by: 2))
            ),
            (
                "more seats than are kept, and leaves in both branches",
                three + [self.leave(2)] + (try self.seats(3..<323, by: 1)) + (3..<203).map { self.leave($0) }
                    + (try self.seats(323..<353, by: 2))
            ),
        ]
    }

    // MARK: Results

    private static func hex(_ record: GroupRecord) throws -> String {
        var buffer = ByteBuffer()
        try record.encode(into: &buffer)
        return buffer.readableBytesView.hexadecimal
    }

    private static func vector(_ name: String, _ charter: GroupCharter, _ terms: GroupTerms, _ records: [GroupRecord]) throws -> Vector {
        var group = GroupRecords(charter, terms)
        // A seat is accepted after its voucher's seat.
        var rest = records
        var count = 0
        repeat {
            count = rest.count
            rest = rest.filter { group.merge($0) == .unvouched }
        } while rest.count < count
        group.forget()
        let shown = [.charter(charter), .terms(terms)] + records
        return Vector(
            name: name, group: charter.id.bytes.hexadecimal, records: try shown.map(self.hex),
            members: group.membership.members.map(\.peer.bytes.hexadecimal), full: group.membership.full.map(\.peer.bytes.hexadecimal),
            hashes: group.hashes.map(\.bytes.hexadecimal), evidence: Array(group.membership.evidence).sorted().map(\.bytes.hexadecimal),
            digest: group.digest.bytes.hexadecimal)
    }

    private static func vectors() throws -> [Vector] {
        let charter = try GroupCharter(
            nonce: [UInt8](repeating: 7, count: 16), creatorKey: self.key(0), creatorScheme: .ed25519, createdAtMilliseconds: 1)
        let terms = GroupTerms(number: 1, name: try DisplayName("team"), signature: [1])
        return try self.cases().map { try self.vector($0.name, charter, terms, $0.records) }
    }

    private static func encoded(_ vectors: [Vector]) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(vectors) + Data("\n".utf8)
    }

    // MARK: Tests

    @Test func whatIsPublishedIsWhatTheRulesMake() throws {
        let data = try Self.encoded(try Self.vectors())
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("memberships.json"))
        } else {
            #expect(try data == Data(contentsOf: Self.file))
        }
    }

    @Test func thePublishedRecordsGiveTheSameInAnotherOrder() throws {
        let published = try JSONDecoder().decode([Vector].self, from: Data(contentsOf: Self.file))
        #expect(published.count >= 10)
        for vector in published {
            let records = try vector.records.map { try GroupRecord(decoding: ByteBuffer(bytes: try #require(Self.bytes($0)))) }
            guard case .charter(let charter)? = records.first, case .terms(let terms) = records[1] else {
                Issue.record("\(vector.name) begins with a charter and terms")
                continue
            }
            let again = try Self.vector(vector.name, charter, terms, records.dropFirst(2).reversed())
            #expect(again.members == vector.members && again.full == vector.full, "\(vector.name)")
            #expect(again.hashes == vector.hashes && again.digest == vector.digest, "\(vector.name)")
            #expect(again.evidence == vector.evidence && again.group == vector.group, "\(vector.name)")
        }
        let crowded = try #require(published.first { $0.name.hasPrefix("more candidates") })
        #expect(crowded.members.count == EarshotLimits.groupMembers && crowded.full.count == 123 - EarshotLimits.groupMembers)
        let many = try #require(published.first { $0.name.hasPrefix("more seats") })
        #expect(!many.evidence.isEmpty && many.records.count > many.hashes.count)
    }

    private static func bytes(_ hexadecimal: String) -> [UInt8]? {
        let digits = hexadecimal.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count == hexadecimal.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
