import EarshotClient
import Foundation
import Testing

extension LAN {
    /// What people decide about keys.
    @Suite struct Trust {
        @Test func verifyOnTwoHostsShowsTheSameDigits() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let bob = try await laboratory.daemon("bob")
                try await alice.awaitPeer(bob)
                try await bob.awaitPeer(alice)
                let first = try alice.begin(["verify", "bob"])
                let second = try bob.begin(["verify", "alice", "--json"])
                let (ours, theirs) = (await first.outcome(), await second.outcome())
                #expect(ours.status == 0 && theirs.status == 0, "\(ours.errors) \(theirs.errors)")
                let digits = ours.output.trimmingCharacters(in: .newlines)
                #expect(digits.utf8.count == 6)
                let document = try ControlJSON.decode(ControlAPI.Verification.self, from: Array(theirs.output.utf8))
                #expect(document.digits == digits && document.state == .ready)
                // There is no terminal: nothing is asked, and the next step is said.
                #expect(ours.errors.contains("earshot trust bob"))
                let again = try await alice.earshot("verify", "bob")
                #expect(again.status == 75)
                try await alice.expect(0, "trust", "bob", "--for", "1h")
                let peers = try ControlJSON.decode(
                    ControlAPI.PeerList.self, from: Array(try await alice.earshot("peers", "--json").output.utf8))
                let seen = try #require(peers.peers.first { $0.name == "bob" })
                #expect(seen.verified == .known(.matched) && seen.trustExpiresAt != nil)
                let policy = try await alice.earshot("policy", "explain", "bob")
                #expect(policy.status == 0 && policy.output.contains("invitations.from_trusted = accept"))
                let json = try await alice.earshot("policy", "explain", "bob", "--json")
                #expect(json.status == 0)
            }
        }
    }
}
