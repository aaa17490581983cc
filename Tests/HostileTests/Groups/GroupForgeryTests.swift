import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// Forged records of a member: membership follows only from records signed by the right keys.
extension HostileTests {
    @Suite struct GroupForgeries {
        /// Returns records with invalid signatures that a member sends, with the fault of each.
        private static func forgeries(by mallory: GroupPeer, _ friend: GroupKey, in records: ForgedRecords) throws -> [(
            String, GroupRecord
        )] {
            let (own, other) = (mallory.key, GroupKey())
            let foreign = ForgedRecords(group: .random())
            let creator = try #require(mallory.charter).creator
            var crossed = try records.seat(of: other, by: own)
            crossed.warrant.signature = try own.sign(try crossed.signedBytes(as: .peer, in: records.group))
            var unlabelled = try records.leave(of: friend)
            let signed = try unlabelled.signedBytes(in: records.group)
            unlabelled.signature = try friend.sign(Array(signed.dropFirst(GroupRecord.label.utf8.count)))
            return [
                ("a name that is not its creator's", .terms(try records.terms(2, "mine", by: own))),
                ("an end that is not its creator's", .terms(try records.terms(2, "team", isDissolved: true, by: own))),
                ("a removal by a member", .removal(try records.removal(of: friend.id, by: own))),
                ("a removal of another group", .removal(try foreign.removal(of: friend.id, by: own))),
                ("a member's word as the creator's", .seat(try records.seat(of: other, as: .creator, by: own))),
                ("a member's in the creator's name", .seat(try records.seat(of: other, as: .creator, by: own, voucher: creator))),
                ("a member's word as another's", .seat(try records.seat(of: other, by: own, voucher: friend.id))),
                ("a seat that its peer vouches for", .seat(try records.seat(of: other, by: other, voucher: own.id))),
                ("a seat that its peer has not taken", .seat(try records.seat(of: other, by: own, signer: own))),
                ("a seat of another group", .seat(try foreign.seat(of: other, by: own))),
                ("a seat with a signature in another role", .seat(crossed)),
                ("a seat with a key of another scheme", .seat(try records.seat(of: other, by: own, scheme: .ed25519))),
                ("a leave of another's", .leave(try records.leave(of: friend, by: own))),
                ("a leave of another group", .leave(try foreign.leave(of: friend))),
                ("a leave whose signature has no label", .leave(unlabelled)),
                ("a leave with a key of another scheme", .leave(try records.leave(of: friend, scheme: .ed25519))),
            ]
        }

        @Test("groups: forged records") func forgedRecordsAreNotKept() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            // A further member that mallory has rightfully admitted.
            let friend = GroupKey()
            try mallory.send(.seat(try records.seat(of: friend, by: mallory.key)), of: records.group)
            let held = try mallory.settle(records.group)
            let group = try GroupView.all(of: daemon)
            #expect(group.first?.members.count == 3 && held.count == 4)
            for (what, record) in try Self.forgeries(by: mallory, friend, in: records) {
                // On one connection the daemon asks for missing records only a few times.
                try mallory.reconnect()
                try mallory.send(record, of: records.group)
                #expect(try mallory.settle(records.group) == held, "\(what)")
            }
            #expect(try GroupView.all(of: daemon).map(\.names) == group.map(\.names))
            #expect(daemon.isAlive)
        }

        @Test("groups: records that nobody may make, or that rest on nothing") func recordsOfNothing() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            let held = try mallory.settle(records.group)
            let charter = try #require(mallory.charter)
            let (own, other, third) = (mallory.key, GroupKey(), GroupKey())
            let ignored: [GroupRecord] = [
                .charter(charter), .charter(try ForgedRecords.charter(by: own)),
                .removal(try records.removal(of: charter.creator, 9, by: own)),
                .seat(try records.seat(of: other, by: other)),
                .seat(try records.seat(of: own, 2, by: own)),
                // A circle: neither seat counts before the other.
                .seat(try records.seat(of: other, by: third)), .seat(try records.seat(of: third, by: other)),
                // A seat by a voucher's seat that does not exist.
                .seat(try records.seat(of: other, by: own, seat: mallory.seatNumber + 1)),
            ]
            for record in ignored {
                // On one connection the daemon asks for missing records only a few times.
                try mallory.reconnect()
                try mallory.send(record, of: records.group)
                #expect(try mallory.settle(records.group) == held, "\(record.kind)")
            }
            // Records of a group that the daemon does not hold.
            let strange = ForgedRecords(group: .random())
            for record in ignored + [.seat(try strange.seat(of: other, as: .creator, by: own))] {
                try mallory.send(record, of: strange.group)
            }
            #expect(try mallory.settle(records.group) == held)
            #expect(try GroupView.all(of: daemon).map(\.members.count) == [2])
            #expect(daemon.isAlive)
        }

        @Test("groups: records that are cut off, too long, or go on behind their end") func malformedRecordsAreViolations() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            let held = try mallory.settle(records.group)
            var payload = ByteBuffer(bytes: records.group.bytes)
            try GroupRecord.seat(try records.seat(of: GroupKey(), by: mallory.key)).encode(into: &payload)
            let good = Array(payload.readableBytesView)
            let limit = FrameType.groupRecord.payloadLimit
            var bad: [(String, [UInt8])] = stride(from: 0, to: good.count, by: 23).map { ("\($0) bytes", Array(good[..<$0])) }
            bad += [("one byte less", good.dropLast()), ("one byte more", good + [0]), ("two records", good + good[16...])]
            for kind: UInt8 in [0, 6, 255] { bad.append(("kind \(kind)", good[..<16] + [kind] + good[17...])) }
            bad.append(("as long as may be", good + [UInt8](repeating: 0, count: limit - good.count)))
            for (what, bytes) in bad { #expect(try self.refusal(of: bytes, by: mallory) == .protocolViolation, "\(what)") }
            // A frame that exceeds the limit by one byte is refused before it has arrived.
            let header = withUnsafeBytes(of: UInt32(limit + 1).bigEndian) { Array($0) } + [FrameType.groupRecord.rawValue]
            mallory.peer.socket.send(header)
            #expect(try mallory.peer.refusal() == .protocolViolation)
            try mallory.reconnect()
            #expect(try mallory.settle(records.group) == held)
            // The valid record is accepted.
            try mallory.send(try GroupRecord(decoding: ByteBuffer(bytes: good[16...])), of: records.group)
            #expect(try mallory.settle(records.group).count == held.count + 1)
            #expect(daemon.isAlive)
        }

        /// Returns how a connection ends after a record frame with that payload. Reconnects afterwards.
        private func refusal(of payload: [UInt8], by mallory: GroupPeer) throws -> WireErrorCode? {
            let header = withUnsafeBytes(of: UInt32(payload.count).bigEndian) { Array($0) } + [FrameType.groupRecord.rawValue]
            mallory.peer.socket.send(header + payload)
            let refusal = try mallory.peer.refusal()
            try mallory.reconnect()
            return refusal
        }
    }
}
