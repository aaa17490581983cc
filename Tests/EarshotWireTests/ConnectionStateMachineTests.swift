@testable import EarshotWire
import NIOCore
import Testing

private let one = PeerID(subjectPublicKeyInfo: [1])
private let other = PeerID(subjectPublicKeyInfo: [0])

private func violation(_ action: ConnectionStateMachine.ReceivedAction) -> FrameType? {
    guard case .violation(let error) = action, case .outOfOrder(let type, _) = error else { return nil }
    #expect(error.code == .protocolViolation)
    return type
}

@Suite struct ConnectionStateMachineTests {
    private var machine = ConnectionStateMachine(localID: min(one, other), peerID: max(one, other))

    private static func invite(_ number: UInt64) -> Frame {
        .invite(Invite(id: InvitationID(high: 0, low: number), timeoutMilliseconds: 1000, context: []))
    }

    private static func withdraw(_ number: UInt64) -> Frame {
        .inviteWithdraw(InviteWithdraw(id: InvitationID(high: 0, low: number), reason: .withdrawn))
    }

    private static func answer(_ number: UInt64, _ decision: InviteAnswer.Decision) -> Frame {
        .inviteAnswer(InviteAnswer(id: InvitationID(high: 0, low: number), decision: decision))
    }

    @Test func handshakeFramesAreOver() throws {
        for frame in [Frame.hello(try Fixtures.hello()), .proof(Proof(signature: [1]))] {
            var machine = self.machine
            #expect(violation(machine.received(frame)) == frame.type)
            #expect(machine.received(.ping(1)) == .ignore)
            #expect(machine.sent(frame) == .drop)
        }
    }

    @Test func aPingIsAnswered() {
        var machine = self.machine
        #expect(machine.received(.ping(9)) == .reply(.pong(9)))
        #expect(machine.sent(.pong(9)) == .drop)
    }

    @Test func aPongAnswersOurPings() {
        var machine = self.machine
        for value in 0..<UInt64(ConnectionStateMachine.outstandingPings) { #expect(machine.sent(.ping(value)) == .send) }
        #expect(machine.sent(.ping(99)) == .drop)
        #expect(machine.received(.pong(0)) == .deliver)
        #expect(machine.received(.pong(1)) == .deliver)
        #expect(violation(machine.received(.pong(1))) == .pong)
        var silent = self.machine
        #expect(violation(silent.received(.pong(0))) == .pong)
    }

    @Test func goodbyeAndRefusalAreLast() {
        for frame in [Frame.goodbye, .refusal(Refusal(code: .superseded))] {
            var machine = self.machine
            #expect(machine.received(frame) == .deliver)
            #expect(machine.received(.ping(1)) == .ignore)
            #expect(machine.sent(.ping(1)) == .drop)
        }
    }

    @Test func afterOurGoodbyeWeOnlyListen() {
        var machine = self.machine
        #expect(machine.sent(.goodbye) == .send)
        #expect(machine.sent(.ping(1)) == .drop)
        #expect(machine.received(.ping(1)) == .ignore)
        #expect(machine.received(.sessionEnd(Fixtures.session)) == .deliver)
        #expect(machine.received(.goodbye) == .deliver)
    }

    @Test func afterOurRefusalNothingCounts() {
        var machine = self.machine
        #expect(machine.sent(.refusal(Refusal(code: .busy))) == .send)
        #expect(machine.received(.sessionEnd(Fixtures.session)) == .ignore)
    }

    @Test func sessionsAndReceiptsAlwaysPass() {
        var machine = self.machine
        let receipts = Frame.messageReceipts([MessageReceipt(id: Fixtures.message, outcome: .read)])
        for frame in [Frame.sessionResume(Fixtures.session), .sessionEnd(Fixtures.session), receipts] {
            #expect(machine.received(frame) == .deliver)
            #expect(machine.sent(frame) == .send)
        }
    }

    @Test func reliableMessagesOnlyRise() {
        var machine = self.machine
        #expect(machine.received(.message(Fixtures.message(sequence: 0))) == .deliver)
        #expect(machine.received(.message(Fixtures.message(sequence: 5))) == .deliver)
        #expect(machine.received(.message(Fixtures.message(sequence: 1, mode: .unreliable))) == .deliver)
        #expect(machine.received(.message(Fixtures.message(sequence: .max))) == .deliver)
        var again = machine
        #expect(violation(again.received(.message(Fixtures.message(sequence: .max)))) == .message)
        #expect(machine.received(.message(Fixtures.message(sequence: 3, mode: .resumed))) == .deliver, "begins anew")
        #expect(machine.received(.message(Fixtures.message(sequence: 4))) == .deliver)
        #expect(violation(machine.received(.message(Fixtures.message(sequence: 4)))) == .message)
    }

    // MARK: Invitations

    @Test func anInvitationIsAnsweredOnce() {
        var machine = self.machine
        #expect(machine.received(Self.invite(1)) == .deliver)
        #expect(machine.sent(Self.answer(2, .declined)) == .drop)
        #expect(machine.sent(Self.answer(1, .declined)) == .send)
        #expect(machine.sent(Self.answer(1, .declined)) == .drop)
        // A withdrawal that crossed the answer passes once.
        #expect(machine.received(Self.withdraw(1)) == .ignore)
        #expect(violation(machine.received(Self.withdraw(1))) == .inviteWithdraw)
    }

    @Test func aWithdrawnInvitationCannotBeAnswered() {
        var machine = self.machine
        _ = machine.received(Self.invite(1))
        #expect(machine.received(Self.withdraw(1)) == .deliver)
        #expect(machine.sent(Self.answer(1, .accepted(Fixtures.session))) == .drop)
        #expect(machine.received(Self.invite(2)) == .deliver)
    }

    /// So that the owner knows by a withdrawal that it is handed that no acceptance of it has gone out, whenever it hears of the withdrawal.
    @Test func aWithdrawalIsDeliveredOnlyWhereNothingWasAnswered() {
        var machine = self.machine
        _ = machine.received(Self.invite(1))
        #expect(machine.sent(Self.answer(1, .accepted(Fixtures.session))) == .send)
        #expect(machine.received(Self.withdraw(1)) == .ignore)
        _ = machine.received(Self.invite(2))
        #expect(machine.received(Self.withdraw(2)) == .deliver)
        #expect(machine.sent(Self.answer(2, .accepted(Fixtures.session))) == .drop)
        #expect(machine.sent(.sessionEnd(Fixtures.session)) == .send)
    }

    @Test func aSecondInvitationIsBusy() {
        var machine = self.machine
        _ = machine.received(Self.invite(1))
        #expect(machine.received(Self.invite(2)) == .reply(Self.answer(2, .busy)))
        #expect(machine.received(Self.withdraw(2)) == .ignore)
        #expect(machine.received(Self.withdraw(1)) == .deliver)
    }

    @Test func anInvitationIsNotRepeated() {
        var machine = self.machine
        _ = machine.received(Self.invite(1))
        var pending = machine
        #expect(violation(pending.received(Self.invite(1))) == .invite)
        _ = machine.sent(Self.answer(1, .declined))
        var withdrawn = machine
        #expect(violation(machine.received(Self.invite(1))) == .invite)
        // Nor after a withdrawal, under way or not.
        #expect(withdrawn.received(Self.withdraw(1)) == .ignore)
        #expect(violation(withdrawn.received(Self.invite(1))) == .invite)
    }

    @Test func aWithdrawnInvitationIsNotRepeated() {
        var machine = self.machine
        _ = machine.received(Self.invite(1))
        #expect(machine.received(Self.withdraw(1)) == .deliver)
        var again = machine
        #expect(violation(again.received(Self.withdraw(1))) == .inviteWithdraw)
        again = machine
        #expect(violation(again.received(Self.invite(1))) == .invite)
        // Forgotten after 32 later ones.
        for number in 2..<33 as Range<UInt64> {
            #expect(machine.received(Self.invite(number)) == .deliver)
            #expect(machine.received(Self.withdraw(number)) == .deliver)
        }
        again = machine
        #expect(violation(again.received(Self.invite(1))) == .invite)
        #expect(machine.received(Self.invite(33)) == .deliver)
        #expect(machine.received(Self.withdraw(33)) == .deliver)
        #expect(machine.received(Self.invite(1)) == .deliver)
    }

    /// A side that invites and withdraws faster than answers come has more of its own under way than it remembers.
    @Test func answersToForgottenInvitationsAreLate() {
        let count = UInt64(ConnectionStateMachine.InvitationOrder.remembered) + 2
        var machine = self.machine
        for number in 0..<count {
            #expect(machine.sent(Self.invite(number)) == .send)
            #expect(machine.sent(Self.withdraw(number)) == .send)
        }
        for number in 0..<count { #expect(machine.received(Self.answer(number, .declined)) == .ignore) }
        var never = machine
        #expect(violation(never.received(Self.answer(count, .declined))) == .inviteAnswer)
        // Nor twice.
        #expect(violation(machine.received(Self.answer(0, .declined))) == .inviteAnswer)
    }

    @Test func answersToForgottenOffersAreLate() {
        let count = UInt64(ConnectionStateMachine.TransferOrder.remembered) + 1
        var machine = self.machine
        for number in 0..<count {
            let id = ResourceID(high: 0, low: number)
            let offer = ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: 1, name: "a")
            #expect(machine.sent(.resource(.offer(offer))) == .send)
            #expect(machine.sent(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled))))) == .send)
        }
        let first = ResourceID(high: 0, low: 0)
        #expect(machine.received(.resource(.accept(ResourceAccept(id: first, offset: 0, limit: 1)))) == .ignore)
        #expect(machine.received(.resource(.cancel(ResourceRefuse(id: first, refusal: Refusal(code: .cancelled))))) == .ignore)
        #expect(violation(machine.received(.resource(.accept(ResourceAccept(id: first, offset: 0, limit: 1))))) == .resourceAccept)
    }

    @Test func answersToForgottenStreamsAreLate() throws {
        let count = UInt64(ConnectionStateMachine.StreamOrder.remembered) + 1
        var machine = self.machine
        for number in 0..<count {
            let id = StreamID(high: 0, low: number)
            #expect(machine.sent(.stream(.open(StreamOpen(session: Fixtures.session, id: id, name: try StreamName("a"))))) == .send)
            #expect(machine.sent(.stream(.abort(StreamRefuse(id: id, refusal: Refusal(code: .cancelled))))) == .send)
        }
        let first = StreamID(high: 0, low: 0)
        #expect(machine.received(.stream(.accept(StreamAccept(id: first, limit: 1)))) == .ignore)
        #expect(machine.received(.stream(.abort(StreamRefuse(id: first, refusal: Refusal(code: .cancelled))))) == .ignore)
        #expect(violation(machine.received(.stream(.accept(StreamAccept(id: first, limit: 1))))) == .streamAccept)
    }

    @Test func streamsMoveOnlyWhereBothHellosSaySo() throws {
        var machine = ConnectionStateMachine(localID: one, peerID: other, reroutesStreams: false)
        let reroute = StreamReroute(id: Fixtures.stream, offset: 0)
        #expect(
            machine.received(.stream(.open(StreamOpen(session: Fixtures.session, id: Fixtures.stream, name: try StreamName("a")))))
                == .deliver
        )
        #expect(machine.sent(.stream(.accept(StreamAccept(id: Fixtures.stream, limit: 9)))) == .send)
        #expect(machine.sent(.stream(.reroute(reroute))) == .drop)
        #expect(machine.sent(.stream(.rerouted(reroute))) == .drop)
        var moved = machine
        #expect(violation(moved.received(.stream(.rerouted(reroute)))) == .streamRerouted)
        #expect(violation(machine.received(.stream(.reroute(reroute)))) == .streamReroute)
    }

    @Test func answersAreForOurInvitation() {
        var machine = self.machine
        #expect(machine.sent(Self.invite(1)) == .send)
        #expect(machine.sent(Self.invite(2)) == .drop)
        #expect(machine.received(Self.answer(1, .accepted(Fixtures.session))) == .deliver)
        #expect(machine.sent(Self.withdraw(1)) == .drop)
        #expect(violation(machine.received(Self.answer(1, .declined))) == .inviteAnswer)
    }

    @Test func aLateAnswerToAWithdrawnInvitationPassesOnce() {
        var machine = self.machine
        _ = machine.sent(Self.invite(1))
        #expect(machine.sent(Self.withdraw(1)) == .send)
        var accepted = machine
        #expect(accepted.received(Self.answer(1, .accepted(Fixtures.session))) == .reply(.sessionEnd(Fixtures.session)))
        #expect(violation(accepted.received(Self.answer(1, .declined))) == .inviteAnswer)
        #expect(machine.received(Self.answer(1, .declined)) == .ignore)
        #expect(machine.sent(Self.invite(2)) == .send)
    }

    @Test func aLateAcceptanceStandsWhereAnotherInvitationIsOut() {
        var machine = self.machine
        _ = machine.sent(Self.invite(1))
        _ = machine.sent(Self.withdraw(1))
        _ = machine.sent(Self.invite(2))
        #expect(machine.received(Self.answer(1, .accepted(Fixtures.session))) == .ignore)
        #expect(machine.received(Self.answer(2, .accepted(Fixtures.session))) == .deliver)
    }

    @Test func ofCrossingInvitationsTheLowersStands() {
        var low = self.machine
        var high = ConnectionStateMachine(localID: max(one, other), peerID: min(one, other))
        _ = low.sent(Self.invite(1))
        _ = high.sent(Self.invite(2))
        #expect(low.received(Self.invite(2)) == .ignore)
        #expect(high.received(Self.invite(1)) == .deliver)
        #expect(high.sent(Self.withdraw(2)) == .drop)
        #expect(high.sent(Self.answer(1, .accepted(Fixtures.session))) == .send)
        #expect(low.received(Self.answer(1, .accepted(Fixtures.session))) == .deliver)
        #expect(low.sent(Self.answer(2, .declined)) == .drop)
    }

    @Test func aWithdrawalOfACrossedInvitationPassesOnce() {
        var low = self.machine
        _ = low.sent(Self.invite(1))
        _ = low.received(Self.invite(2))
        #expect(low.received(Self.withdraw(2)) == .ignore)
        #expect(violation(low.received(Self.withdraw(2))) == .inviteWithdraw)
    }

    @Test func invitingWhileInvitedFollowsTheSameRule() {
        var low = self.machine
        _ = low.received(Self.invite(2))
        #expect(low.sent(Self.invite(1)) == .send)
        #expect(low.sent(Self.answer(2, .declined)) == .drop)
        var high = ConnectionStateMachine(localID: max(one, other), peerID: min(one, other))
        _ = high.received(Self.invite(1))
        #expect(high.sent(Self.invite(2)) == .drop)
        #expect(high.sent(Self.answer(1, .declined)) == .send)
    }

    @Test func unknownAnswersAndWithdrawalsAreViolations() {
        var machine = self.machine
        #expect(violation(machine.received(Self.withdraw(1))) == .inviteWithdraw)
        machine = self.machine
        #expect(violation(machine.received(Self.answer(1, .busy))) == .inviteAnswer)
    }
}
