import EarshotWire
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Invitations to groups that end in other ways than by their answer.
@Suite struct GroupInvitationTests {
    /// This also holds if the invitation is withdrawn while the seat is being signed or written.
    @Test(arguments: [true, false]) func anInvitationThatIsWithdrawnBeforeTheSeatIsOnDiskLetsNobodyIn(isSigned: Bool) throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.peers[0].isDiskHeld = isSigned
        let joining = try bench.beginJoining(1, by: 0, to: id)
        bench.peers[0].releaseSignature()
        if isSigned { bench.peers[0].releaseSignatures() }
        let invitation = try #require(bench.peers[0].pending.first)
        bench.peers[0].call(.withdraw(invitation))
        bench.releaseSignatures(of: 0)
        bench.peers[0].releaseDisk()
        bench.settle()
        #expect(bench.members(id, at: 0) == [0] && bench.group(id, at: 1) == nil)
        #expect(bench.peers[0].groupsOnDisk[id]?.records.count == 2, "its seat is gone from the disk")
        #expect(bench.peers[1].answers[joining]?.error == .cancelled)
    }

    /// Peer 0 has invited peer 1, which is let in by peer 2 and has not answered peer 0 yet.
    @Test func thePeersNextInvitationWaitsForTheAnswerToTheLast() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        let other = try bench.create(0, name: "other")
        try bench.letIn(2, by: 0, to: id)
        for inviter in [0, 2] { bench.ask(inviter, .invite("team", peers: ["peer1"], context: [], timeout: nil)) }
        bench.peers[1].isDiskHeld = true
        bench.respond(1, bench.peers[1].pending[1], .accept)
        #expect(bench.peers[0].pending.isEmpty && bench.members(id, at: 0) == [0, 1, 2])
        let next = try #require(
            bench.ask(0, .invite("other", peers: ["peer1"], context: [], timeout: nil))?.invitations?.first)
        #expect(!bench.peers[1].pending.contains(next.id), "the connection would drop it")
        bench.peers[1].releaseDisk()
        bench.settle()
        bench.respond(1, next.id, .accept)
        #expect(bench.members(other, at: 1) == [0, 1])
    }

    /// The peer has left the seat by which it was found to be a member.
    @Test func whoAcceptsWhatIsOverIsToldSo() throws {
        var bench = try self.overUnanswered()
        #expect(bench.respond(1, try #require(bench.peers[1].pending.first), .accept)?.error == .cancelled)
        #expect(bench.peers[1].core.groupList.isEmpty)
    }

    @Test func whatIsOverAndWasNeverAnsweredKeepsTheNextOneForItsTimeAlone() throws {
        var bench = try self.overUnanswered()
        bench.advance(bench.peers[0].core.settings.invitationTimeout)
        #expect(bench.peers[1].pending.isEmpty)
        try bench.letIn(1, by: 0, to: try #require(bench.peers[0].core.groupList.first).id)
    }

    /// Peer 0 has invited peer 1, and found it to be a member already by a seat that peer 1 has left. Peer 1 has not answered yet.
    private func overUnanswered() throws -> GroupBench {
        var bench = try GroupBench(3)
        let id = try bench.create(0)
        for (inviter, other) in [(0, 2), (2, 1)] { try bench.letInAndPart(other, by: inviter, to: id) }
        bench.ask(1, .leave("team"))
        try bench.connect(0, 1)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        try bench.connect(0, 2)
        #expect(bench.peers[0].pending.isEmpty && bench.members(id, at: 0) == [0, 2])
        return bench
    }

    /// The inviter has withdrawn its invitation while the connection was lost.
    @Test func anInviterThatAsksAnewOnAnotherConnectionTakesItsFirstBack() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        let former = try #require(bench.peers[1].pending.first)
        bench.disconnect(0, 1)
        bench.peers[0].call(.withdraw(former))
        try bench.connect(0, 1)
        try bench.letIn(1, by: 0, to: id)
        #expect(try bench.peers[1].invitation(former).state == .cancelled)
    }

    @Test func whoIsBlockedWhileItsInvitationIsCheckedHearsNo() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        _ = try bench.create(0)
        bench.peers[1].areSignaturesHeld = true
        let invitation = try #require(bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))?.invitations?.first)
        bench.peers[1].call(.setTrust(.blocked, bench.ids[0].description, until: nil))
        bench.releaseSignatures(of: 1)
        bench.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        #expect(try bench.peers[0].invitation(invitation.id).state == .declined)
        #expect(bench.peers[1].core.invitations(all: true).isEmpty)
    }

    @Test func whoseInvitationIsAcceptedHasNoStrangersPlace() throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.ask(0, .invite("team", peers: ["peer1"], context: [], timeout: nil))
        #expect(bench.peers[1].core.strangers.invitations.places.contains(bench.ids[0]))
        bench.peers[0].areSignaturesHeld = true
        bench.respond(1, try #require(bench.peers[1].pending.first), .accept)
        #expect(bench.group(id, at: 1)?.state == .joining)
        #expect(!bench.peers[1].core.strangers.invitations.places.contains(bench.ids[0]))
    }

    @Test func aCreatorThatIsNotLetBackInGivesUp() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.ask(0, .leave("team"))
        let joining = try bench.beginJoining(0, by: 1, to: id)
        bench.peers[0].advance(bench.peers[0].core.settings.invitationTimeout)
        #expect(bench.peers[0].answers[joining]?.error == .timedOut && bench.group(id, at: 0) == nil)
    }

    /// A peer gets answers to 8 indexes a minute, but receives all records without asking.
    @Test func onOneConnectionAPeerJoinsAsOftenAsItIsLetIn() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        try bench.letIn(2, by: 0, to: id)
        for _ in 0..<(2 * EarshotLimits.groupExchanges) {
            try bench.letIn(1, by: 0, to: id)
            #expect(bench.members(id, at: 1) == [0, 1, 2] && bench.attached(id, at: 1) == [0, 1, 2])
            bench.ask(1, .leave("team"))
            // The interval at which an inviter may invite.
            bench.advance(.seconds(1))
        }
    }

    /// The peer claims that another member has let it in, and shows no seat.
    @Test func whoIsNotTheMemberThatItSaysEndsTheInvitationSoon() throws {
        var bench = try GroupBench(3)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.peers[0].call(.group(.invite("team", peers: ["peer1"], context: [], timeout: .seconds(300))))
        let invitation = try #require(bench.peers[0].pending.first)
        let seat = GroupSeat(
            publicKey: GroupBench.key(1).publicKey, scheme: .ed25519, name: try DisplayName("peer1"), number: 1, joinedAtMilliseconds: 1,
            voucher: bench.ids[2], voucherNumber: 1, signature: [1], warrant: GroupSeat.Warrant(.voucher))
        let link = try bench.link(0, 1)
        bench.peers[0].frame(.group(.inviteAnswer(GroupInviteAnswer(id: invitation, decision: .accepted(seat)))), on: link)
        _ = bench.peers[0].sent(on: link)
        #expect(try bench.peers[0].invitation(invitation).state == .pending)
        bench.peers[0].advance(EarshotLimits.groupProofTime)
        #expect(try bench.peers[0].invitation(invitation).error == .conflict)
        let withdrawal = InviteWithdraw(id: invitation, reason: .withdrawn)
        #expect(bench.peers[0].sent(on: link).contains(.group(.inviteWithdraw(withdrawal))))
        #expect(bench.members(id, at: 0) == [0])
    }

    /// Makes a group of two peers, in which peer 1 has let in many keys that never connect.
    private func crowd(_ count: Int) throws -> (bench: GroupBench, id: GroupID) {
        var (bench, id) = try GroupBench.group(of: 2)
        try bench.peers[0].see(peerID(9))
        let (link, voucher) = (try bench.link(0, 1), GroupBench.key(1).publicKey)
        for number in 0..<count {
            let key: [UInt8] = [0x34, UInt8(number >> 8), UInt8(number & 0xFF)]
            var seat = GroupSeat(
                publicKey: key, scheme: .ed25519, name: try DisplayName("x\(number)"), number: 1, joinedAtMilliseconds: 1,
                voucher: bench.ids[1], voucherNumber: 1, warrant: GroupSeat.Warrant(.voucher))
            seat.signature = ToySignature.sign(try seat.signedBytes(as: .peer, in: id), by: key)
            seat.warrant.signature = ToySignature.sign(try seat.signedBytes(as: .voucher, in: id), by: voucher)
            bench.peers[0].frame(.group(.record(.seat(seat), of: id)), on: link)
            if number % EarshotLimits.groupRecordsPerTurn == 0 { bench.peers[0].advance(.milliseconds(500)) }
        }
        bench.peers[0].advance(.seconds(5))
        #expect(bench.peers[0].core.groups[id]?.records.membership.needed.count == min(count + 2, EarshotLimits.groupRecords))
        return (bench, id)
    }

    /// The members that came in through the removed one stay, with seats that the creator countersigns.
    @Test(arguments: [130, 300]) func aMemberThatHasLetInManyIsTakenOut(count: Int) throws {
        var (bench, id) = try self.crowd(count)
        let answer = bench.ask(0, .remove("team", peer: bench.ids[1].description, withInvited: false))
        #expect(answer?.error == nil && answer?.group?.members.contains { $0.peerID == bench.ids[1] } == false)
        #expect(bench.group(id, at: 0)?.members.count == min(count + 2, EarshotLimits.groupRecords) - 1)
    }

    /// Peers that the member has let in do not keep others out, and void seats hold no place.
    @Test func placesAreFreeAsSoonAsSeatsAreVoid() throws {
        var (bench, _) = try self.crowd(EarshotLimits.groupRecords)
        let invited = bench.ask(0, .invite("team", peers: [peerID(9).description], context: [], timeout: nil))
        #expect(invited?.invitations?.count == 1, "the creator's word goes before the others")
        bench.ask(0, .remove("team", peer: bench.ids[1].description, withInvited: true))
        #expect(bench.peers[0].core.groupList.first?.members.count == 1)
        bench.peers[0].call(.withdraw(try #require(invited?.invitations?.first?.id)))
        let anew = bench.ask(0, .create(name: "other", isClosed: false, isUnprotected: false))
        #expect(anew?.error == nil)
    }
}
