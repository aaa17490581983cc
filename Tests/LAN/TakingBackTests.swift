import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Ctrl-C cancels what a command has requested, even if the daemon has carried out the request and the command does not know yet.
    @Suite struct TakingBack {
        private func pair(_ laboratory: Laboratory) async throws -> (alice: Daemon, bob: Daemon) {
            let (alice, bob) = (try await laboratory.daemon("alice"), try await laboratory.daemon("bob"))
            try await alice.awaitPeer(bob)
            return (alice, bob)
        }

        /// Sends an invitation, runs `decide` while the answer is held, and expects that status and no invitation on either side.
        private func invitation(endsWith status: Int32, _ decide: @escaping @Sendable (Running, HeldSocket) -> Void) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await self.pair(laboratory)
                let held = try HeldSocket(before: alice, holding: "POST /v1/invitations")
                let asked = try alice.begin(["invite", "bob", "--socket", held.path])
                try await bob.awaitInvitation(from: alice)
                try await eventually("the answer is kept") { held.holds }
                decide(asked, held)
                let outcome = await asked.outcome()
                #expect(outcome.status == status, "\(outcome)")
                #expect(try await alice.invitations().isEmpty)
                try await bob.awaitNoInvitation()
                held.close()
            }
        }

        @Test func anInvitationWhoseAnswerIsUnderWay() async throws {
            try await self.invitation(endsWith: 130) { asked, held in
                asked.signal(SIGINT)
                held.decide(.passed)
            }
        }

        /// No command waits any more, so the invitation must not remain pending.
        @Test func anInvitationWhoseAnswerIsLost() async throws {
            try await self.invitation(endsWith: 69) { _, held in held.decide(.dropped) }
        }

        @Test func aComparisonWhoseAnswerIsUnderWay() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await self.pair(laboratory)
                let call = "POST /v1/peers/bob/verification"
                let held = try HeldSocket(before: alice, holding: call)
                let asked = try alice.begin(["verify", "bob", "--socket", held.path])
                try await eventually("the answer is kept") { held.holds }
                asked.signal(SIGINT)
                held.decide(.passed)
                let outcome = await asked.outcome()
                #expect(outcome.status == 130, "\(outcome)")
                // The comparison no longer waits for bob's user: a new request there waits for alice's user.
                let curl = "curl -sS --unix-socket socket http://localhost/v1/peers/bob/verification"
                let now = try await Running(["/bin/sh", "-c", curl], directory: alice.place).outcome()
                #expect(try ControlJSON.decode(ControlAPI.Verification.self, from: now.output.utf8).state != .waiting, "\(now)")
                _ = bob
                held.close()
            }
        }
    }
}
