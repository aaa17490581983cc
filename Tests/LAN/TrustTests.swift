import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Decisions of users about keys.
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
                // Without a terminal, nothing is asked, and the next step is printed.
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

        /// `distrust` and `unblock` do not undo each other's decision, even if a user confuses them.
        @Test func unblockTakesNoTrustBackAndDistrustNoBlock() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let id = try await bob.id()
                try await alice.expect(0, "trust", "bob")
                let vain = try await alice.expect(0, "unblock", "bob", "--json")
                #expect(vain.errors.contains("bob is not blocked"))
                let same = try ControlJSON.decode(ControlAPI.Peer.self, from: Array(vain.output.utf8))
                #expect(same.id == id && same.trust == .trusted)
                #expect(try await alice.peers().first { $0.id == id }?.trust == .known(.trusted))
                #expect(try await alice.sessions().count == 1)

                try await alice.expect(0, "block", "bob")
                let refused = try await alice.expect(0, "distrust", "bob", "--json")
                #expect(refused.errors.contains("bob is blocked, and therefore not trusted; to unblock it: earshot unblock bob"))
                let still = try ControlJSON.decode(ControlAPI.Peer.self, from: Array(refused.output.utf8))
                #expect(still.id == id && still.trust == .blocked)
                #expect(try await alice.peers().first { $0.id == id }?.trust == .known(.blocked))

                let done = try await alice.expect(0, "unblock", "bob")
                #expect(done.errors.contains("bob is no longer blocked"))
                #expect(try await alice.peers().first { $0.id == id }?.trust == .known(.unknown))
                let unseen = String(repeating: "A", count: 52)
                try await alice.expect(68, "unblock", unseen)
                try await alice.expect(68, "distrust", unseen)
            }
        }

        /// Blocks a key that was received by other means, before the peer was ever seen.
        @Test func aKeyThatWasNeverSeenIsBlocked() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let unseen = String(repeating: "A", count: 52)
                let blocked = try await alice.expect(0, "block", unseen, "--json")
                #expect(blocked.errors.contains("\(unseen) is blocked"))
                let peer = try ControlJSON.decode(ControlAPI.Peer.self, from: Array(blocked.output.utf8))
                #expect(peer.id == unseen && peer.trust == .blocked)
                #expect(try await alice.peers().map(\.trust) == [.known(.blocked)])
                try await alice.restart()
                #expect(try await alice.peers().map(\.trust) == [.known(.blocked)])
                try await alice.expect(0, "unblock", unseen)
            }
        }
    }
}
