import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Discovery {
        @Test func bothSeeEachOther() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let began = ContinuousClock.now
                let bob = try await laboratory.daemon("bob")
                async let aliceSees = alice.awaitPeer(bob)
                async let bobSees = bob.awaitPeer(alice)
                _ = try await (aliceSees, bobSees)
                let taken = ContinuousClock.now - began
                measured("a new daemon sees and is seen, from its start", taken)
                // The promise is 3 s; on a busy machine, the test allows more.
                #expect(taken < .seconds(10))

                let row = try #require(try await alice.peers().first)
                #expect(row.id == (try await bob.id()))
                #expect(row.name == "bob")
                #expect(row.state == .notConnected)
                #expect(row.trust == .unknown)
                #expect(!row.proven)
                #expect(row.sources == ["avahi"])
                // IPv4 and IPv6 are announced separately.
                try await eventually("alice has bob's addresses of both kinds") {
                    let addresses = try await alice.peers().flatMap(\.addresses)
                    return addresses.contains { $0.hasPrefix("10.77.0.") }
                        && addresses.contains { $0.hasPrefix("[fe80::") && $0.contains("%eth0]:") }
                }
                #expect(try await alice.peers().count == 1, "one row a peer, however many interfaces and protocols")
                #expect(try await alice.status().discovery.backend == "avahi")
            }
        }

        @Test func lostAfterGraceAndFoundAgain() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let bob = try await laboratory.daemon("bob")
                try await alice.awaitPeer(bob)
                let id = try await bob.id()
                let gone = ContinuousClock.now
                #expect(try await bob.stop() == 0)
                try await eventually(within: .seconds(40), "alice has lost bob") { try await !alice.peers().contains { $0.id == id } }
                let grace = ContinuousClock.now - gone
                measured("a peer that stopped is lost", grace)
                #expect(grace > .seconds(14))

                try await bob.start()
                try await alice.awaitPeer(bob)
                #expect(try await bob.id() == id, "the identity is kept")
            }
        }

        @Test func briefAbsenceIsNoLoss() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let bob = try await laboratory.daemon("bob")
                try await alice.awaitPeer(bob)
                let events = try alice.begin(["events", "--json"])
                #expect(try await bob.stop() == 0)
                try await bob.start()
                // A third peer's loss has the same grace period and began later: once it is reported, bob's would have been.
                let carol = try await laboratory.daemon("carol")
                let id = try await carol.id()
                try await alice.awaitPeer(carol)
                #expect(try await carol.stop() == 0)
                try await eventually(within: .seconds(40), "alice has lost carol") {
                    events.outputSoFar().split(separator: "\n").contains { $0.contains("peer.lost") && $0.contains(id) }
                }
                let bobs = try await bob.id()
                #expect(!events.outputSoFar().split(separator: "\n").contains { $0.contains("peer.lost") && $0.contains(bobs) })
                events.signal(SIGKILL)
            }
        }

        @Test func twoOfOneName() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.host("alice")
                let first = try await laboratory.daemon("alice")
                let second = try await laboratory.daemon("alice", on: "bob")
                let carol = try await laboratory.daemon("carol")
                try await carol.awaitPeer(first)
                try await carol.awaitPeer(second)
                #expect(try await carol.peers().map(\.name) == ["alice", "alice"])
                // They also see each other if the second one returns while its avahi-daemon remembers the first.
                try await first.awaitPeer(second)
                try await second.awaitPeer(first)
                try await second.restart()
                try await second.awaitPeer(first)
                try await first.awaitPeer(second)

                let refused = try await carol.expect(65, "invite", "alice")
                let ids = try await [first.id(), second.id()]
                for id in ids { #expect(refused.errors.contains(id), "the matches are listed") }
                #expect(refused.errors.hasPrefix("earshot: "))

                // An id still names one peer. Eight characters of it are enough only once the key is proven, not for an advertised id.
                let prefix = String(ids[0].prefix(8)).lowercased()
                try await carol.expect(68, "invite", prefix)
                let asked = try carol.begin(["invite", ids[0]])
                try await first.awaitInvitation(from: carol)
                #expect(try await second.invitations().isEmpty)
                try await first.expect(0, "accept", "carol")
                #expect(await asked.outcome().status == 0)
                try await carol.expect(0, "send", prefix, "hello")
            }
        }

        @Test func aDaemonIsSeenAfterAvahiRestarts() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let dave = try await laboratory.daemon("dave")
                try await eventually("dave's daemon uses avahi") { try await dave.status().discovery.backend == "avahi" }
                try await laboratory.lab("avahi", "dave", "stop")
                try await laboratory.lab("avahi", "dave", "start")
                let back = ContinuousClock.now
                // No host has heard of dave yet, so a host that sees dave sees the new advertisement.
                let alice = try await laboratory.daemon("alice")
                try await alice.awaitPeer(dave)
                measured("advertised again after avahi-daemon's return", ContinuousClock.now - back)
                try await dave.awaitPeer(alice)
                #expect(try await dave.status().discovery.backend == "avahi")
            }
        }

        /// If Avahi lets no user publish, the daemon reports that and does not reconnect, and still discovers others.
        @Test func avahiThatRefusesPublications() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let configuration = URL(fileURLWithPath: "\(try Laboratory.room())/hosts/dave/avahi.conf")
                let text = try String(contentsOf: configuration, encoding: .utf8)
                let refusing = text.replacing("[publish]\n", with: "[publish]\ndisable-user-service-publishing=yes\n")
                try Data(refusing.utf8).write(to: configuration)
                try await laboratory.lab("avahi", "dave", "stop")
                try await laboratory.lab("avahi", "dave", "start")
                let dave = try await laboratory.daemon("dave", arguments: ["--discovery", "avahi"])
                let events = try dave.begin(["events", "--json", "--since", "0"])
                let alice = try await laboratory.daemon("alice")
                try await dave.awaitPeer(alice)
                let status = try await dave.status().discovery
                #expect(status.state == "unavailable" && status.error?.contains("does not permit it") == true, "\(status)")
                // After two more keep-alive intervals, nothing has changed.
                try await Task.sleep(for: .seconds(11))
                #expect(try await dave.status().discovery == status)
                #expect(try await dave.peers().contains { $0.name == "alice" && $0.presence == .nearby })
                let told = events.outputSoFar().split(separator: "\n").filter { $0.contains("discovery.changed") }
                #expect(told.count <= 2 && !told.contains { $0.contains("does not answer") }, "\(told)")
                let doctor = try await dave.earshot("doctor")
                #expect(doctor.output.contains("next: set disable-user-service-publishing=no in avahi-daemon.conf"), "\(doctor)")
                events.signal(SIGTERM)
                _ = await events.outcome()
            }
        }

        @Test func aDaemonIsSeenAfterTheBusRestarts() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let dave = try await laboratory.daemon("dave")
                try await eventually("dave's daemon uses avahi") { try await dave.status().discovery.backend == "avahi" }
                try await laboratory.lab("bus", "dave", "stop")
                try await laboratory.lab("bus", "dave", "start")
                try await laboratory.lab("avahi", "dave", "start")
                let alice = try await laboratory.daemon("alice")
                try await alice.awaitPeer(dave)
                try await dave.awaitPeer(alice)
                #expect(try await dave.status().discovery.backend == "avahi")
            }
        }

        @Test func withoutAvahiItFallsBackAndReturns() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104", "--no-avahi")
                let dave = try await laboratory.daemon("dave")
                let alice = try await laboratory.daemon("alice")
                try await eventually(within: .seconds(40), "dave's daemon falls back") {
                    try await dave.status().discovery.backend == "embedded"
                }
                try await alice.awaitPeer(dave)
                try await dave.awaitPeer(alice)
                try await laboratory.lab("avahi", "dave", "start")
                try await eventually(within: .seconds(40), "dave's daemon returns to avahi") {
                    try await dave.status().discovery.backend == "avahi"
                }
                try await dave.awaitPeer(alice)
                #expect(try await alice.peers().count == 1, "still one row")
            }
        }

        @Test func configuredPeerNeedsNoDiscovery() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.daemon("bob", arguments: ["--discovery", "none", "--port", "4747"])
                let address = try await bob.status().addresses.first { $0.hasPrefix("10.77.0.") }
                let alice = try await laboratory.daemon(
                    "alice", arguments: ["--discovery", "none"],
                    environment: ["EARSHOT_DISCOVERY_PEERS": "\(try await bob.id())@\(try #require(address))"])
                let asked = try alice.begin(["invite", try await bob.id()])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", "alice")
                #expect(await asked.outcome().status == 0)
                try await alice.expect(0, "send", "bob", "over there")
                #expect(try await bob.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["over there"])
            }
        }
    }
}
