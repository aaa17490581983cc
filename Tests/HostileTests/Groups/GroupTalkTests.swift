import EarshotCore
import EarshotWire
import Foundation
import NIOCore
import Testing

/// Messages in a group: only members send them, only to members, and a group's id grants nothing else.
extension HostileTests {
    @Suite struct GroupTalk {
        @Test("groups: who is no member says something there, and who was one goes on") func whoIsNoMember() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let group = try mallory.join()
            let session = Self.session(of: group)
            try mallory.settle(group)
            // A member's message arrives.
            #expect(try Self.say("one", as: mallory, in: session, sequence: 1) == .delivered)
            let stranger = try GroupPeer(daemon, name: "eve")
            #expect(try Self.say("two", as: stranger, in: session, sequence: 1) == .refused)
            #expect(try Self.say("two", as: stranger, in: Self.session(of: .random()), sequence: 2) == .refused)
            // The stranger may claim membership, and gets no answer: ids and records go only to members.
            try stranger.send(.names([GroupName(group: group, digest: .random())]), .index(group, []))
            try stranger.peer.roundTrip()
            #expect(try Self.say("three", as: stranger, in: session, sequence: 3) == .refused)
            let removed = try daemon.call("DELETE", "/v1/groups/team/members/\(mallory.id)")
            #expect(removed.status == 200, "\(removed)")
            _ = try mallory.next { frame -> Void? in
                if case .record(.removal, group) = frame { () } else { nil }
            }
            #expect(try Self.say("four", as: mallory, in: session, sequence: 2) == .refused)
            #expect(try Self.bodies(of: daemon) == ["one"])
            #expect(daemon.isAlive)
        }

        @Test("groups: a group's id as that of a session") func groupAsSession() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let group = try mallory.join()
            let session = Self.session(of: group)
            // A member, and a stranger that knows the id.
            for peer in [mallory.peer, try GroupPeer(daemon, name: "eve").peer] {
                try peer.send(.sessionResume(session))
                let ended: SessionID = try peer.next { if case .sessionEnd(let ended) = $0 { ended } else { nil } }
                #expect(ended == session)
            }
            // The session comes as the answer to an invitation of the daemon's user.
            let asked = try daemon.call("POST", "/v1/invitations", json: #"{"peer":"\#(mallory.id)"}"#)
            #expect(asked.status == 201 || asked.status == 200, "\(asked)")
            let invite: Invite = try mallory.peer.next { if case .invite(let invite) = $0 { invite } else { nil } }
            try mallory.peer.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .accepted(session))))
            let ended: SessionID = try mallory.peer.next { if case .sessionEnd(let ended) = $0 { ended } else { nil } }
            #expect(ended == session)
            #expect(try daemon.call("GET", "/v1/sessions").body.contains(session.description) == false)
            #expect(daemon.isAlive)
        }

        @Test("groups: different things to different members") func membersAgreeOnOneOfTwoNames() throws {
            // The creator gives both members the same two names with one number, in different orders. They agree nevertheless.
            var names: [String] = []
            var expected: [String] = []
            for order in [[0, 1], [1, 0]] {
                let daemon = try VictimDaemon()
                let mallory = try GroupPeer(daemon)
                let records = try mallory.create("trap")
                let terms = try ["left", "right"].map { GroupRecord.terms(try records.terms(2, $0, by: mallory.key)) }
                for index in order { try mallory.send(terms[index], of: records.group) }
                try mallory.settle(records.group)
                let group = try #require(try GroupView.all(of: daemon).first)
                // The hashes depend on the group, so the winner may differ between groups.
                let lower = terms.min { $0.hash(in: records.group).bytes.lexicographicallyPrecedes($1.hash(in: records.group).bytes) }
                guard case .terms(let winner)? = lower else { continue }
                names.append(group.name)
                expected.append(winner.name.description)
                #expect(daemon.isAlive)
            }
            #expect(names.count == 2 && names == expected)
        }

        @Test("groups: a flood of records, new ones and the same") func floodOfRecords() throws {
            let daemon = try VictimDaemon()
            let mallory = try GroupPeer(daemon)
            let records = ForgedRecords(group: try mallory.join())
            let known = GroupRecord.seat(try records.seat(of: GroupKey(), by: mallory.key))
            try mallory.send(known, of: records.group)
            let before = try mallory.settle(records.group)
            for _ in 0..<10_000 { try mallory.send(known, of: records.group) }
            #expect(try mallory.settle(records.group) == before)
            // More records than a group may have, and more than the rate of one second: the excess waits at the sender.
            let began = ContinuousClock.now
            for _ in 0..<(WireLimits.groupRecords + 64) {
                try mallory.send(.seat(try records.seat(of: GroupKey(), by: mallory.key)), of: records.group)
            }
            // The daemon does other work meanwhile.
            let view = try #require(try GroupView.all(of: daemon).first)
            let seconds = Int((ContinuousClock.now - began).components.seconds) + 1
            #expect(view.members.count <= 3 + EarshotLimits.groupRecordsPerSecond * (seconds + 1))
            let held = try mallory.settle(records.group)
            // The terms count too.
            #expect(held.count == WireLimits.groupRecords + 1)
            let full = try #require(try GroupView.all(of: daemon).first)
            #expect(full.peers.count == WireLimits.groupMembers && full.peers.contains(mallory.id.description))
            #expect(daemon.isAlive)
        }

        // MARK: Sending

        private static func session(of group: GroupID) -> SessionID { SessionID(high: group.high, low: group.low) }

        /// Returns the daemon's receipt for a message.
        private static func say(
            _ text: String, as peer: GroupPeer, in session: SessionID, sequence: UInt64
        ) throws -> MessageReceipt.Outcome {
            let message = peer.peer.message(text, in: session, sequence: sequence)
            try peer.peer.send(message.frame)
            return try peer.peer.next { frame in
                guard case .messageReceipts(let receipts) = frame else { return nil }
                return receipts.first { $0.id == message.id }?.outcome
            }
        }

        private static func bodies(of daemon: VictimDaemon) throws -> [String] {
            struct Inbox: Decodable {
                struct Message: Decodable { let body: String }
                let messages: [Message]
            }
            return try daemon.decoded(Inbox.self, at: "/v1/messages?state=all").messages.map(\.body)
        }
    }
}
