import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The backend that `auto` uses while the system changes.
    @Suite struct Backends {
        /// A hanging avahi-daemon sends nothing, and does not even disconnect.
        @Test func avahiThatHangsCountsAsNone() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let dave = try await laboratory.daemon("dave")
                try await Self.await(dave, "avahi", "running")
                let events = try dave.begin(["events", "--json"])
                let alice = try await laboratory.daemon("alice")
                try await dave.awaitPeer(alice)
                try await laboratory.lab("avahi", "dave", "pause")
                let paused = ContinuousClock.now
                try await Self.await(dave, "avahi", "unavailable")
                #expect(try await dave.status().discovery.error?.contains("does not answer") == true)
                try await Self.await(dave, "embedded", "running")
                measured("a hung avahi-daemon is left for the embedded responder", ContinuousClock.now - paused)
                // No host has heard of dave yet, so a host that sees dave sees what is advertised now.
                let bob = try await laboratory.daemon("bob")
                try await bob.awaitPeer(dave)
                let rows = try await dave.peers().filter { $0.name == "alice" }
                #expect(rows.map(\.presence) == [.known(.nearby)], "what was seen is not lost meanwhile")

                try await laboratory.lab("avahi", "dave", "resume")
                let back = ContinuousClock.now
                try await Self.await(dave, "avahi", "running")
                measured("advertised again after a hung avahi-daemon goes on", ContinuousClock.now - back)
                try await dave.awaitPeer(bob)
                let id = try await dave.id()
                for observer in [alice, bob] {
                    #expect(try await observer.peers().filter { $0.id == id }.map(\.presence) == [.known(.nearby)], "one row all along")
                }
                events.signal(SIGKILL)
                let told = try await events.outcome().output.split(separator: "\n")
                    .map { try ControlJSON.decode(ControlAPI.Event.self, from: $0.utf8) }
                let backends = told.filter { $0.type == .discoveryChanged }.compactMap(\.discovery).map { "\($0.backend) \($0.state)" }
                let settled = backends.filter { !$0.hasSuffix("starting") }
                #expect(settled == ["avahi unavailable", "embedded running", "avahi running"], "\(backends)")
                #expect(!told.contains { $0.type == .peerLost })
            }
        }

        @Test func theBusAndAvahiStartLate() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104", "--no-bus")
                let dave = try await laboratory.daemon("dave")
                // In a container without Avahi, the daemon does not wait for it.
                try await Self.await(dave, "embedded", "running")
                let alice = try await laboratory.daemon("alice")
                try await alice.awaitPeer(dave)
                try await laboratory.lab("bus", "dave", "start")
                try await laboratory.lab("avahi", "dave", "start")
                let there = ContinuousClock.now
                try await Self.await(dave, "avahi", "running")
                measured("advertised by an avahi-daemon that started late", ContinuousClock.now - there)
                try await dave.awaitPeer(alice)
                let bob = try await laboratory.daemon("bob")
                try await bob.awaitPeer(dave)
                try await bob.expect(0, "trust", dave.id())
            }
        }

        @Test func noneFindsNobodyAndReachesConfiguredPeers() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.daemon("bob", arguments: ["--port", "4747"])
                let address = try #require(try await bob.status().addresses.first { $0.hasPrefix("10.77.0.") })
                let wrong = String(repeating: "A", count: 52)
                let alice = try await laboratory.daemon(
                    "alice", arguments: ["--discovery", "none"],
                    environment: ["EARSHOT_DISCOVERY_PEERS": "\(wrong)@\(address), nobody.invalid:1"])
                let status = try await alice.status()
                #expect(status.discovery.backend == "none" && status.discovery.state == "off")
                // A key other than the configured one is shown, and never accepted in its place.
                try await eventually("the mismatch is shown") { try await alice.peers().first?.error?.code == "identity-mismatch" }
                let listed = try await alice.expect(0, "peers")
                #expect(listed.output.contains(wrong.prefix(12)) && listed.errors.contains(wrong.prefix(12)), "\(listed)")
                try await alice.expect(76, "invite", wrong)
                #expect(try await bob.invitations().isEmpty)
                #expect(try await alice.peers().map(\.id.description) == [wrong], "nobody is found")
            }
        }

        /// Anyone on the network can multicast anything. A single packet with an alias for the browsed type crashed every process with
        /// libavahi-core.
        @Test func aPacketWithAnAliasEndsNothing() async throws {
            try await Laboratory.run { laboratory in
                let carol = try await laboratory.daemon("carol", arguments: ["--discovery", "embedded"])
                let alice = try await laboratory.daemon("alice", arguments: ["--discovery", "embedded"])
                try await laboratory.host("bob")
                try await carol.awaitPeer(alice)
                let type = "_\(laboratory.serviceType)._tcp.local"
                let records =
                    Self.record(type, 5, seconds: 10, Self.name("x.local")) + Self.record("x.local", 12, seconds: 1, Self.name("m." + type))
                let packet = [0, 0, 0x84, 0, 0, 0, 0, 2, 0, 0, 0, 0] + records
                let hex = packet.map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
                let sent = try laboratory.start(on: "bob", ["/usr/bin/perl", "-e", Self.multicasts, "10.77.0.2", hex])
                let outcome = await sent.outcome()
                #expect(outcome.status == 0, "\(outcome)")
                // The second record has long expired when a peer that left is removed.
                #expect(try await alice.stop() == 0)
                try await eventually(within: .seconds(40), "carol has alice no more") { try await carol.peers().isEmpty }
                let bob = try await laboratory.daemon("bob")
                try await carol.awaitPeer(bob)
                #expect(try await carol.status().discovery.backend == "embedded")
            }
        }

        /// Sends the packet in its second argument, from the address in its first, to the multicast DNS group.
        private static let multicasts = """
            use Socket;
            socket(S, PF_INET, SOCK_DGRAM, 17) && setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1)
                && bind(S, sockaddr_in(5353, inet_aton($ARGV[0])))
                && setsockopt(S, 0, 32, inet_aton($ARGV[0])) && setsockopt(S, 0, 33, pack("i", 255))
                && send(S, pack("H*", $ARGV[1]), 0, sockaddr_in(5353, inet_aton("224.0.0.251"))) or die $!;
            """

        private static func name(_ name: String) -> [UInt8] {
            name.split(separator: ".").flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) } + [0]
        }

        private static func record(_ name: String, _ type: UInt8, seconds: UInt8, _ data: [UInt8]) -> [UInt8] {
            self.name(name) + [0, type, 0, 1, 0, 0, 0, seconds, 0, UInt8(clamping: data.count)] + data
        }

        private static func await(_ daemon: Daemon, _ backend: String, _ state: String) async throws {
            try await eventually(within: .seconds(40), "\(daemon.name)'s discovery is \(backend), \(state)") {
                let discovery = try await daemon.status().discovery
                return discovery.backend == backend && discovery.state == state
            }
        }
    }
}
