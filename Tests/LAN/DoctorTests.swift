import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Broken set-ups, and the line that `earshot doctor` prints for each.
    @Suite struct Doctor {
        @Test func noDaemonAndBadSettings() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.host("alice")
                let socket = "\(laboratory.place)/socket"
                let configuration = "\(laboratory.place)/config"
                try FileManager.default.createDirectory(atPath: "\(configuration)/earshot", withIntermediateDirectories: true)
                try Data("[peer]\nprot = 1\n".utf8).write(to: URL(fileURLWithPath: "\(configuration)/earshot/earshotd.conf"))
                let outcome = try await Self.run(laboratory, "alice", ["env", "XDG_CONFIG_HOME=\(configuration)"], ["--socket", socket])
                #expect(outcome.status == 1)
                Self.expect(
                    outcome, "fail  socket      no daemon is running: there is no socket at \(socket), given by --socket",
                    next: "sudo systemctl start earshotd, or run earshotd; if that fails: journalctl -u earshotd -n 20")
                #expect(
                    outcome.output.contains("\nfail  settings    \(configuration)/earshot/earshotd.conf:2: unknown key 'prot' in [peer]; "))
                #expect(outcome.output.contains("\nskip  daemon      not checked: nothing answers at the socket\n"))
            }
        }

        @Test func staleSocketAndPermission() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice", environment: ["EARSHOT_CONTROL_GROUP": "daemon"])
                let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
                let denied = try await Self.run(laboratory, "alice", nobody, ["--socket", alice.socket])
                #expect(denied.status == 1)
                Self.expect(
                    denied,
                    "fail  socket      nobody is not permitted to use \(alice.socket): only the user root and the group daemon are",
                    next: "sudo adduser nobody daemon, and log in again")

                // The kernel's credentials decide: a caller with the group in its process is admitted, although the user database does not
                // list it.
                let member = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=daemon"]
                let admitted = try await Self.run(laboratory, "alice", member, ["--socket", alice.socket])
                #expect(admitted.output.contains("\nok    daemon "), "\(admitted)")

                await alice.kill()
                let stale = try await alice.earshot("doctor")
                #expect(stale.status == 1)
                Self.expect(
                    stale,
                    "fail  socket      a stale socket: \(alice.socket), named by EARSHOT_SOCKET, exists, but its daemon has ended",
                    next: "start the daemon, which replaces the socket: sudo systemctl start earshotd, or run earshotd; "
                        + "if that fails: journalctl -u earshotd -n 20")
            }
        }

        @Test func avahiBusAndMulticast() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("patient", "10.77.0.120")
                let patient = try await laboratory.daemon("patient", arguments: ["--discovery", "avahi"])
                try await eventually("discovery runs") { try await patient.status().discovery.state == "running" }
                let healthy = try await patient.earshot("doctor")
                #expect(healthy.status == 0, "\(healthy)")
                Self.expect(healthy, "ok    avahi       avahi-daemon is running and answers")
                Self.expect(healthy, "ok    discovery   avahi, running")
                Self.expect(healthy, "ok    firewall    UDP 5353 (mDNS) and TCP \(try await Self.port(patient)) are allowed")
                Self.expect(healthy, "ok    reachable   10.77.0.120:\(try await Self.port(patient)) accepts connections")

                try await laboratory.lab("host", "exec", "patient", "--", "ip", "link", "set", "dev", "eth0", "multicast", "off")
                let deaf = try await patient.earshot("doctor")
                #expect(deaf.status == 1)
                Self.expect(
                    deaf, "fail  interfaces  eth0 has multicast switched off: no peers are discovered through it",
                    next: "sudo ip link set dev eth0 multicast on")

                try await laboratory.lab("avahi", "patient", "stop")
                try await eventually("discovery is gone") { try await patient.status().discovery.state == "unavailable" }
                let silent = try await patient.earshot("doctor")
                #expect(silent.status == 1)
                Self.expect(silent, "fail  avahi       avahi-daemon is not running", next: "sudo systemctl enable --now avahi-daemon")
                #expect(silent.output.contains("\nfail  discovery   avahi is unavailable"))

                try await laboratory.lab("bus", "patient", "stop")
                let cut = try await patient.earshot("doctor")
                #expect(cut.status == 1)
                Self.expect(
                    cut, "fail  bus         no system bus at /run/dbus/system_bus_socket: cannot reach Avahi",
                    next: "sudo systemctl start dbus; if dbus is not installed, set backend = auto in [discovery]")
            }
        }

        @Test func namesakeAndTakenPort() async throws {
            try await Laboratory.run { laboratory in
                let first = try await laboratory.daemon("twin", on: "alice")
                try await eventually("it is advertised") { try await first.status().local?.instanceName != nil }
                let second = try await laboratory.daemon("twin", on: "alice")
                try await second.awaitPeer(first)
                try await eventually("it is advertised by another name") {
                    try await second.status().local?.instanceName.map { $0 != "twin" } == true
                }
                let outcome = try await second.earshot("doctor")
                #expect(outcome.status == 0, "a warning is no failure: \(outcome)")
                // The whole id: the beginning of an id that is only advertised names no peer.
                let firstID = try await first.id()
                Self.expect(
                    outcome, "warn  names       twin is also the name of \(firstID)", next: "compare the ids: earshot status on each")
                let instance = try await second.status().local?.instanceName ?? ""
                Self.expect(
                    outcome, "warn  names       advertised as \(instance), because another machine on the network advertises twin",
                    next: "give this machine a unique name: set name in [peer]")
                let taken = try #require(first.pid)
                let port = try await Self.port(second)
                #expect(try await Self.port(first) == 47110 && port != 47110)
                Self.expect(
                    outcome, "warn  port        listens on TCP \(port), because 47110 is in use by earshotd (process \(taken))",
                    next: "a firewall rule for 47110 does not cover this port: stop that program and restart earshotd, "
                        + "or set port in [peer]")
            }
        }

        @Test func aFirewallIsReportedWithItsRemedy() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("walled", "10.77.0.121")
                let walled = try await laboratory.daemon("walled", arguments: ["--port", "47120"])
                let nft = ["host", "exec", "walled", "--", "nft"]
                try await laboratory.lab(nft + ["add table inet t; add chain inet t i { type filter hook input priority 0; }"])
                try await laboratory.lab(nft + ["add rule inet t i udp dport 5353 counter drop"])
                let deaf = try await walled.earshot("doctor")
                #expect(deaf.status == 1)
                Self.expect(
                    deaf, "fail  firewall    UDP 5353 (mDNS) is dropped by a rule in inet t i",
                    next: "sudo nft insert rule inet t i udp dport 5353 accept")
                #expect(!deaf.output.contains("TCP 47120 is dropped"))

                // Follows the advice.
                try await laboratory.lab(nft + ["insert rule inet t i udp dport 5353 accept"])
                try await laboratory.lab(nft + ["add rule inet t i tcp dport 47120 drop"])
                let closed = try await walled.earshot("doctor")
                #expect(closed.status == 1)
                #expect(!closed.output.contains("UDP 5353 (mDNS) is dropped"))
                Self.expect(
                    closed, "fail  firewall    TCP 47120 is dropped by a rule in inet t i",
                    next: "sudo nft insert rule inet t i tcp dport 47120 accept")
                Self.expect(
                    closed, "fail  reachable   connections to 10.77.0.121:47120 are dropped, even from this machine",
                    next: "allow TCP 47120; the rule that drops it is below")

                try await laboratory.lab(nft + ["flush ruleset"])
                try await laboratory.lab(
                    nft + [
                        "add table inet t; add chain inet t i { type filter hook input priority 0; policy drop; }; "
                            + "add rule inet t i ct state established,related accept; add rule inet t i iifname lo accept"
                    ])
                let strict = try await walled.earshot("doctor")
                Self.expect(
                    strict, "fail  firewall    UDP 5353 (mDNS) is dropped by the policy of inet t i",
                    next: "sudo nft insert rule inet t i udp dport 5353 accept")

                let blind = try await Self.run(
                    laboratory, "walled", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], ["--socket", walled.socket])
                Self.expect(blind, "skip  firewall    not checked: only root can read the rules; run sudo earshot doctor")
            }
        }

        /// For another machine's firewall, the caller learns which port must be allowed, and which step fails.
        @Test func firewallOfThePeer() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("walled", "10.77.0.123")
                let walled = try await laboratory.daemon("walled", arguments: ["--port", "47121"])
                let alice = try await laboratory.daemon("alice")
                try await alice.awaitPeer(walled)
                let open = try await alice.earshot("ping", "walled", "--count", "1")
                #expect(open.status == 0 && open.output.hasPrefix("walled answered in ") && open.output.contains(" over a new connection"))
                let again = try await alice.earshot("ping", "walled", "--count", "2")
                #expect(again.output.split(separator: "\n").allSatisfy { $0.hasSuffix(" over the open connection") }, "\(again)")
                let well = try await alice.earshot("doctor", "walled")
                for step in ["name", "address", "tcp", "tls", "key", "answer"] {
                    #expect(well.output.contains("\nok    peer \(step)"), "\(well)")
                }
                let nft = ["host", "exec", "walled", "--", "nft"]
                try await laboratory.lab(nft + ["add table inet t; add chain inet t i { type filter hook input priority 0; }"])
                try await laboratory.lab(nft + ["add rule inet t i tcp dport 47121 drop"])
                try await walled.restart()
                try await alice.awaitPeer(walled)
                try await eventually("the connection is gone") { try await alice.peers().allSatisfy { $0.protection == nil } }
                let invited = try await alice.earshot("invite", "walled", "--timeout", "20")
                #expect(invited.status == 75 && invited.errors.contains("does its firewall admit TCP 47121?"), "\(invited)")
                #expect(invited.errors.hasSuffix("\nfind out which step fails: earshot doctor walled\n"), "\(invited)")
                let failed = try await alice.earshot("doctor", "walled")
                #expect(failed.status == 1 && failed.output.contains("\nfail  peer tcp  "), "\(failed)")
                #expect(failed.output.contains("that its firewall allows the port; on walled: sudo earshot doctor\n"), "\(failed)")
                #expect(failed.output.contains("\nskip  peer tls  ") && failed.output.contains("\nok    peer address  "), "\(failed)")
                let silent = try await alice.earshot("ping", "walled")
                #expect(silent.status == 75 && silent.errors.contains("walled does not answer (tcp): "), "\(silent)")
                try await alice.expect(0, "block", "walled")
                try await alice.expect(77, "ping", "walled")
            }
        }

        @Test func aFullDiskIsReported() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("small", "10.77.0.122", "--no-bus")
                let disk = "\(laboratory.place)/disk"
                try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
                try await laboratory.lab("host", "exec", "small", "--", "mount", "-t", "tmpfs", "-o", "size=8m", "none", disk)
                let small = try await laboratory.daemon(
                    "small", arguments: ["--discovery", "none", "--state-directory", "\(disk)/state"])
                let before = try await small.earshot("doctor")
                #expect(before.output.contains("\nok    disk        "), "\(before)")
                Self.expect(
                    before, "warn  discovery   off: only configured peers are found",
                    next: "to discover peers automatically, set backend = auto in [discovery]")
                try await laboratory.lab("host", "exec", "small", "--", "fallocate", "-l", "7200K", "\(disk)/ballast")
                let after = try await small.earshot("doctor")
                #expect(after.status == 1)
                let line = after.output.split(separator: "\n").first { $0.contains("disk        ") } ?? ""
                #expect(
                    line.hasPrefix("fail  disk        the disk is full: ") && line.hasSuffix(" free of 8.4 MB at \(disk)/state"), "\(after)"
                )

                let report = try await small.earshot("doctor", "--json")
                #expect(report.status == 1)
                let json = try JSONSerialization.jsonObject(with: Data(report.output.utf8)) as? [String: Any]
                #expect((json?["failed"] as? Int ?? 0) >= 1)
                let checks = json?["checks"] as? [[String: Any]] ?? []
                #expect(checks.contains { $0["check"] as? String == "disk" && $0["sign"] as? String == "fail" })
            }
        }

        // MARK: -

        private static func port(_ daemon: Daemon) async throws -> Int { try #require(try await daemon.status().local?.port) }

        /// Runs the command on a host, preceded by other words such as `setpriv` or `env`.
        private static func run(
            _ laboratory: Laboratory, _ host: String, _ before: [String], _ arguments: [String]
        ) async throws -> Outcome {
            try await laboratory.start(on: host, before + ["\(Laboratory.binaries)/earshot", "doctor"] + arguments).outcome()
        }

        /// Expects exactly this line, with exactly this advice below it.
        private static func expect(
            _ outcome: Outcome, _ line: String, next: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
        ) {
            let lines = outcome.output.split(separator: "\n").map(String.init)
            guard let index = lines.firstIndex(of: line) else {
                Issue.record("missing: \(line)\n\(outcome)", sourceLocation: sourceLocation)
                return
            }
            let below = index + 1 < lines.count ? lines[index + 1] : ""
            #expect(
                below.hasPrefix("      ") == (next != nil)
                    && (next == nil || below == String(repeating: " ", count: 18) + "next: \(next ?? "")"),
                "\(below)", sourceLocation: sourceLocation)
        }
    }
}
