import EarshotWire
import NIOCore
import Testing

/// A charter, terms and a seat with every field at its longest.
struct LongestGroup {
    let charter: GroupCharter
    let terms: GroupTerms
    let seat: GroupSeat

    init() throws {
        let key = [UInt8](repeating: 0x61, count: WireLimits.publicKey)
        let signature = [UInt8](repeating: 1, count: WireLimits.signature)
        let name = try DisplayName(String(repeating: "a", count: DisplayName.byteLimit))
        self.charter = try GroupCharter(
            nonce: Array(0..<16), creatorKey: key, creatorScheme: .rsaPSSSHA256, isClosed: true, isUnprotected: true,
            createdAtMilliseconds: 1)
        self.terms = GroupTerms(number: .max, name: name, isDissolved: true, signature: signature)
        self.seat = GroupSeat(
            publicKey: key, scheme: .rsaPSSSHA256, name: name, number: .max, joinedAtMilliseconds: 1, voucher: self.charter.creator,
            voucherNumber: .max, signature: signature, warrant: GroupSeat.Warrant(.voucher, signature: signature))
    }

    /// The seat as it is decoded from an answer, without the inviter's signature.
    var ownSeat: GroupSeat {
        var seat = self.seat
        seat.warrant.signature = []
        return seat
    }

    var invite: GroupInvite {
        GroupInvite(
            id: Fixtures.invitation, timeoutMilliseconds: 1, charter: self.charter, terms: self.terms, members: 64, voucherNumber: .max,
            seatNumber: .max, context: [UInt8](repeating: 0, count: WireLimits.invitationContext))
    }
}

// Each in pieces, so that a field in its middle may be another one.
private let nonce = run(16)
private let key: [UInt8] = [8, 7, 0, 1, 0x61]
private let time = word64(1)
private let label: [UInt8] = [1, 0x61]
private let signature: [UInt8] = [0, 1, 1]
private let one = word32(1)
private let voucher = run(32)
private let charter: [UInt8] = nonce + key + [0] + time
private let terms = one + label + [0] + signature
private let seat: [UInt8] = [key, label, one, time, voucher, one, signature].flatMap { $0 }

extension Edge {
    private static func record(
        _ kind: GroupRecord.Kind?, _ field: String, _ range: ClosedRange<UInt64>, _ bytes: @escaping @Sendable (UInt64) -> [[UInt8]]
    ) -> Edge {
        Edge(type: .groupRecord, field: field, range: range, kind: kind.map { " \($0)" } ?? "") {
            raw(run(16) + (kind.map { [$0.rawValue] } ?? []), Array(bytes($0).joined()))
        }
    }

    private static func invite(_ field: String, _ range: ClosedRange<UInt64>, _ bytes: @escaping @Sendable (UInt64) -> [[UInt8]]) -> Edge {
        Edge(type: .groupInvite, field: field, range: range) { raw(run(16), Array(bytes($0).joined())) }
    }

    private static func fields(ofKind kind: UInt64) -> [UInt8] {
        switch kind {
        case 1: charter
        case 2: terms
        case 3: seat + [2] + signature
        case 4: key + one + signature
        default: voucher + one + signature
        }
    }

    static let ofGroups: [Edge] = [
        Self.invite("timeout", 1...86_400_000) { [word32($0), charter, terms, [1], one, one, [0, 0]] },
        Self.invite("creator_key", 1...2048) {
            [one, nonce, [8, 7], word16($0), run($0), [0], time, terms, [1], one, one, [0, 0]]
        },
        Self.invite("members", 1...64) { [one, charter, terms, word8($0), one, one, [0, 0]] },
        Self.invite("voucher_number", 1...UInt64(UInt32.max)) { [one, charter, terms, [1], word32($0), one, [0, 0]] },
        Self.invite("seat_number", 1...UInt64(UInt32.max)) { [one, charter, terms, [1], one, word32($0), [0, 0]] },
        Self.invite("context", 0...8192) { [one, charter, terms, [1], one, one, word16($0), run($0)] },
        Edge(type: .groupAnswer, field: "decision", range: 1...3) { raw(run(16) + word8($0), $0 == 1 ? seat : []) },
        Edge(type: .groupAnswer, field: "signature", range: 1...1024) {
            raw(run(16) + [1], Array(seat.dropLast(3)) + word16($0) + run($0))
        },
        Edge(type: .groupWithdraw, field: "reason", range: 1...2) { raw(run(16) + word8($0), []) },
        Edge(type: .groupNames, field: "groups", range: 0...64) { raw(word8($0), run($0 * 32)) },
        Edge(type: .groupIndex, field: "records", range: 0...769) { raw(run(16) + word16($0), run($0 * 16)) },
        Self.record(nil, "kind", 1...5) { [word8($0), Self.fields(ofKind: $0)] },
        Self.record(.charter, "creator_key", 1...2048) { [nonce, [8, 7], word16($0), run($0), [0], time] },
        Self.record(.charter, "flags", 0...3) { [nonce, key, word8($0), time] },
        Self.record(.charter, "created_at", 0...253_402_300_799_999) { [nonce, key, [0], word64($0)] },
        Self.record(.terms, "number", 1...UInt64(UInt32.max)) { [word32($0), label, [0], signature] },
        Self.record(.terms, "name", 1...63) { [one, word8($0), run($0), [0], signature] },
        Self.record(.terms, "dissolved", 0...1) { [one, label, word8($0), signature] },
        Self.record(.terms, "signature", 1...1024) { [one, label, [0], word16($0), run($0)] },
        Self.record(.seat, "key", 1...2048) { [[8, 7], word16($0), run($0), Array(seat.dropFirst(key.count)), [2], signature] },
        Self.record(.seat, "joined_at", 0...253_402_300_799_999) {
            [key, label, one, word64($0), voucher, one, signature, [2], signature]
        },
        Self.record(.seat, "voucher_number", 1...UInt64(UInt32.max)) {
            [key, label, one, time, voucher, word32($0), signature, [2], signature]
        },
        Self.record(.seat, "role", 2...3) { [seat, word8($0), signature] },
        Self.record(.seat, "warrant", 1...1024) { [seat, [3], word16($0), run($0)] },
        Self.record(.leave, "number", 1...UInt64(UInt32.max)) { [key, word32($0), signature] },
        Self.record(.removal, "number", 1...UInt64(UInt32.max)) { [voucher, word32($0), signature] },
    ]
}

@Suite struct GroupLimitTests {
    @Test func aRecordIsNoLongerThanASeatWithBothSignatures() throws {
        let longest = try LongestGroup()
        let signature = [UInt8](repeating: 1, count: WireLimits.signature)
        let records: [GroupRecord] = [
            .charter(longest.charter), .terms(longest.terms), .seat(longest.seat),
            .leave(GroupLeave(publicKey: longest.seat.publicKey, scheme: .rsaPSSSHA256, number: 1, signature: signature)),
            .removal(GroupRemoval(peer: longest.seat.peer, number: 1, signature: signature)),
        ]
        let lengths = try records.map { record in
            var buffer = ByteBuffer()
            try record.encode(into: &buffer)
            #expect(try GroupRecord(decoding: buffer) == record)
            return buffer.readableBytes
        }
        #expect(lengths == [2078, 1096, 4218, 3083, 1063])
        #expect(WireLimits.groupRecord == 4218)
    }

    /// Times before 1970 have an edge of their own, at the year 1.
    @Test func timesBeginWithTheYearOne() throws {
        let first = WireLimits.sentAtMilliseconds.lowerBound
        for (time, isGood) in [(first, true), (first - 1, false), (Int64.min, false)] {
            let payload = raw(run(16) + [1] + nonce + key + [0], word64(UInt64(bitPattern: time)))
            if isGood {
                #expect(throws: Never.self) { try FrameParser.parse(payload, of: .groupRecord) }
            } else {
                #expect(throws: WireError.malformed(.groupRecord, field: "created_at")) { try FrameParser.parse(payload, of: .groupRecord) }
            }
        }
    }

    /// A name is a label in a record as in a hello.
    @Test(arguments: [[0x1B], [0xFF], [0xC0, 0x80]] as [[UInt8]]) func aNameIsALabel(name: [UInt8]) {
        let payload = raw(run(16) + [2] + one + [UInt8(name.count)] + name + [0], signature)
        #expect(throws: WireError.malformed(.groupRecord, field: "name")) { try FrameParser.parse(payload, of: .groupRecord) }
    }

    @Test func encodingOverALimitThrowsAndLeavesTheBuffer() throws {
        let longest = try LongestGroup()
        var (late, crowded, long) = (longest.invite, longest.invite, longest.invite)
        late.timeoutMilliseconds = 0
        crowded.members = 65
        long.context.append(0)
        var (unsigned, unvouched) = (longest.seat, longest.seat)
        unsigned.signature = []
        unvouched.warrant.signature.append(1)
        let (id, hash) = (longest.charter.id, GroupRecordHash.digest(of: []))
        let name = GroupName(group: id, digest: hash)
        let peers = longest.seat
        let itself = GroupSeat(
            publicKey: peers.publicKey, scheme: peers.scheme, name: peers.name, number: 1, joinedAtMilliseconds: 1, voucher: peers.peer,
            voucherNumber: 1, signature: [1], warrant: GroupSeat.Warrant(.peer, signature: [1]))
        let frames: [(String, GroupFrame)] = [
            ("timeout", .invite(late)), ("members", .invite(crowded)), ("context", .invite(long)),
            ("signature", .inviteAnswer(GroupInviteAnswer(id: Fixtures.invitation, decision: .accepted(unsigned)))),
            ("signature", .record(.seat(unsigned), of: id)), ("warrant", .record(.seat(unvouched), of: id)),
            ("role", .record(.seat(itself), of: id)),
            ("number", .record(.removal(GroupRemoval(peer: longest.seat.peer, number: 0, signature: [1])), of: id)),
            ("groups", .names(.init(repeating: name, count: 65))),
            ("records", .index(id, .init(repeating: hash, count: 770))),
        ]
        for (field, frame) in frames {
            var buffer = ByteBuffer(string: "before")
            #expect(throws: WireError.malformed(frame.type, field: field)) { try FrameEncoder.encode(.group(frame), into: &buffer) }
            #expect(buffer == ByteBuffer(string: "before"))
        }
    }
}
