import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Many strangers invite at once: some wait, some are evicted, and trusted peers are never delayed by them.
@Suite struct StrangersTests {
    private typealias Stranger = (peer: PeerID, link: LinkID, id: InvitationID)

    private static func peer(_ number: Int) -> PeerID { PeerID(subjectPublicKeyInfo: [9, UInt8(number >> 8), UInt8(number & 0xFF)]) }
    private static func origin(_ number: Int) -> [UInt8] { [127, 0, 3, UInt8(number)] }

    private func inviting(_ bob: inout CoreBench, _ peer: PeerID, from number: Int) throws -> Stranger {
        let link = try bob.prove(peer, from: Self.origin(number))
        return (peer, link, bob.invite(on: link))
    }

    /// Fills all places, four per address, from address 1 on.
    private func fill(_ bob: inout CoreBench) throws -> [Stranger] {
        let all = try (0..<EarshotLimits.pendingInvitations).map { number in
            try self.inviting(&bob, Self.peer(number), from: 1 + number / EarshotLimits.pendingInvitationsPerAddress)
        }
        #expect(bob.pending == all.map(\.id))
        return all
    }

    @Test func aTrustedPeerIsNeverBusyForStrangers() throws {
        var bob = CoreBench()
        let strangers = try self.fill(&bob)
        // Trusted peers are accepted automatically, from any address, as often as they invite.
        bob.call(.setTrust(.trusted, peerID(1).description, until: nil))
        let link = try bob.prove(peerID(1), from: Self.origin(1))
        for _ in 0..<2 * EarshotLimits.askingBurst { bob.frame(.sessionEnd(try bob.join(on: link)), on: link) }
        #expect(bob.pending == strangers.map(\.id), "and no stranger gave way for it")
    }

    @Test func aTrustedPeerThatAPersonIsAskedAboutTakesNoPlace() throws {
        var bob = CoreBench { $0.policy.fromTrusted = .ask }
        let strangers = try self.fill(&bob)
        bob.call(.setTrust(.trusted, peerID(1).description, until: nil))
        let friend = try self.inviting(&bob, peerID(1), from: 1)
        #expect(bob.pending == strangers.map(\.id) + [friend.id])
        // A stranger that becomes trusted no longer occupies a stranger's place, so no newcomer evicts it.
        bob.call(.setTrust(.trusted, strangers[0].peer.description, until: nil))
        let newcomer = try self.inviting(&bob, peerID(2), from: 99)
        #expect(bob.pending == strangers.map(\.id) + [friend.id, newcomer.id])
    }

    @Test func invitationsAboveTheLimitAreAnsweredBusy() throws {
        var bob = CoreBench()
        // As many addresses as places: an address with more would lose one.
        for number in 0..<EarshotLimits.pendingInvitations { _ = try self.inviting(&bob, Self.peer(number), from: number) }
        #expect(bob.pending.count == EarshotLimits.pendingInvitations)
        let late = try self.inviting(&bob, peerID(1), from: 200)
        #expect(bob.inviteAnswer(on: late.link) == InviteAnswer(id: late.id, decision: .busy))
        #expect(bob.pending.count == EarshotLimits.pendingInvitations)
        // A decided invitation makes room.
        bob.call(.respond(try #require(bob.pending.first), .reject, always: false))
        let again = bob.invite(on: late.link)
        #expect(bob.pending.last == again)
    }

    @Test func pendingInvitationsPerAddress() throws {
        var bob = CoreBench()
        let strangers = try (0..<EarshotLimits.pendingInvitationsPerAddress).map { try self.inviting(&bob, Self.peer($0), from: 1) }
        let late = try self.inviting(&bob, peerID(1), from: 1)
        #expect(bob.inviteAnswer(on: late.link) == InviteAnswer(id: late.id, decision: .busy))
        let elsewhere = try self.inviting(&bob, peerID(2), from: 2)
        #expect(bob.pending == strangers.map(\.id) + [elsewhere.id])
    }

    @Test func onePendingAPeer() throws {
        var bob = CoreBench()
        let first = try self.inviting(&bob, peerID(1), from: 1)
        let second = bob.invite(on: first.link)
        #expect(bob.inviteAnswer(on: first.link) == InviteAnswer(id: second, decision: .busy))
        // An invitation on another connection replaces the first.
        bob.advance(.seconds(6))
        let again = try self.inviting(&bob, peerID(1), from: 1)
        #expect(bob.inviteAnswer(on: again.link) == nil)
        #expect(bob.pending == [again.id])
    }

    @Test func oneThatHasGoneGivesWayAtOnce() throws {
        var bob = CoreBench()
        let strangers = try self.fill(&bob)
        for number in [9, 5] { bob.lose(strangers[number].link) }
        let newcomer = try self.inviting(&bob, peerID(1), from: 99)
        // The oldest of those that have gone.
        let gone = try bob.invitation(strangers[5].id)
        #expect(gone.state == .cancelled && gone.error == .notConnected)
        #expect(bob.pending == strangers.map(\.id).filter { $0 != strangers[5].id } + [newcomer.id])
        // After its return it counts as a newcomer: the other absent one is evicted.
        let back = try self.inviting(&bob, strangers[5].peer, from: 2)
        #expect(bob.pending.contains(back.id))
        #expect(try bob.invitation(strangers[9].id).state == .cancelled)
    }

    @Test func theOldestOfTheFullestAddressIsToldThatItHasToGo() throws {
        var bob = CoreBench()
        let strangers = try self.fill(&bob)
        // One address holds fewer places than the others.
        bob.call(.respond(strangers[0].id, .reject, always: false))
        let first = try self.inviting(&bob, peerID(1), from: 98)
        let second = try self.inviting(&bob, peerID(2), from: 99)
        #expect(bob.inviteAnswer(on: strangers[4].link) == InviteAnswer(id: strangers[4].id, decision: .busy))
        let displaced = try bob.invitation(strangers[4].id)
        #expect(displaced.state == .failed && displaced.error == .busy)
        #expect(bob.pending == strangers.map(\.id).filter { $0 != strangers[0].id && $0 != strangers[4].id } + [first.id, second.id])
    }

    @Test func anInviterThatStaysAwayIsWithdrawn() throws {
        var bob = CoreBench()
        let inviter = try self.inviting(&bob, peerID(1), from: 1)
        let staying = try self.inviting(&bob, peerID(2), from: 2)
        bob.lose(inviter.link)
        bob.advance(EarshotLimits.absentInviterTime - .nanoseconds(1))
        #expect(bob.pending == [inviter.id, staying.id])
        // The peer is back in time: nothing happens.
        let back = try bob.prove(peerID(1), from: Self.origin(1))
        bob.invite(inviter.id, on: back)
        bob.advance(.nanoseconds(1))
        #expect(bob.pending == [inviter.id, staying.id])
        bob.lose(back)
        bob.advance(EarshotLimits.absentInviterTime)
        let resolved = try bob.invitation(inviter.id)
        #expect(resolved.state == .cancelled && resolved.errorMessage?.contains("30 s") == true)
        #expect(bob.events.contains(.invitationResolved(resolved)))
        #expect(bob.pending == [staying.id])
        #expect(bob.core.records[peerID(1)] == nil, "its row is gone too")
        // The peer is back too late: its invitation is a new one, and it is not told that it was declined.
        let late = try bob.prove(peerID(1), from: Self.origin(1))
        bob.invite(inviter.id, on: late)
        #expect(bob.pending == [staying.id, inviter.id])
        let accepted = bob.call(.respond(inviter.id, .accept, always: false))?.invitation
        #expect(bob.inviteAnswer(on: late)?.decision == accepted?.sessionID.map { .accepted($0) })
    }

    /// Beyond its allowance a stranger is answered `busy`, and no user is asked.
    @Test(arguments: [InvitationPolicy.reject, .ask]) func askingTooOften(policy: InvitationPolicy) throws {
        var bob = CoreBench { $0.policy.fromUnknown = policy }
        let link = try bob.prove(peerID(1))
        func ask() -> InviteAnswer.Decision? {
            let id = bob.invite(on: link)
            if policy == .reject { return bob.inviteAnswer(on: link)?.decision }
            bob.frame(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)), on: link)
            return bob.core.invitations[id] == nil ? .busy : .declined
        }
        for _ in 0..<EarshotLimits.askingBurst { #expect(ask() == .declined) }
        let events = bob.events.count
        for _ in 0..<20 { #expect(ask() == .busy) }
        #expect(bob.events.count == events)
        #expect(bob.core.invitations(all: true).count == EarshotLimits.askingBurst)
        bob.advance(EarshotLimits.askingInterval)
        #expect(ask() == .declined)
        #expect(ask() == .busy)
    }

    @Test func freshKeysOfOneAddressAskAsOne() throws {
        var bob = CoreBench { $0.policy.fromUnknown = .reject }
        var decisions: [InviteAnswer.Decision?] = []
        for number in 0..<EarshotLimits.askingBurstPerAddress + 4 {
            let stranger = try self.inviting(&bob, Self.peer(number), from: 1)
            decisions.append(bob.inviteAnswer(on: stranger.link)?.decision)
            bob.lose(stranger.link)
        }
        #expect(decisions.filter { $0 == .declined }.count == EarshotLimits.askingBurstPerAddress)
        #expect(decisions.suffix(4) == [.busy, .busy, .busy, .busy])
        // Another address, and a trusted peer at this one, are not affected.
        let other = try self.inviting(&bob, peerID(1), from: 2)
        #expect(bob.inviteAnswer(on: other.link)?.decision == .declined)
        bob.call(.setTrust(.trusted, peerID(2).description, until: nil))
        let link = try bob.prove(peerID(2), from: Self.origin(1))
        _ = try bob.join(on: link)
    }

    /// The settings admit a limited number of strangers, after which the user is asked. A trusted peer is admitted nevertheless.
    @Test(arguments: [false, true]) func strangersAboveTheLimitAreLeftToTheUser(isTrusted: Bool) throws {
        for count in [EarshotLimits.strangersSessions - 1, EarshotLimits.strangersSessions] {
            var bob = CoreBench { $0.policy.fromUnknown = .accept }
            let sessions = (0..<count).map {
                StoredSession(id: SessionID(high: 5, low: UInt64($0)), members: [bob.core.id, Self.peer($0)], createdAt: bob.now.wall)
            }
            bob.core.load([], sessions)
            if isTrusted { bob.call(.setTrust(.trusted, peerID(1).description, until: nil)) }
            let stranger = try self.inviting(&bob, peerID(1), from: 1)
            let isLetIn = isTrusted || count < EarshotLimits.strangersSessions
            #expect((bob.inviteAnswer(on: stranger.link) != nil) == isLetIn, "\(count)")
            #expect(bob.pending == (isLetIn ? [] : [stranger.id]))
        }
    }

    /// Blocked peers get the same answers at the same time, and beyond the limit no further answers.
    @Test func aBlockedPeerThatAsksTooOften() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.blocked, peerID(1).description, until: nil))
        let events = bob.events.count
        let link = try bob.prove(peerID(1))
        let ids = (0..<EarshotLimits.askingBurst).map { _ in bob.invite(on: link) }
        #expect(bob.holds.count == EarshotLimits.askingBurst)
        let late = bob.invite(on: link)
        #expect(bob.inviteAnswer(on: link) == InviteAnswer(id: late, decision: .busy))
        bob.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.lowerBound) - .nanoseconds(1))
        #expect(bob.sent(on: link) == [], "not before a person could")
        bob.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        let answers = bob.sent(on: link).compactMap { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }
        #expect(Set(answers.map(\.id)) == Set(ids) && answers.allSatisfy { $0.decision == .declined })
        #expect(bob.events.count == events && bob.pending == [])
        #expect(bob.core.lateAnswers.count == 0 && bob.holds.isEmpty)
    }

    /// A delayed answer is charged to the peer.
    @Test func aLateAnswerIsChargedUntilItIsGiven() throws {
        var bob = CoreBench()
        bob.call(.setTrust(.blocked, peerID(1).description, until: nil))
        let link = try bob.prove(peerID(1))
        bob.invite(on: link)
        #expect(Array(bob.holds.values) == [EarshotLimits.blockedAnswerCharge])
        // The charge remains if the peer disconnects meanwhile.
        bob.lose(link)
        bob.advance(.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound))
        #expect(bob.holds.isEmpty)
    }
}
