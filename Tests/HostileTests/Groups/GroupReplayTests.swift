import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// Replays of formerly valid records, and records that pretend to be old: a removal is permanent.
extension HostileTests {
    @Suite struct GroupReplays {
        @Test("groups: a removed member shows its seat again, and vouches as if it were before")
        func aRemovedMemberCannotReturnByOldSeats() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            let creator = try #require(mallory.charter).creator
            // A friend of both, admitted by the attacker, and the attacker's second key.
            let (friend, second) = (GroupKey(), GroupKey())
            let itsSeats = try [friend, second].map { GroupRecord.seat(try records.seat(of: $0, by: mallory.key)) }
            for seat in itsSeats { try mallory.send(seat, of: records.group) }
            try mallory.settle(records.group)
            #expect(try self.members(of: daemon) == [creator, mallory.id, friend.id, second.id])
            // The friend stays because the creator vouches for it; the second key is removed too.
            try self.remove(second, by: daemon)
            try self.remove(mallory.key, by: daemon)
            let removal = try mallory.next { frame -> GroupRecord? in
                if case .record(.removal(let removal), records.group) = frame, removal.peer == mallory.id { .removal(removal) } else { nil }
            }
            #expect(try self.members(of: daemon) == [creator, friend.id])
            let rest = try self.members(of: daemon)
            let own = mallory.key
            var shown = itsSeats
            for number: UInt32 in [1, 2, 9] {
                shown.append(.seat(try records.seat(of: GroupKey(), number, at: 1, by: own)))
                shown.append(.seat(try records.seat(of: GroupKey(), number, at: 1, by: own, seat: number)))
            }
            // Seats for the attacker and its second key, vouched for by the friend, whose seat is valid.
            shown.append(.seat(try records.seat(of: own, by: friend)))
            shown.append(.seat(try records.seat(of: own, 2, by: friend)))
            shown.append(.seat(try records.seat(of: second, 7, by: friend)))
            for _ in 0..<2 {
                for record in shown {
                    try mallory.send(record, of: records.group)
                    // The sender of an invalid record is told the reason.
                    let answer = try mallory.next { if case .record(let record, records.group) = $0 { record } else { nil } }
                    guard case .removal(let said) = answer else {
                        Issue.record("\(record) is answered by \(answer)")
                        continue
                    }
                    #expect(said.peer == own.id || said.peer == second.id)
                    #expect(try self.members(of: daemon) == rest)
                }
                // On another connection as well.
                try mallory.reconnect()
            }
            // The removal itself is known, and the attacker's own record does not revoke it.
            try mallory.send(removal, of: records.group)
            try mallory.peer.roundTrip()
            #expect(try self.members(of: daemon) == rest)
            #expect(daemon.isAlive)
        }

        @Test("groups: a leave of an earlier seat, and that seat, are sent again") func anEarlierSeatAndItsLeaveChangeNothing() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            let creator = try #require(mallory.charter).creator
            let leave = GroupRecord.leave(try records.leave(of: mallory.key))
            try mallory.send(leave, of: records.group)
            while try self.members(of: daemon) != [creator] { try mallory.peer.roundTrip() }
            try mallory.reconnect()
            try mallory.letIn(to: records.group.description)
            #expect(mallory.seatNumber == 2, "above the one that it has left")
            let held = try mallory.settle(records.group)
            for _ in 0..<2 {
                try mallory.send(leave, of: records.group)
                #expect(try mallory.settle(records.group) == held)
            }
            #expect(try self.members(of: daemon) == [creator, mallory.id])
            // A friend's signature for the earlier seat is useless for the later one.
            let friend = GroupKey()
            try mallory.send(.seat(try records.seat(of: friend, by: mallory.key, seat: 2)), of: records.group)
            try mallory.send(.seat(try records.seat(of: mallory.key, by: friend)), of: records.group)
            try mallory.send(.leave(try records.leave(of: friend)), of: records.group)
            try mallory.send(.seat(try records.seat(of: friend, name: "back", by: mallory.key, seat: 2)), of: records.group)
            try mallory.settle(records.group)
            #expect(try self.members(of: daemon) == [creator, mallory.id], "who has left comes back by a higher number alone")
            #expect(daemon.isAlive)
        }

        private func members(of daemon: VictimDaemon) throws -> Set<PeerID> {
            let group = try #require(try GroupView.all(of: daemon).first)
            return Set(group.peers.compactMap { PeerID($0) })
        }

        /// Lets the daemon's user remove a member.
        private func remove(_ peer: GroupKey, by daemon: VictimDaemon) throws {
            let answer = try daemon.call("DELETE", "/v1/groups/team/members/\(peer.id)")
            #expect(answer.status == 200, "\(answer)")
        }
    }
}
