import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// News of a group from peers that are not known as members.
@Suite struct GroupExchangeTests {
    /// Peer 2 was let in, and the group was dissolved, while peer 1 was away.
    @Test func whoWasAwayHearsOfTheEndFromALaterMember() throws {
        var bench = try GroupBench(3)
        let id = try bench.create(0)
        try bench.letInAndPart(1, by: 0, to: id)
        try bench.connect(0, 2)
        try bench.letIn(2, by: 0, to: id)
        #expect(bench.ask(0, .dissolve("team")) == .done)
        bench.disconnect(0, 2)
        bench.restart(2)
        try bench.connect(1, 2)
        #expect(bench.left(id, at: 1) == [.dissolved])
    }

    /// Each of the two was let in by a member that did not know of the other.
    @Test func membersThatDoNotKnowEachOtherMeetByAnInvitation() throws {
        var bench = try GroupBench(4)
        let id = try bench.create(0)
        for (inviter, other) in [(0, 3), (0, 2), (3, 1)] { try bench.letInAndPart(other, by: inviter, to: id) }
        try bench.connect(1, 2)
        #expect(bench.members(id, at: 1) == [0, 1, 3] && bench.members(id, at: 2) == [0, 2, 3])
        let invitation = try #require(
            bench.ask(1, .invite("team", peers: ["peer2"], context: [], timeout: nil))?.invitations?.first)
        #expect(try bench.peers[1].invitation(invitation.id).state == .accepted)
        for index in 1...2 { #expect(bench.members(id, at: index) == [0, 1, 2, 3]) }
    }

    /// Peer 1 was removed while it was away, and invites a member that it does not know.
    @Test func whoIsOutAndInvitesHearsOfIt() throws {
        var bench = try GroupBench(3)
        let id = try bench.create(0)
        try bench.letInAndPart(1, by: 0, to: id)
        try bench.connect(0, 2)
        try bench.letIn(2, by: 0, to: id)
        bench.ask(0, .remove("team", peer: bench.ids[1].description, withInvited: false))
        try bench.connect(1, 2)
        bench.ask(1, .invite("team", peers: ["peer2"], context: [], timeout: nil))
        #expect(bench.left(id, at: 1) == [.removed] && bench.peers[1].pending.isEmpty)
        #expect(bench.members(id, at: 2) == [0, 2])
    }

    /// A peer shows this machine its own seat without naming the group: this machine was restored from a backup that is older than its
    /// joining.
    @Test func whoIsShownItsOwnSeatUnaskedLeaves() throws {
        var bench = try GroupBench(3)
        let backup = bench.peers[1]
        let id = try bench.create(0)
        try bench.letInAndPart(1, by: 0, to: id)
        let seat = try #require(bench.peers[1].core.groups[id]?.records.seat(of: bench.ids[1]))
        let name = bench.peers[1].core.settings.name
        bench.peers[1] = backup.restarted { $0.name = name }
        try bench.connect(1, 2)
        let link = try bench.link(1, 2)
        func leaves(_ seat: GroupSeat) -> [UInt32] {
            bench.peers[1].frame(.group(.record(.seat(seat), of: id)), on: link)
            return bench.peers[1].sent(on: link).compactMap {
                if case .group(.record(.leave(let leave), id)) = $0 { leave.number } else { nil }
            }
        }
        #expect(leaves(seat) == [1])
        #expect(leaves(seat) == [], "once a connection")
        var forged = GroupSeat(
            publicKey: seat.publicKey, scheme: seat.scheme, name: seat.name, number: 2, joinedAtMilliseconds: 1, voucher: seat.voucher,
            voucherNumber: 1, warrant: seat.warrant)
        forged.signature = [1]
        #expect(leaves(forged) == [], "it would sign whatever others make up")
    }

    /// The member is connected over TLS, and runs an earlier version.
    @Test func aMemberThatKnowsNothingOfGroupsIsShownAsThat() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.disconnect(0, 1)
        _ = try bench.peers[0].prove(bench.ids[1], name: "peer1", isInitiator: true)
        let member = try #require(bench.group(id, at: 0)?.members.first { $0.peerID == bench.ids[1] })
        #expect(member.error?.code == .unsupported && member.error?.message.contains("TLS") == false)
    }

    /// A member is named by its alias or by its own name, and the alias goes first: here it is the own name of another member.
    @Test func aMemberIsRemovedByEitherName() throws {
        for (name, removed) in [("laptop", 1), ("peer1", 1), ("peer2", 1)] {
            var (bench, id) = try GroupBench.group(of: 3)
            let alias = try DisplayName(name == "peer1" ? "laptop" : name)
            _ = bench.peers[0].call(.setAlias(alias, bench.ids[1].description))
            bench.ask(0, .remove("team", peer: name, withInvited: false))
            bench.settle()
            #expect(bench.members(id, at: 0) == Set(0..<3).subtracting([removed]), "\(name)")
        }
    }
}
