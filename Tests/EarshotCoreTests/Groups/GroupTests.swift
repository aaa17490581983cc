import EarshotWire
import NIOCore
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Groups between cores: making a group, letting peers in, and the news that members get of each other.
@Suite struct GroupTests {
    @Test func whoCreatesAGroupIsItsOnlyMember() throws {
        var bench = try GroupBench(1)
        let id = try bench.create(0)
        let group = try #require(bench.group(id, at: 0))
        #expect(group.name == "team" && group.role == .creator && group.state == .joined && group.creator == bench.ids[0])
        #expect(group.members.map(\.peerID) == [bench.ids[0]] && group.members.first?.state == .connected)
        #expect(bench.peers[0].groupsOnDisk[id]?.records.count == 2)
        bench.restart(0)
        #expect(bench.group(id, at: 0)?.members.count == 1)
    }

    @Test func whoIsLetInIsConnectedAtOnce() throws {
        let (bench, id) = try GroupBench.group(of: 2)
        for index in 0..<2 {
            #expect(bench.members(id, at: index) == [0, 1])
            #expect(bench.attached(id, at: index) == [0, 1])
        }
        #expect(bench.group(id, at: 1)?.role == .member && bench.group(id, at: 1)?.state == .joined)
        #expect(bench.peers[1].core.invitations(all: true).last?.state == .accepted)
        #expect(bench.peers[0].core.invitations(all: true).last?.state == .accepted)
        #expect(bench.peers[1].groupsOnDisk[id]?.records.count == 3)
        #expect(bench.peers.allSatisfy { $0.core.sessions.isEmpty }, "no session comes of it")
    }

    @Test func membersLetOthersInAndAllHear() throws {
        var bench = try GroupBench(4)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        try bench.letIn(2, by: 1, to: id)
        try bench.letIn(3, by: 2, to: id)
        for index in 0..<4 {
            #expect(bench.members(id, at: index) == [0, 1, 2, 3])
            #expect(bench.attached(id, at: index) == [0, 1, 2, 3])
        }
    }

    @Test func aMemberThatNobodyKnowsShowsItsSeat() throws {
        var bench = try GroupBench(3)
        let id = try bench.create(0)
        for (inviter, other) in [(0, 1), (1, 2)] { try bench.letInAndPart(other, by: inviter, to: id) }
        try bench.connect(0, 2)
        #expect(bench.members(id, at: 0) == [0, 1, 2])
        #expect(bench.attached(id, at: 0) == [0, 2] && bench.attached(id, at: 2) == [0, 2])
    }

    @Test func aMessageReachesAllOthersOnce() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        let call = bench.send("hello", by: 1, to: id)
        #expect(bench.bodies(at: 0) == ["hello"] && bench.bodies(at: 2) == ["hello"] && bench.bodies(at: 1) == [])
        #expect(bench.status(of: call, at: 1, for: 0) == .delivered && bench.status(of: call, at: 1, for: 2) == .delivered)
        #expect(bench.peers[0].received.first?.group == GroupLabel(id: id, name: "team"))
        #expect(bench.peers[0].inbox.first?.senderID == bench.ids[1])
    }

    @Test func aQueuedMessageWaitsForTheAbsent() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.disconnect(0, 2)
        let call = bench.send("later", by: 0, to: id, queue: true)
        #expect(bench.bodies(at: 1) == ["later"] && bench.bodies(at: 2) == [])
        #expect(bench.status(of: call, at: 0, for: 2) == .queued)
        bench.restart(0)
        try bench.connect(0, 2)
        #expect(bench.bodies(at: 2) == ["later"])
        #expect(bench.peers[2].inbox.first?.group?.id == id)
    }

    @Test func nothingIsSentToWhoIsAway() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.disconnect(0, 2)
        let call = bench.send("now", by: 0, to: id)
        #expect(bench.peers[0].outcome(of: call) == nil)
        bench.advance(EarshotLimits.messageTimeout)
        #expect(bench.status(of: call, at: 0, for: 1) == .delivered && bench.status(of: call, at: 0, for: 2) == .failed)
    }

    @Test func whoLeavesIsGoneEverywhere() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        #expect(bench.ask(1, .leave("team")) == .done)
        #expect(bench.group(id, at: 1) == nil && bench.left(id, at: 1) == [.left])
        #expect(bench.peers[1].groupsOnDisk[id] == nil)
        for index in [0, 2] { #expect(bench.members(id, at: index) == [0, 2]) }
        #expect(bench.send("x", by: 0, to: id) != bench.peers[1].lastCall)
        #expect(bench.bodies(at: 1) == [] && bench.bodies(at: 2) == ["x"])
    }

    @Test func whoLeftWhileNobodyWasThereSaysSo() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        for other in [0, 2] { bench.disconnect(1, other) }
        bench.ask(1, .leave("team"))
        #expect(bench.members(id, at: 0) == [0, 1, 2])
        try bench.connect(0, 1)
        #expect(bench.members(id, at: 0) == [0, 2], "it is shown its seat, and signs that it has left")
        #expect(bench.members(id, at: 2) == [0, 2])
    }

    @Test func whoIsRemovedHearsItAndTalksNoMore() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        #expect(bench.ask(1, .remove("team", peer: "peer2", withInvited: false))?.error == .forbidden)
        #expect(bench.ask(0, .remove("team", peer: "peer2", withInvited: false))?.group?.members.count == 2)
        #expect(bench.left(id, at: 2) == [.removed] && bench.group(id, at: 2) == nil)
        #expect(bench.members(id, at: 1) == [0, 1])
        #expect(bench.peers[2].groupsOnDisk[id] == nil)
        bench.restart(1)
        #expect(bench.members(id, at: 1) == [0, 1], "that is on disk")
    }

    @Test func whoWasAwayWhenItWasRemovedHearsItFromAnyMember() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        for other in [0, 1] { bench.disconnect(2, other) }
        bench.ask(0, .remove("team", peer: bench.ids[2].description, withInvited: false))
        #expect(bench.members(id, at: 2) == [0, 1, 2])
        try bench.connect(1, 2)
        #expect(bench.left(id, at: 2) == [.removed])
    }

    @Test func whoDoesNotKnowOfItsRemovalAndOffersAFileHearsOfIt() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        let link = try bench.link(0, 1)
        bench.ask(0, .remove("team", peer: "peer1", withInvited: false))
        let offer = ResourceOffer(session: SessionID(high: id.high, low: id.low), id: .random(), kind: .file, size: 1, name: "a")
        bench.peers[0].frame(.resource(.offer(offer)), on: link)
        let sent = bench.peers[0].sent(on: link)
        #expect(sent.contains { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal.code == .notConnected } else { false } })
        #expect(sent.contains { if case .group(.record(.removal, id)) = $0 { true } else { false } })
        bench.peers[0].frame(.resource(.offer(offer)), on: link)
        #expect(bench.peers[0].sent(on: link).count == 1, "it is shown it once")
    }

    @Test func whatAPeerNamedBeforeItWasAMemberIsComparedWhenItIsOne() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        let link = try bench.link(1, 2)
        bench.peers[1].frame(.group(.names([GroupName(group: id, digest: .random())])), on: link)
        #expect(bench.peers[1].sent(on: link).isEmpty)
        // Peer 0 has let peer 2 in, and peer 1 hears it from peer 0.
        let (key, creator) = (GroupBench.key(2).publicKey, GroupBench.key(0).publicKey)
        var seat = GroupSeat(
            publicKey: key, scheme: .ed25519, name: try DisplayName("peer2"), number: 1, joinedAtMilliseconds: 1, voucher: bench.ids[0],
            voucherNumber: 1, warrant: GroupSeat.Warrant(.creator))
        seat.signature = ToySignature.sign(try seat.signedBytes(as: .peer, in: id), by: key)
        seat.warrant.signature = ToySignature.sign(try seat.signedBytes(as: .creator, in: id), by: creator)
        bench.peers[1].frame(.group(.record(.seat(seat), of: id)), on: try bench.link(1, 0))
        let sent = bench.peers[1].sent(on: link)
        #expect(sent.contains { if case .group(.names) = $0 { true } else { false } })
        #expect(sent.contains { if case .group(.index(id, _)) = $0 { true } else { false } }, "it holds other records")
    }

    @Test func aRemovalTakesTheInvitedOnlyWhereAsked() throws {
        for withInvited in [false, true] {
            var bench = try GroupBench(3)
            try bench.connectAll()
            let id = try bench.create(0)
            try bench.letIn(1, by: 0, to: id)
            try bench.letIn(2, by: 1, to: id)
            bench.ask(0, .remove("team", peer: "peer1", withInvited: withInvited))
            #expect(bench.members(id, at: 0) == (withInvited ? [0] : [0, 2]))
            #expect(bench.left(id, at: 1) == [.removed])
            #expect(bench.left(id, at: 2) == (withInvited ? [.removed] : []))
        }
    }

    @Test func aDissolvedGroupIsGoneForAllAlsoForTheAbsent() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.disconnect(0, 2)
        bench.disconnect(1, 2)
        #expect(bench.ask(1, .dissolve("team"))?.error == .forbidden)
        #expect(bench.ask(0, .dissolve("team")) == .done)
        #expect(bench.left(id, at: 0) == [.dissolved] && bench.left(id, at: 1) == [.dissolved])
        #expect(bench.peers[0].core.groupList.isEmpty)
        bench.restart(1)
        #expect(bench.peers[1].core.groupList.isEmpty)
        try bench.connect(1, 2)
        #expect(bench.left(id, at: 2) == [.dissolved])
    }

    @Test func onlyTheCreatorRenames() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        #expect(bench.ask(1, .rename("team", to: "other"))?.error == .forbidden)
        #expect(bench.ask(0, .rename("team", to: "other"))?.group?.name == "other")
        #expect(bench.group(id, at: 1)?.name == "other")
    }

    @Test func aClosedGroupIsTheCreatorsToFill() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0, isClosed: true)
        try bench.letIn(1, by: 0, to: id)
        let answer = bench.ask(1, .invite("team", peers: [bench.ids[2].description], context: [], timeout: nil))
        #expect(answer?.error == .forbidden)
    }

    /// A peer that knows a group's id names its session so. When this machine joins the group, a session with that id ends.
    @Test func noSessionHasAGroupsID() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        let stranger = PeerID(subjectPublicKeyInfo: [0x31])
        let link = try bench.peers[1].prove(stranger)
        bench.peers[1].call(.invite(stranger.description, context: [], timeout: nil))
        let invitation = try #require(bench.peers[1].invites(on: link).first)
        bench.peers[1].frame(.inviteAnswer(InviteAnswer(id: invitation, decision: .accepted(id.session))), on: link)
        #expect(bench.peers[1].core.records[stranger]?.sessionID == id.session)
        try bench.letIn(1, by: 0, to: id)
        #expect(bench.peers[1].core.records[stranger]?.sessionID == nil && bench.peers[1].sessionsOnDisk[stranger] == nil)
        #expect(bench.peers[1].sent(on: link).contains(.sessionEnd(id.session)))
        // The same holds later.
        bench.peers[1].frame(.sessionResume(id.session), on: link)
        #expect(bench.peers[1].core.records[stranger]?.sessionID == nil)
    }

    @Test func aRejectedInvitationLetsNobodyIn() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [1, 2], timeout: nil))
        let invitation = try #require(bench.peers[1].pending.first)
        let shown = try bench.peers[1].invitation(invitation)
        #expect(shown.group == InvitedGroup(id: id, name: "team", creator: bench.ids[0], members: 1) && shown.context == [1, 2])
        bench.respond(1, invitation, .reject)
        #expect(bench.peers[0].core.invitations(all: true).last?.state == .declined)
        #expect(bench.members(id, at: 0) == [0] && bench.group(id, at: 1) == nil)
    }

    @Test func aWithdrawnInvitationLetsNobodyIn() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        let invitation = try #require(
            bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))?.invitations?.first)
        // The invitee's answer is in flight when the invitation is withdrawn.
        bench.peers[0].areSignaturesHeld = true
        bench.respond(1, invitation.id, .accept)
        #expect(bench.group(id, at: 1)?.state == .joining)
        bench.peers[0].call(.withdraw(invitation.id))
        bench.peers[0].releaseSignatures()
        bench.settle()
        #expect(bench.members(id, at: 0) == [0] && bench.group(id, at: 1) == nil)
        #expect(bench.peers[1].answers[bench.peers[1].lastCall]?.error == .cancelled)
    }

    @Test func anInvitationIsWithdrawnBeforeItIsChecked() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        _ = try bench.create(0)
        bench.peers[1].areSignaturesHeld = true
        let invitation = try #require(
            bench.ask(0, .invite("team", peers: ["peer1"], context: [1], timeout: nil))?.invitations?.first)
        #expect(bench.peers[1].holds.count == 1)
        bench.peers[0].call(.withdraw(invitation.id))
        bench.settle()
        #expect(bench.peers[1].holds.isEmpty, "its sender is not charged for it any more")
        bench.peers[1].releaseSignatures()
        #expect(bench.peers[1].pending.isEmpty && bench.peers[1].core.invitations(all: true).isEmpty)
    }

    /// Peer 1 of two has accepted, and the inviter, peer 0, has not signed its seat yet.
    private func joining(timeout: Duration) throws -> (bench: GroupBench, id: GroupID) {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: timeout))
        bench.peers[0].areSignaturesHeld = true
        bench.respond(1, try #require(bench.peers[1].pending.first), .accept)
        return (bench, id)
    }

    @Test func whoGivesUpJoiningAndIsLetInAllTheSameLeaves() throws {
        var (bench, id) = try self.joining(timeout: .seconds(5))
        bench.peers[1].advance(.seconds(5))
        #expect(bench.peers[1].answers[bench.peers[1].lastCall]?.error == .timedOut)
        bench.peers[0].releaseSignatures()
        bench.settle()
        #expect(bench.group(id, at: 1) == nil)
        #expect(bench.members(id, at: 0) == [0], "it is shown its seat, and signs that it has left")
        try bench.letIn(1, by: 0, to: id)
        #expect(bench.members(id, at: 0) == [0, 1])
    }

    @Test func whoAcceptsOfAnInviterThatHasForgottenGivesUp() throws {
        var (bench, id) = try self.joining(timeout: .seconds(3600))
        // The inviter restarts, and has forgotten its invitation.
        bench.restart(0)
        try bench.connect(0, 1)
        #expect(bench.group(id, at: 1)?.state == .joining)
        bench.peers[1].advance(EarshotLimits.absentInviterTime)
        #expect(bench.group(id, at: 1) == nil)
        #expect(bench.peers[1].answers[bench.peers[1].lastCall]?.error == .notConnected)
    }

    @Test func whoIsLetInByTheLastMemberAsThatLeavesIsAlone() throws {
        var (bench, id) = try self.joining(timeout: .seconds(3600))
        bench.peers[0].releaseSignatures()
        bench.peers[0].call(.group(.leave("team")))
        bench.settle()
        #expect(bench.group(id, at: 0) == nil && bench.members(id, at: 1) == [1])
        #expect(bench.peers[1].answers[bench.peers[1].lastCall]?.error == nil)
    }

    /// The inviter runs a version that sends the records only when asked.
    @Test func whoHasNotHeardThatTheLastMemberLetItInIsTold() throws {
        var (bench, id) = try self.joining(timeout: .seconds(3600))
        let (link, other) = (try bench.link(0, 1), try bench.link(1, 0))
        bench.peers[0].releaseSignatures()
        bench.peers[0].call(.group(.leave("team")))
        for frame in bench.peers[0].sent(on: link) {
            if case .group(.record(.seat(let seat), _)) = frame, seat.peer == bench.ids[1] { continue }
            bench.peers[1].frame(frame, on: other)
        }
        bench.settle()
        #expect(bench.group(id, at: 0) == nil && bench.group(id, at: 1) == nil)
        #expect(bench.peers[1].answers[bench.peers[1].lastCall]?.error == .notMember)
    }

    @Test func aCreatorThatHasLeftComesBackByItsOwnWord() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.ask(0, .leave("team"))
        #expect(bench.members(id, at: 1) == [1, 2])
        try bench.letIn(0, by: 1, to: id)
        for index in 0..<3 {
            #expect(bench.members(id, at: index) == [0, 1, 2])
            #expect(bench.attached(id, at: index) == [0, 1, 2])
        }
        #expect(bench.ask(0, .rename("team", to: "again"))?.group?.name == "again")
        #expect(bench.peers[1].core.invitations(all: true).last?.state == .accepted)
    }

    @Test func acceptingOneInvitationAnswersAllToTheGroup() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        for inviter in 0..<2 { bench.ask(inviter, .invite("team", peers: ["peer2"], context: [], timeout: nil)) }
        #expect(bench.peers[2].pending.count == 2)
        bench.respond(2, bench.peers[2].pending[0], .accept)
        #expect(bench.peers[2].pending.isEmpty)
        for inviter in 0..<2 { #expect(bench.peers[inviter].core.invitations(all: true).last?.state == .accepted) }
        for index in 0..<3 { #expect(bench.members(id, at: index) == [0, 1, 2]) }
    }

    @Test func aBlockedMemberIsNeitherSentToNorHeard() throws {
        var (bench, id) = try GroupBench.group(of: 3)
        bench.peers[0].call(.setTrust(.blocked, bench.ids[1].description, until: nil))
        let call = bench.send("x", by: 0, to: id)
        #expect(bench.bodies(at: 1) == [] && bench.bodies(at: 2) == ["x"])
        #expect(bench.status(of: call, at: 0, for: 1) == nil)
        #expect(bench.group(id, at: 0)?.members.first { $0.peerID == bench.ids[1] }?.state == .blocked)
        _ = bench.send("y", by: 1, to: id)
        #expect(bench.bodies(at: 0) == [] && bench.bodies(at: 2) == ["x", "y"])
        // The connection ends, so that the other side does not consider this machine connected.
        let link = try bench.link(0, 1)
        bench.peers[0].advance(EarshotLimits.blockedConnectionTime - .milliseconds(1))
        #expect(bench.peers[0].closed[link] == nil)
        bench.peers[0].advance(.milliseconds(1))
        #expect(bench.peers[0].closed[link] == .some(nil))
    }

    @Test func groupsThatWerePartedMerge() throws {
        var (bench, id) = try GroupBench.group(of: 6)
        for one in 0..<3 { for other in 3..<6 { bench.disconnect(one, other) } }
        bench.ask(0, .rename("team", to: "apart"))
        bench.ask(4, .leave("team"))
        _ = bench.send("here", by: 1, to: id)
        _ = bench.send("there", by: 3, to: id)
        try bench.connect(2, 5)
        for index in [0, 1, 2, 3, 5] {
            #expect(bench.members(id, at: index) == [0, 1, 2, 3, 5])
            #expect(bench.group(id, at: index)?.name == "apart")
        }
        #expect(bench.bodies(at: 2) == ["here"] && bench.bodies(at: 5) == ["there"])
    }
}
