@testable import EarshotWire
import Testing

/// The frames of groups in the machine of a connection, beyond the cases that are published.
@Suite struct GroupMachineTests {
    private let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [0])]
    private let fixtures: GroupFixtures
    private var machine: ConnectionStateMachine

    init() throws {
        self.fixtures = try GroupFixtures()
        self.machine = ConnectionStateMachine(localID: self.ids[0], peerID: self.ids[1])
    }

    private func invite(_ number: UInt64) throws -> Frame { .group(.invite(try self.fixtures.invite(InvitationID(high: 0, low: number)))) }

    private func withdraw(_ number: UInt64) -> Frame {
        .group(.inviteWithdraw(InviteWithdraw(id: InvitationID(high: 0, low: number), reason: .withdrawn)))
    }

    private func answer(_ number: UInt64) -> Frame {
        .group(.inviteAnswer(GroupInviteAnswer(id: InvitationID(high: 0, low: number), decision: .declined)))
    }

    private func violation(_ action: ConnectionStateMachine.ReceivedAction) -> FrameType? {
        guard case .violation(let error) = action, case .outOfOrder(let type, _) = error else { return nil }
        return type
    }

    @Test func framesOfGroupsGoWhereBothHellosSaySo() throws {
        let frames = try self.fixtures.frames().map(\.frame)
        #expect(Set(frames.map(\.type)) == [.groupInvite, .groupAnswer, .groupRecord, .groupWithdraw, .groupNames, .groupIndex])
        for frame in frames {
            var unknowing = ConnectionStateMachine(localID: self.ids[0], peerID: self.ids[1], knowsGroups: false)
            #expect(unknowing.sent(frame) == .drop)
            #expect(self.violation(unknowing.received(frame)) == frame.type)
            guard [.groupRecord, .groupNames, .groupIndex].contains(frame.type) else { continue }
            var machine = self.machine
            #expect(machine.sent(frame) == .send)
            #expect(machine.received(frame) == .deliver)
        }
    }

    /// The machine remembers a limited number of ids: it accepts an id again after 32 later ids, and not before.
    @Test func anIDIsForgottenAfterManyLaterOnes() throws {
        let remembered = UInt64(ConnectionStateMachine.GroupInvitationOrder.remembered)
        var machine = self.machine
        for number in 1...remembered {
            #expect(machine.received(try self.invite(number)) == .deliver)
            #expect(machine.received(self.withdraw(number)) == .deliver)
        }
        var again = machine
        #expect(self.violation(again.received(try self.invite(1))) == .groupInvite)
        #expect(machine.received(try self.invite(remembered + 1)) == .deliver)
        #expect(machine.received(self.withdraw(remembered + 1)) == .deliver)
        #expect(machine.received(try self.invite(1)) == .deliver)
    }

    /// However many were answered `busy` meanwhile, one that is pending is not made again.
    @Test func whatIsPendingIsNotForgotten() throws {
        var machine = self.machine
        #expect(machine.received(try self.invite(0)) == .deliver)
        for number in 1...100 as ClosedRange<UInt64> {
            guard case .reply = machine.received(try self.invite(number)) else {
                Issue.record("\(number) is not busy")
                return
            }
        }
        var again = machine
        #expect(self.violation(again.received(try self.invite(0))) == .groupInvite)
        #expect(machine.sent(self.answer(0)) == .send)
    }

    /// A side that invites and withdraws faster than answers arrive has more pending invitations than it remembers.
    @Test func answersToForgottenInvitationsAreLate() throws {
        let count = UInt64(ConnectionStateMachine.GroupInvitationOrder.remembered) + 2
        var machine = self.machine
        for number in 0..<count {
            #expect(machine.sent(try self.invite(number)) == .send)
            #expect(machine.sent(self.withdraw(number)) == .send)
        }
        for number in 0..<count { #expect(machine.received(self.answer(number)) == .ignore) }
        #expect(self.violation(machine.received(self.answer(0))) == .groupAnswer)
    }
}
