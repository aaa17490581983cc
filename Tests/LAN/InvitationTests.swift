import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Invitations {
        @Test func anAcceptedInvitationMakesASession() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob", "--context", "for the kitchen"])
                let invitation = try await bob.awaitInvitation(from: alice)
                #expect(invitation.state == .pending)
                #expect(invitation.peerName == "alice")
                #expect(String(decoding: invitation.context.bytes, as: UTF8.self) == "for the kitchen")
                #expect(asked.isRunning, "it waits for the decision")
                try await bob.expect(0, "accept", "alice")
                #expect(await asked.outcome().status == 0)
                try await alice.awaitConnected(to: bob)
                try await bob.awaitConnected(to: alice)
                let (ours, theirs) = try await (alice.sessions(), bob.sessions())
                #expect(ours.map(\.id) == theirs.map(\.id))
                #expect(ours.count == 1)
                #expect(try await bob.invitations().isEmpty)
                #expect(try await bob.peers().first?.proven == true)
                // A repeated invitation is answered at once.
                try await alice.expect(0, "invite", "bob")
                #expect(try await bob.invitations().isEmpty)

                try await bob.expect(0, "leave", "alice")
                try await eventually("alice has no session") { try await alice.sessions().isEmpty }
                try await alice.expect(77, "send", "bob", "still there?")
            }
        }

        @Test func aRejectedInvitationMakesNoSession() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob"])
                let invitation = try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "reject", invitation.id.description)
                let outcome = await asked.outcome()
                #expect(outcome.status == 77, "\(outcome)")
                #expect(try await alice.sessions().isEmpty)
                #expect(try await bob.invitations().isEmpty)
            }
        }

        @Test func blockedAndStillBlockedAfterRestart() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "block", "alice")
                let outcome = await asked.outcome()
                #expect(outcome.status == 77, "\(outcome)")

                let again = try await alice.expect(77, "invite", "bob")
                #expect(again.errors == outcome.errors, "being blocked looks like being rejected")
                try await bob.restart()
                try await alice.expect(77, "invite", "bob", "--timeout", "20")
                #expect(try await bob.invitations().isEmpty)

                try await bob.expect(0, "unblock", try await alice.id())
                let last = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", "alice")
                #expect(await last.outcome().status == 0)
            }
        }

        @Test func anInvitationTimesOutOnBothSides() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob", "--timeout", "2"])
                let invitation = try await bob.awaitInvitation(from: alice)
                let outcome = await asked.outcome()
                #expect(outcome.status == 75, "\(outcome)")
                try await bob.awaitNoInvitation()
                for name in [invitation.id.description, "alice"] {
                    let late = try await bob.earshot("accept", name)
                    #expect(late.status == 75 && late.errors.contains("expired at"), "\(late)")
                }
                #expect(try await alice.sessions().isEmpty)
                #expect(try await bob.sessions().isEmpty)
            }
        }

        /// Ctrl-C after the acceptance is too late: the session exists, and the command reports that.
        @Test func interruptedOnceAccepted() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                // The command is a child of the `timeout` that guards it.
                let children = "/proc/\(asked.pid)/task/\(asked.pid)/children"
                let inviter = try #require(pid_t(try String(contentsOfFile: children, encoding: .utf8).split(separator: " ").first ?? ""))
                kill(inviter, SIGSTOP)
                try await bob.expect(0, "accept", "alice")
                try await alice.awaitConnected(to: bob)
                kill(inviter, SIGINT)
                kill(inviter, SIGCONT)
                let outcome = await asked.outcome()
                #expect(outcome.status == 0 && outcome.errors.contains("bob accepted"), "\(outcome)")
                #expect(outcome.errors.contains("waiting up to 5 min for bob to answer; on bob: earshot accept alice"))
                #expect(try await alice.sessions().count == 1)
            }
        }

        @Test func trustingAPeerAcceptsItsInvitation() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                let trusted = try await bob.expect(0, "trust", "alice")
                #expect(!trusted.errors.contains("still pending"), "\(trusted)")
                #expect(await asked.outcome().status == 0)
            }
        }

        @Test func anInterruptWithdrawsTheInvitation() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let events = try bob.begin(["events", "--json"])
                let asked = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                asked.signal(SIGINT)
                let outcome = await asked.outcome()
                #expect(outcome.status == 130, "\(outcome)")
                try await bob.awaitNoInvitation()
                try await eventually("bob is told") {
                    events.outputSoFar().split(separator: "\n").contains { $0.contains("invitation.resolved") && $0.contains("cancelled") }
                }
                events.signal(SIGKILL)
                // Another invitation is possible.
                let second = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", "alice")
                #expect(await second.outcome().status == 0)
            }
        }

        @Test func crossingBecomesOneSession() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let there = try alice.begin(["invite", "bob"])
                let back = try bob.begin(["invite", "alice"])
                // If the invitations do not cross, one of them waits for an answer.
                try await eventually("both are in a session") {
                    for daemon in [alice, bob] {
                        for invitation in try await daemon.invitations() where invitation.direction == .incoming {
                            _ = try await daemon.earshot("accept", invitation.id.description)
                        }
                    }
                    return !there.isRunning && !back.isRunning
                }
                #expect(await there.outcome().status == 0)
                #expect(await back.outcome().status == 0)
                let (ours, theirs) = try await (alice.sessions(), bob.sessions())
                #expect(ours.count == 1)
                #expect(ours.map(\.id) == theirs.map(\.id))
            }
        }

        @Test func trustedNeedsNoAnswer() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await Self.pair(laboratory)
                let asked = try alice.begin(["invite", "bob"])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", "alice", "--always")
                #expect(await asked.outcome().status == 0)
                #expect(try await bob.peers().map(\.trust.rawValue) == ["trusted"])
                try await alice.expect(0, "leave", "bob")
                try await eventually("bob has no session") { try await bob.sessions().isEmpty }
                try await alice.expect(0, "invite", "bob")
                try await bob.expect(0, "distrust", "alice")
                try await eventually("the session ended with the trust") { try await alice.sessions().isEmpty }
            }
        }

        @Test func failuresHaveTheirExitCodes() async throws {
            try await Laboratory.run { laboratory in
                let (alice, _) = try await Self.pair(laboratory)
                let unknown = try await alice.expect(68, "invite", "nobody-here")
                #expect(unknown.errors.hasPrefix("earshot: "))
                #expect(unknown.output.isEmpty)
                try await alice.expect(68, "send", "nobody-here", "hello")

                try await alice.expect(64, "invite")
                try await alice.expect(64, "invite", "bob", "--no-such-option")
                try await alice.expect(64, "no-such-verb")
                try await alice.expect(64, "receive", "--count", "many")
                try await alice.expect(66, "file", "send", "bob", "no-such-file")

                let uninvited = try await alice.expect(77, "send", "bob", "hello")
                #expect(uninvited.errors.contains("earshot invite"), "it names the next step: \(uninvited.errors)")

                #expect(try await alice.stop() == 0)
                let down = try await alice.expect(69, "peers")
                #expect(down.errors.hasPrefix("earshot: "))
            }
        }

        private static func pair(_ laboratory: Laboratory) async throws -> (alice: Daemon, bob: Daemon) {
            let alice = try await laboratory.daemon("alice")
            let bob = try await laboratory.daemon("bob")
            try await alice.awaitPeer(bob)
            try await bob.awaitPeer(alice)
            return (alice, bob)
        }
    }
}
