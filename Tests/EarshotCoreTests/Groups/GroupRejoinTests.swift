import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Groups that this machine has left and joins again, while something of the earlier membership is still in flight.
@Suite struct GroupRejoinTests {
    @Test func aRowOfTheEarlierTimeIsNoneOfTheNextOnes() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.peers[1].isDiskHeld = true
        bench.ask(0, .rename("team", to: "other"))
        bench.ask(0, .remove("other", peer: "peer1", withInvited: false))
        #expect(bench.left(id, at: 1) == [.removed])
        try bench.beginJoining(1, by: 0, to: id)
        bench.peers[1].releaseDisk()
        #expect(bench.peers[1].groupsOnDisk[id] == nil, "it would be in the group at its next start")
        bench.releaseSignatures(of: 0)
        #expect(bench.members(id, at: 1) == [0, 1] && bench.peers[1].groupsOnDisk[id] != nil)
    }

    @Test func aJoiningThatWasGivenUpIsNotTheNextOne() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(2, by: 0, to: id)
        for inviter in [0, 2] { bench.ask(inviter, .invite("team", peers: ["peer1"], context: [], timeout: nil)) }
        let invitations = bench.peers[1].pending
        // The other inviter does not hear of it.
        bench.disconnect(0, 2)
        bench.peers[1].isDiskHeld = true
        bench.respond(1, invitations[0], .accept)
        bench.ask(1, .leave("team"))
        bench.peers[2].areSignaturesHeld = true
        bench.respond(1, invitations[1], .accept)
        bench.peers[1].releaseDisk()
        #expect(bench.group(id, at: 1)?.state == .joining, "its inviter has not answered yet")
        #expect(bench.peers[1].groupsOnDisk[id] == nil)
    }

    /// Invites peer 1 of two, and holds its disk.
    private func invited() throws -> (bench: GroupBench, id: GroupID) {
        var bench = try GroupBench(2)
        try bench.connect(0, 1)
        let id = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        bench.peers[1].isDiskHeld = true
        return (bench, id)
    }

    /// A leave during the write of the joining is answered when no start would load the group any more.
    @Test func aLeaveWhileTheJoiningIsWritten() throws {
        var (bench, id) = try self.invited()
        bench.respond(1, try #require(bench.peers[1].pending.last), .accept)
        bench.ask(1, .leave("team"))
        let leaving = bench.peers[1].lastCall
        #expect(bench.group(id, at: 1) == nil && bench.peers[1].answers[leaving] == nil)
        bench.peers[1].writeNext()
        #expect(bench.peers[1].groupsOnDisk[id] != nil && bench.peers[1].answers[leaving] == nil)
        bench.peers[1].diskError = EarshotError(.noSpace, "full")
        bench.peers[1].writeNext()
        #expect(bench.peers[1].answers[leaving]?.error == .noSpace)
        bench.peers[1].releaseDisk()
        bench.peers[1].advance(EarshotLimits.keepPause)
        #expect(bench.peers[1].groupsOnDisk[id] == nil)
        #expect(bench.members(id, at: 0) == [0])
    }

    @Test func aLeaveEndsNoJoiningThatCameMeanwhile() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.peers[1].isDiskHeld = true
        bench.peers[1].call(.group(.leave("team")))
        let leaving = bench.peers[1].lastCall
        bench.ask(0, .remove("team", peer: "peer1", withInvited: false))
        let joining = try bench.beginJoining(1, by: 0, to: id)
        bench.peers[1].releaseDisk()
        #expect(bench.peers[1].answers[leaving] == .done && bench.left(id, at: 1) == [.removed])
        #expect(bench.group(id, at: 1)?.state == .joining && bench.peers[1].groupsOnDisk[id] == nil)
        bench.releaseSignatures(of: 0)
        #expect(bench.members(id, at: 1) == [0, 1] && bench.peers[1].answers[joining]?.error == nil)
        #expect(bench.peers[1].answers[joining] != nil)
    }

    /// Starts peer 1 of two from a backup that is older than its leave and its rejoining.
    private func restored() throws -> (bench: GroupBench, id: GroupID) {
        var (bench, id) = try GroupBench.group(of: 2)
        let backup = bench.peers[1]
        bench.ask(1, .leave("team"))
        try bench.letIn(1, by: 0, to: id)
        // The first record is checked alone, and the leave and the seat after it together.
        bench.ask(0, .rename("team", to: "other"))
        bench.disconnect(0, 1)
        bench.peers[1] = backup
        bench.restart(1)
        return (bench, id)
    }

    @Test func aLeaveIsByTheSeatThatCountsByThen() throws {
        var (bench, id) = try self.restored()
        bench.peers[1].isDiskHeld = true
        bench.peers[1].areSignaturesHeld = true
        try bench.connect(0, 1)
        bench.peers[1].call(.group(.leave("team")))
        let leaving = bench.peers[1].lastCall
        bench.releaseSignatures(of: 1)
        bench.peers[1].releaseDisk()
        bench.settle()
        #expect(bench.peers[1].answers[leaving]?.error == .conflict)
        #expect(bench.members(id, at: 0) == [0, 1] && bench.members(id, at: 1) == [0, 1])
        #expect(bench.ask(1, .leave("other")) == .done)
        #expect(bench.members(id, at: 0) == [0])
    }

    @Test func aSeatThatComesWhileALeaveIsWrittenIsLeftToo() throws {
        var (bench, id) = try self.restored()
        bench.peers[1].isDiskHeld = true
        bench.peers[1].call(.group(.leave("team")))
        bench.peers[1].areSignaturesHeld = true
        try bench.connect(0, 1)
        bench.releaseSignatures(of: 1)
        #expect(bench.members(id, at: 1) == [0, 1])
        bench.peers[1].releaseDisk()
        bench.settle()
        #expect(bench.members(id, at: 0) == [0] && bench.group(id, at: 1) == nil)
    }

    /// Peer 1 is let in by peer 2 and leaves. Peer 0 hears of neither before it invites peer 1.
    @Test func anAcceptanceOfASeatThatWasLeftEndsTheInvitation() throws {
        var bench = try GroupBench(3)
        let id = try bench.create(0)
        try bench.letInAndPart(2, by: 0, to: id)
        try bench.connect(1, 2)
        try bench.letIn(1, by: 2, to: id)
        bench.ask(1, .leave("team"))
        try bench.connect(0, 1)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        try bench.connect(0, 2)
        let invitation = try #require(bench.peers[1].pending.first)
        #expect(bench.respond(1, invitation, .accept)?.error == .cancelled)
        #expect(try bench.peers[0].invitation(invitation).error == .conflict)
        try bench.letIn(1, by: 0, to: id)
        for index in 0..<3 { #expect(bench.members(id, at: index) == [0, 1, 2]) }
    }

    /// If the machine is killed before it has written more, it is not in the group at its next start.
    @Test func whatIsDissolvedBeforeItIsJoinedIsOverOnDisk() throws {
        var (bench, id) = try self.invited()
        bench.peers[1].call(.setTrust(.trusted, peerID(9).description, until: nil))
        bench.respond(1, try #require(bench.peers[1].pending.last), .accept)
        bench.ask(0, .dissolve("team"))
        bench.settle()
        for _ in 0..<2 { bench.peers[1].writeNext() }
        #expect(bench.peers[1].groupsOnDisk[id]?.isOver == true)
    }

    /// The leave is sent each time, even on the same connection.
    @Test func whoGivesUpJoiningAgainLeavesAgain() throws {
        var bench = try GroupBench(2)
        try bench.connect(0, 1)
        let id = try bench.create(0)
        for _ in 0..<2 {
            bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: .seconds(5)))
            bench.peers[0].areSignaturesHeld = true
            bench.respond(1, try #require(bench.peers[1].pending.last), .accept)
            bench.peers[1].advance(.seconds(5))
            #expect(bench.group(id, at: 1) == nil)
            bench.releaseSignatures(of: 0)
            #expect(bench.members(id, at: 0) == [0])
        }
    }

    /// The inviter, which would pass the leave on, is away.
    @Test func thoseThatHaveNamedTheGroupHearOfAJoiningThatFails() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(2, by: 0, to: id)
        try bench.beginJoining(1, by: 0, to: id)
        bench.disconnect(0, 1)
        bench.peers[1].isDiskHeld = true
        bench.releaseSignatures(of: 0)
        bench.peers[1].diskError = EarshotError(.storage, "the disk is full")
        bench.peers[1].releaseDisk()
        bench.settle()
        #expect(bench.left(id, at: 1) == [.left])
        #expect(bench.members(id, at: 2) == [0, 2])
    }

    @Test func nobodyJoinsByASeatThatItHasLeft() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.disconnect(0, 2)
        bench.disconnect(1, 2)
        bench.ask(1, .leave("team"))
        try bench.beginJoining(1, by: 0, to: id)
        // Peer 2 does not know of the leave, and shows the older seat.
        try bench.connect(1, 2)
        #expect(bench.group(id, at: 1)?.state == .joining)
        bench.releaseSignatures(of: 0)
        for index in 0..<3 { #expect(bench.members(id, at: index) == [0, 1, 2]) }
        bench.ask(1, .leave("team"))
        #expect(bench.members(id, at: 2) == [0, 2])
    }

    @Test func whoComesBackShowsItsSeatToThoseThatDoNotHearItsInviter() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.peers[2].call(.setTrust(.blocked, bench.ids[0].description, until: nil))
        bench.settle()
        bench.ask(1, .leave("team"))
        #expect(bench.members(id, at: 2) == [0, 2])
        try bench.letIn(1, by: 0, to: id)
        #expect(bench.members(id, at: 2) == [0, 1, 2] && bench.attached(id, at: 2).contains(1))
        #expect(bench.attached(id, at: 1) == [0, 1, 2])
    }

    /// The peer has known all the time that it is a member, and repeats a message that was refused before this side knew.
    @Test func noMessageOvertakesOneThatWasRefusedBeforeItsSenderWasAMember() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        let link = try bench.link(1, 2)
        var number: UInt64 = 0
        func say() {
            number += 1
            bench.peers[1].receive("\(number)", MessageID(high: 0, low: number), in: id.session, on: link)
            bench.settle()
        }
        say()
        try bench.letIn(2, by: 0, to: id)
        say()
        bench.ask(0, .remove("team", peer: "peer2", withInvited: false))
        say()
        try bench.letIn(2, by: 0, to: id)
        say()
        #expect(bench.bodies(at: 1) == ["2", "4"] && bench.peers[1].inbox.map(\.followsRefusal) == [true, true])
    }
}
