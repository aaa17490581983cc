import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The errors without an invitation to answer.
@Suite struct PendingInvitationsTests {
    private static let known: PeerID = "AAAAAAAAAAAA"
    private static let other: PeerID = "BBBBBBBBBBBB"
    private static let time = Date(timeIntervalSince1970: 1_000_000)

    private let alice = ControlAPI.Peer(
        id: Self.known, name: "alice", presence: .known(.nearby), state: .known(.notConnected), trust: .known(.trusted), proven: true,
        addresses: [], discoveryInfo: [:], sources: ["store"], firstSeen: Self.time, lastSeen: Self.time)

    private func invitation(_ state: ControlAPI.Invitation.State, from peer: PeerID = Self.known) -> ControlAPI.Invitation {
        .init(
            id: .random(), direction: .known(.incoming), peerID: peer, peerName: "alice", context: Base64Bytes([]),
            state: .known(state), createdAt: Self.time, expiresAt: Self.time)
    }

    @Test func anExpiredOneIsSaidToHaveExpiredAndWhen() {
        let failure = PendingInvitations.none(of: self.alice, [self.invitation(.declined), self.invitation(.timedOut)])
        #expect(failure.status == .temporary)
        #expect(failure.message == "the invitation from alice expired at \(Words.time(Self.time))")
        #expect(failure.hint?.contains("earshot invite AAAAAAAAAAAA") == true)
        #expect(PendingInvitations.none(of: self.alice, [self.invitation(.cancelled)]).message == "alice withdrew the invitation")
    }

    @Test(arguments: [[], [ControlAPI.Invitation.State.timedOut, .accepted], [.declined]])
    func onlyTheLastOneCounts(_ states: [ControlAPI.Invitation.State]) {
        let failure = PendingInvitations.none(of: self.alice, states.map { self.invitation($0) })
        #expect(failure.status == .data && failure.message == "there is no pending invitation from alice")
    }

    /// After a reinstallation the peer has a new key, but its name means the old one.
    @Test func anotherKeyUnderTheNameIsNamed() {
        let failure = PendingInvitations.none(of: self.alice, [self.invitation(.timedOut), self.invitation(.pending, from: Self.other)])
        #expect(failure.status == .data)
        #expect(failure.message?.contains("AAAAAAAAAAAA") == true)
        #expect(failure.message?.hasSuffix("another key, BBBBBBBBBBBB, uses that name") == true)
        #expect(failure.hint == "compare digits first: earshot verify BBBBBBBBBBBB; then: earshot accept BBBBBBBBBBBB")
    }
}
