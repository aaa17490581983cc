import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Interfaces, protocols and addresses, and false claims about them.
    @Suite struct Links {
        @Test func onlyLinkLocalIPv6() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                try await laboratory.ownHost("erin", "10.77.0.105")
                for host in ["dave", "erin"] { try await laboratory.ip(on: host, "-4", "address", "flush", "dev", "eth0") }
                let dave = try await laboratory.daemon("dave")
                let erin = try await laboratory.daemon("erin", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await dave.awaitPeer(erin)
                let addresses = try await dave.peers().flatMap(\.addresses)
                #expect(!addresses.isEmpty && addresses.allSatisfy { $0.hasPrefix("[fe80::") && $0.contains("%eth0]:") }, "\(addresses)")
                try await dave.expect(0, "invite", "erin")
                try await dave.expect(0, "send", "erin", "by its zone")
                #expect(try await erin.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["by its zone"])

                // The same address in the settings.
                let frank = try await laboratory.daemon(
                    "frank", on: "dave", arguments: ["--discovery", "none", "--port", "0"],
                    environment: ["EARSHOT_DISCOVERY_PEERS": try #require(addresses.first)])
                try await frank.awaitPeer(erin)
                try await frank.expect(0, "invite", "erin")
                #expect(try await frank.peers().map(\.sources) == [["configured", "store"]])
            }
        }

        @Test func twoLinksAndAddressesThatComeAndGo() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                try await laboratory.ownHost("erin", "10.77.0.105")
                try await laboratory.lab("wire", "dave", "10.78.0.4")
                try await laboratory.lab("wire", "erin", "10.78.0.5")
                let dave = try await laboratory.daemon("dave")
                let erin = try await laboratory.daemon("erin", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await Self.awaitAddresses(of: erin, seenBy: dave, ["10.77.0.105:", "10.78.0.5:", "%eth0]:", "%eth1]:"])

                // Several addresses of one protocol on one interface, one of them outside of our networks.
                try await laboratory.ip(on: "erin", "address", "add", "192.0.2.5/24", "dev", "eth1")
                try await laboratory.ip(on: "erin", "address", "add", "10.78.0.55/24", "dev", "eth1")
                try await Self.awaitAddresses(of: erin, seenBy: dave, ["10.77.0.105:", "10.78.0.5:", "10.78.0.55:", "192.0.2.5:"])
                // An address that is removed does not remain listed.
                try await laboratory.ip(on: "erin", "address", "delete", "10.78.0.55/24", "dev", "eth1")
                try await laboratory.ip(on: "erin", "address", "delete", "10.78.0.5/24", "dev", "eth1")
                try await laboratory.ip(on: "erin", "address", "add", "10.78.0.50/24", "dev", "eth1")
                try await Self.awaitAddresses(of: erin, seenBy: dave, ["10.77.0.105:", "10.78.0.50:"], not: ["10.78.0.5:", "10.78.0.55:"])

                // Without the first link, the peer is reached over the second.
                let events = try dave.begin(["events", "--json"])
                try await laboratory.lab("link", "erin", "down")
                try await dave.expect(0, "invite", "erin")
                try await dave.expect(0, "send", "erin", "by the other cable")
                try await laboratory.lab("link", "erin", "up")
                try await Self.awaitAddresses(of: erin, seenBy: dave, ["10.77.0.105:", "10.78.0.50:"])
                events.signal(SIGKILL)
                #expect(!(await events.outcome().output).contains("peer.lost"))
                #expect(try await dave.peers().count == 1)
            }
        }

        /// SRV records that lead to this machine itself or off the link: the kernel counts every SYN that it sends.
        @Test func liesLeadNowhere() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let alice = try await laboratory.daemon("alice", arguments: ["--port", "4747"])
                for (number, address) in ["127.0.0.1", "192.0.2.22"].enumerated() {
                    let id = String(repeating: number == 0 ? "B" : "C", count: 51) + "A"
                    let host = "lie-\(number).local"
                    _ = try laboratory.start(on: "dave", ["/usr/bin/avahi-publish", "-a", "-R", host, address])
                    _ = try laboratory.start(
                        on: "dave",
                        [
                            "/usr/bin/avahi-publish", "-s", "-H", host, "lie \(number)", "_\(laboratory.serviceType)._tcp", "22", "v=1",
                            "id=\(id)", "name=lie",
                        ])
                    try await eventually("alice sees the lie") { try await alice.peers().contains { $0.id == id } }
                    let before = try await laboratory.connectsSent(on: "alice")
                    let refused = try await alice.expect(75, "invite", id, "--timeout", "1")
                    #expect(refused.errors.contains("not seen on the network"), "\(refused)")
                    #expect(try await laboratory.connectsSent(on: "alice") == before, "a SYN went to \(address)")
                }
                // Proves that the counter works: a correct address is dialled.
                let bob = try await laboratory.daemon("bob")
                try await alice.awaitPeer(bob)
                let before = try await laboratory.connectsSent(on: "alice")
                try await alice.expect(75, "invite", bob.id(), "--timeout", "1")
                #expect(try await laboratory.connectsSent(on: "alice") > before)
            }
        }

        /// Waits until a peer's single row has addresses that contain all of the first strings and none of the second.
        private static func awaitAddresses(of other: Daemon, seenBy daemon: Daemon, _ parts: [String], not: [String] = []) async throws {
            let id = try await other.id()
            try await eventually("\(daemon.name) sees \(other.name) at \(parts), not at \(not)") {
                let rows = try await daemon.peers().filter { $0.id == id }
                let addresses = rows.flatMap(\.addresses)
                return rows.count == 1 && parts.allSatisfy { part in addresses.contains { $0.contains(part) } }
                    && not.allSatisfy { part in !addresses.contains { $0.contains(part) } }
            }
        }
    }
}

extension Laboratory {
    /// Runs `ip` on a host.
    func ip(on host: String, _ arguments: String...) async throws {
        try await self.lab(["host", "exec", host, "--", "ip"] + arguments)
    }

    /// The number of TCP connections that a host has opened: `ActiveOpens` of RFC 4022.
    func connectsSent(on host: String) async throws -> Int {
        let text = try await self.lab(["host", "exec", host, "--", "cat", "/proc/net/snmp"]).output
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("Tcp:") }.map { $0.split(separator: " ") }
        let column = try #require(lines.first?.firstIndex(of: "ActiveOpens"))
        return try #require(Int(lines[1][column]))
    }
}
