import EarshotWire
import NIOCore
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The damage that a peer can do to a group by valid records and invitations, and the damage that is prevented.
@Suite struct GroupAbuseTests {
    private static func key(_ number: Int) -> [UInt8] { [0x32, UInt8(number >> 8), UInt8(number & 0xFF)] }

    /// A leave by a key that was made for it.
    private static func leave(_ number: Int, _ seat: UInt32 = 1, in group: GroupID) throws -> GroupRecord {
        var leave = GroupLeave(publicKey: Self.key(number), scheme: .ed25519, number: seat)
        leave.signature = ToySignature.sign(try leave.signedBytes(in: group), by: Self.key(number))
        return .leave(leave)
    }

    /// A seat that the group's creator, peer 0, signed.
    private static func seat(_ number: Int, _ seatNumber: UInt32, in group: GroupID) throws -> GroupRecord {
        let creator = GroupBench.key(0).publicKey
        var seat = GroupSeat(
            publicKey: Self.key(number), scheme: .ed25519, name: try DisplayName("x\(number)"), number: seatNumber, joinedAtMilliseconds: 1,
            voucher: PeerID(subjectPublicKeyInfo: creator), voucherNumber: 1, warrant: GroupSeat.Warrant(.creator))
        seat.signature = ToySignature.sign(try seat.signedBytes(as: .peer, in: group), by: Self.key(number))
        seat.warrant.signature = ToySignature.sign(try seat.signedBytes(as: .creator, in: group), by: creator)
        return .seat(seat)
    }

    /// Sends peer 0 as many leaves of unknown keys as it takes.
    private func fill(_ bench: inout GroupBench, _ id: GroupID, from other: Int) throws {
        let link = try bench.link(0, other)
        for number in 0..<EarshotLimits.groupRecords {
            bench.peers[0].frame(.group(.record(try Self.leave(number, in: id), of: id)), on: link)
            if number % EarshotLimits.groupRecordsPerSecond == 0 { bench.advance(.seconds(1)) }
        }
        bench.advance(.seconds(5))
    }

    /// Anyone who knows a group's id can make leaves, by any number of keys.
    @Test func leavesOfWhoIsNotInTheGroup() throws {
        var bench = try GroupBench(4)
        try bench.connectAll()
        let id = try bench.create(0)
        for index in 1...2 { try bench.letIn(index, by: 0, to: id) }
        try self.fill(&bench, id, from: 3)
        #expect(bench.peers[0].core.groups[id]?.records.leaves.isEmpty == true)
        bench.ask(2, .leave("team"))
        for index in 0...1 { #expect(bench.members(id, at: index) == [0, 1]) }
    }

    /// A leave of a held seat is accepted from a sender that is no known member. A member that was restored from a backup then hears that
    /// it had left.
    @Test func itsOwnLeaveFromWhoIsNotKnown() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        let backup = bench.peers[1]
        try bench.letIn(2, by: 0, to: id)
        bench.ask(1, .leave("team"))
        for other in [0, 2] { bench.disconnect(1, other) }
        let name = bench.peers[1].core.settings.name
        bench.peers[1] = backup.restarted { $0.name = name }
        #expect(bench.members(id, at: 1) == [0, 1])
        try bench.connect(1, 2)
        bench.ask(1, .invite("team", peers: [bench.ids[2].description], context: [], timeout: nil))
        #expect(bench.group(id, at: 1) == nil && bench.left(id, at: 1) == [.left])
    }

    /// Leaves that a member makes up do not keep other members in the group.
    @Test func leavesThatAMemberMakesUp() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        try self.fill(&bench, id, from: 1)
        #expect(bench.peers[0].core.groups[id]?.records.leaves.count == EarshotLimits.groupRecords)
        bench.ask(2, .leave("team"))
        bench.advance(.seconds(60))
        #expect(bench.peers[0].core.groups[id]?.records.leaves.count == EarshotLimits.groupRecords)
        for index in 0...1 { #expect(bench.members(id, at: index) == [0, 1]) }
        #expect(bench.peers[0].core.groups[id]?.records.digest == bench.peers[1].core.groups[id]?.records.digest)
    }

    /// All machines with more leaves than there is room for keep the same ones.
    @Test func whichLeavesAreKept() throws {
        let (bench, id) = try GroupBench.group(of: 1)
        let empty = try #require(bench.peers[0].core.groups[id]?.records)
        let leaves = try (0..<(EarshotLimits.groupRecords + 20)).map { try Self.leave($0, in: id) }
        var digests: Set<GroupRecordHash> = []
        for order in [leaves, leaves.reversed(), Array(leaves.dropFirst(100)) + leaves.prefix(100)] {
            var records = empty
            for leave in order { records.merge(leave) }
            #expect(records.leaves.count == EarshotLimits.groupRecords)
            digests.insert(records.digest)
            // A peer with a seat has room for its leave, at the cost of a peer without one.
            records.merge(try Self.seat(9999, 1, in: id))
            #expect(records.merge(try Self.leave(9999, in: id)) == nil)
            #expect(records.leaves.count == EarshotLimits.groupRecords && records.membership.members.count == 1)
        }
        #expect(digests.count == 1)
    }

    private func invite(_ number: UInt32, _ bench: GroupBench, to id: GroupID) throws -> GroupInvite {
        let records = try #require(bench.peers[0].core.groups[id]?.records)
        return GroupInvite(
            id: InvitationID(high: 1, low: UInt64(number)), timeoutMilliseconds: 10_000, charter: records.charter, terms: records.terms,
            members: 1, voucherNumber: 1, seatNumber: number, context: [])
    }

    /// With the last possible number, a key would have left, or would be removed, permanently.
    @Test(arguments: [false, true]) func groupSeatNumber(isAbove: Bool) throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        let link = try bench.link(1, 0)
        let invite = try self.invite(EarshotLimits.groupSeatNumber + (isAbove ? 1 : 0), bench, to: id)
        bench.peers[1].frame(.group(.invite(invite)), on: link)
        #expect(bench.peers[1].pending == (isAbove ? [] : [invite.id]))
    }

    /// A seat is refused if its number is lower than the given one, which is the second, or above the maximum.
    @Test(arguments: [1, EarshotLimits.groupSeatNumber + 1]) func aSeatThatWasNotGiven(number: UInt32) throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.ask(1, .leave("team"))
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        let asked = try #require(bench.peers[0].core.invitations(all: false).last?.id)
        var seat = GroupSeat(
            publicKey: GroupBench.key(1).publicKey, scheme: .ed25519, name: try DisplayName("peer1"),
            number: number, joinedAtMilliseconds: 1, voucher: bench.ids[0], voucherNumber: 1, warrant: GroupSeat.Warrant(.voucher))
        seat.signature = ToySignature.sign(try seat.signedBytes(as: .peer, in: id), by: GroupBench.key(1).publicKey)
        bench.peers[0].frame(.group(.inviteAnswer(GroupInviteAnswer(id: asked, decision: .accepted(seat)))), on: try bench.link(0, 1))
        #expect(bench.peers[0].core.invitations[asked]?.invitation.error == .protocolViolation)
        #expect(bench.members(id, at: 0) == [0])
    }

    @Test func whoHasHadAllSeatsIsNotInvited() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        let (last, link) = (EarshotLimits.groupSeatNumber, try bench.link(1, 0))
        bench.peers[1].frame(.group(.record(try Self.seat(7, last, in: id), of: id)), on: link)
        bench.peers[1].frame(.group(.record(try Self.leave(7, last, in: id), of: id)), on: link)
        let other = PeerID(subjectPublicKeyInfo: Self.key(7))
        try bench.peers[1].see(other)
        let answer = bench.ask(1, .invite("team", peers: [other.description], context: [], timeout: nil))
        #expect(answer?.error == .noSpace)
    }

    /// Two groups that are joined at the same time take one place each.
    @Test func groupsThatAreJoinedAtOnce() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        for number in 1..<EarshotLimits.groups { _ = try bench.create(1, name: "group \(number)") }
        for inviter in [0, 2] {
            _ = try bench.create(inviter, name: "of \(inviter)")
            bench.ask(inviter, .invite("of \(inviter)", peers: ["peer1"], context: [], timeout: nil))
        }
        bench.peers[1].areSignaturesHeld = true
        let pending = bench.peers[1].pending
        #expect(pending.count == 2)
        var calls: [CallID] = []
        for invitation in pending {
            bench.respond(1, invitation, .accept)
            calls.append(bench.peers[1].lastCall)
        }
        bench.releaseSignatures(of: 1)
        #expect(bench.peers[1].core.groups.count == EarshotLimits.groups)
        #expect(calls.map { bench.peers[1].answers[$0]?.error } == [nil, .noSpace])
        // The other group may be accepted later.
        bench.ask(1, .leave("group 3"))
        bench.respond(1, pending[1], .accept)
        #expect(bench.peers[1].core.groups.count == EarshotLimits.groups)
    }

    /// The node reads as much at a time from a member of a shared group as from a session member.
    @Test func whoIsInAGroupIsNoStranger() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let link = try bench.link(0, 1)
        #expect(!bench.peers[0].core.isMember(link, bench.ids[1]))
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        #expect(bench.peers[0].core.isMember(link, bench.ids[1]))
        bench.ask(1, .leave("team"))
        #expect(!bench.peers[0].core.isMember(link, bench.ids[1]))
    }

    /// A message to a group that this machine has just left is refused, and does not delay messages in the session.
    @Test func aMessageToAGroupThatIsLeftHoldsUpNothing() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        let link = try bench.link(1, 0)
        func say(_ body: String, in session: SessionID) {
            let frame = MessageFrame(
                session: session, id: .random(), mode: .reliable, sequence: 1, sentAtMilliseconds: 0, contentType: "a/b",
                body: ByteBuffer(string: body))
            bench.peers[1].handle(.link(link, .messages([frame])))
        }
        bench.peers[0].call(.invite(bench.ids[1].description, context: [], timeout: nil))
        bench.settle()
        bench.respond(1, try #require(bench.peers[1].pending.last), .accept)
        let session = try #require(bench.peers[1].core.records[bench.ids[0]]?.sessionID)
        bench.ask(1, .leave("team"))
        say("late", in: id.session)
        say("hello", in: session)
        let inbox = bench.peers[1].effects.flatMap { effect -> [InboxMessage] in
            if case .deliver(_, let messages) = effect { messages } else { [] }
        }
        #expect(inbox.map { String(buffer: $0.body) } == ["hello"])
        #expect(inbox.map(\.followsRefusal) == [false])
        // After this machine is back in the group, the refusal does not delay new messages there either.
        try bench.letIn(1, by: 0, to: id)
        let call = bench.send("again", by: 0, to: id)
        #expect(bench.status(of: call, at: 0, for: 1) == .delivered)
        let last = bench.peers[1].effects.compactMap { if case .deliver(_, let messages) = $0 { messages.last } else { nil } }.last
        #expect(last.map { String(buffer: $0.body) } == "again" && last?.followsRefusal == false)
    }
}
