import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The checks on invented facts; the laboratory's `DoctorTests` break real set-ups.
@Suite struct DoctorCheckTests {
    private static func status(
        name: String = "alice", version: String = EarshotVersion.current, backend: String = "avahi", state: String = "running",
        instance: String? = "alice", port: Int = 47110, quota: UInt64 = 1 << 30, error: String? = nil,
        identityCopies: [String] = [], localSend: ControlAPI.LocalSend? = nil
    ) -> ControlAPI.Status {
        ControlAPI.Status(
            name: name, peerID: "KZJ2IIXX2ZK5AAAA", version: version, serviceType: "earshot", encryption: "required", addresses: [],
            discovery: .init(backend: backend, state: state, error: error ?? (state == "unavailable" ? "no daemon" : nil)),
            counts: .init(peers: 0, connected: 0, sessions: 0, invitations: 0, unread: 0, transfers: 0), startedAt: Date(),
            local: .init(
                instanceName: instance, port: port, wantedPort: 47110, stateDirectory: "/var/lib/earshot", quota: quota, reserve: 0.05,
                identityCopies: identityCopies), localSend: localSend)
    }

    private static func peer(_ name: String, _ id: PeerID) -> ControlAPI.Peer {
        ControlAPI.Peer(
            id: id, name: name, presence: .known(.nearby), state: .known(.notConnected), trust: .known(.unknown), proven: false,
            addresses: [], discoveryInfo: [:], sources: [], firstSeen: Date(), lastSeen: Date())
    }

    /// The facts of a machine without faults.
    private static func facts(_ change: (inout DoctorFacts) -> Void = { _ in }) -> DoctorFacts {
        var facts = DoctorFacts(
            caller: .init(name: "ann", isRoot: false, groups: ["ann"], registeredGroups: ["ann"]),
            socket: .init(path: "/run/earshot/earshot.sock", choice: .system, state: .answers),
            daemon: .answers(Self.status(), peers: [], groups: [], received: 0), version: EarshotVersion.current,
            settings: .init(isChecked: true, files: [.init(path: "/etc/earshot/earshotd.conf", problem: nil)]),
            avahi: .init(isInstalled: true, state: .answers), bus: .init(path: "/run/dbus/system_bus_socket", isRunning: true),
            interfaces: [
                .init(name: "lo", isUp: true, isLoopback: true, hasMulticast: false, isPointToPoint: false, addresses: ["127.0.0.1"]),
                .init(name: "eth0", isUp: true, isLoopback: false, hasMulticast: true, isPointToPoint: false, addresses: ["10.0.0.7"]),
            ],
            portUser: .free, attempts: [.init(address: "10.0.0.7:47110", result: .connected)], firewall: .notPermitted,
            clock: .init(now: Date(timeIntervalSince1970: 1_900_000_000), isSynchronised: true),
            disk: .space(
                path: "/var/lib/earshot",
                .init(total: 100_000_000_000, free: 50_000_000_000, isReadOnly: false, inodes: 1000, freeInodes: 10)))
        change(&facts)
        return facts
    }

    private static func lines(_ check: Check, _ change: (inout DoctorFacts) -> Void) -> [String] {
        check.findings(Self.facts(change)).map { "\($0.sign.rawValue) \($0.message)" }
    }

    @Test func aHealthyMachineHasNoFault() {
        let report = DoctorReport(Self.facts())
        #expect(report.failed == 0 && report.warnings == 0)
        #expect(report.summary == "nothing failed")
        #expect(report.text(colour: false).hasPrefix("ok    socket      /run/earshot/earshot.sock, of the system's daemon\nok    daemon "))
        #expect(report.checks.allSatisfy { $0.next == nil })
    }

    /// Each step has one line, and the failed step has advice; without a named peer there are no lines.
    @Test func aPeerIsReachedStepByStep() {
        func lines(_ peer: DoctorFacts.Peer) -> [String] {
            Check.peer.flatMap { check in check.findings(Self.facts { $0.peer = peer }) }.map {
                "\($0.sign.rawValue) \($0.check): \($0.message)" + ($0.next.map { " -> \($0)" } ?? "")
            }
        }
        typealias Step = ControlAPI.PeerPing.Step
        let steps = [
            Step(step: .known(.name), state: .known(.ok), message: "bob is KZJ2"),
            Step(step: .known(.tcp), state: .known(.failed), message: "cannot reach 10.0.0.7:47110: no answer", code: "timed-out"),
            Step(step: .known(.answer), state: .known(.skipped), message: "not reached"),
        ]
        let ping = ControlAPI.PeerPing(peerID: "KZJ2", peerName: "bob", steps: steps)
        #expect(lines(.notNamed) == [])
        #expect(
            lines(.answers(ping)) == [
                "ok peer name: bob is KZJ2",
                "fail peer tcp: cannot reach 10.0.0.7:47110: no answer -> check that bob is on, and that its firewall allows the port; "
                    + "on bob: sudo earshot doctor",
                "skip peer answer: not checked: not reached",
            ])
        #expect(lines(.failed("bob is blocked", next: nil)) == ["fail peer name: bob is blocked"])
        #expect(
            [0, 0.42, 3.999, 1234.5, .nan, -1].map(Words.milliseconds) == [
                "0.00 ms", "0.42 ms", "4.00 ms", "1234.50 ms", "unknown time", "unknown time",
            ])
    }

    @Test func aFaultIsCountedAndSaysWhatToDo() throws {
        let report = DoctorReport(Self.facts { $0.avahi.state = .stopped })
        #expect(report.failed == 1)
        #expect(report.summary == "1 check failed")
        #expect(
            report.text(colour: false).contains(
                "\nfail  avahi       avahi-daemon is not running\n                  next: sudo systemctl enable --now avahi-daemon\n"))
        let json = String(decoding: try ControlJSON.encode(report), as: UTF8.self)
        let avahi = #"{"check":"avahi","message":"avahi-daemon is not running","next":"sudo systemctl enable --now avahi-daemon""#
        #expect(json.contains(avahi))
    }

    @Test func aDeniedUserIsToldTheNextStep() {
        let path = "/run/earshot/earshot.sock"
        let group: (inout DoctorFacts) -> Void = { $0.socket.state = .denied(owner: "earshot", group: "earshot", isForGroup: true) }
        #expect(
            Self.lines(.socket, group) == ["fail ann is not permitted to use \(path): only the user earshot and the group earshot are"])
        #expect(Check.socket.findings(Self.facts(group)).first?.next == "sudo adduser ann earshot, and log in again")
        let own = Check.socket.findings(
            Self.facts {
                group(&$0)
                $0.socket.hasOwnService = true
            })
        #expect(own.first?.next == "start your own daemon: systemctl --user start earshotd")
        let late = Self.lines(.socket) {
            group(&$0)
            $0.caller.registeredGroups.append("earshot")
        }
        #expect(late == ["fail ann joined the group earshot after this login, and is not permitted to use \(path) yet"])
        #expect(
            Self.lines(.socket) { $0.socket.state = .denied(owner: "bob", group: "bob", isForGroup: false) } == [
                "fail ann is not permitted to use \(path): only the user bob is"
            ])
    }

    @Test func peersStringsAreEscaped() {
        let lines = Self.lines(.names) {
            $0.daemon = .answers(
                Self.status(instance: "alice\u{202E} #2"), peers: [Self.peer("x\u{1B}[2J", "A2"), Self.peer("x\u{1B}[2J", "B2")],
                groups: [], received: 0)
        }
        #expect(
            lines == [
                #"warn advertised as alice\u{202E} #2, because another machine on the network advertises alice"#,
                #"warn x\e[2J is the name of 2 peers: \#("A2" as PeerID), \#("B2" as PeerID)"#,
            ])
    }

    @Test func anotherOfOurName() {
        let lines = Self.lines(.names) { $0.daemon = .answers(Self.status(), peers: [Self.peer("alice", "A2")], groups: [], received: 0) }
        #expect(lines == ["warn alice is also the name of \("A2" as PeerID)"])
    }

    private static func group(_ name: String, _ members: [ControlAPI.GroupMember]) -> ControlAPI.Group {
        ControlAPI.Group(
            id: "7c1b8a52-93f0-4c6b-9d0c-6f1f6a2b7a11", name: name, creator: "A2", closed: false, unprotected: false,
            state: .known(.joined), role: .known(.member), members: members, createdAt: Date())
    }

    private static func member(
        _ name: String, _ state: ControlAPI.GroupMember.State, error: ControlAPI.Failure? = nil
    ) -> ControlAPI.GroupMember {
        ControlAPI.GroupMember(
            peerID: PeerID(stringLiteral: name), name: name, state: .known(state), error: error, joinedAt: Date(), invitedBy: "A2")
    }

    @Test func groupsAreCountedAndTheirTroublesNamed() {
        func lines(_ groups: [ControlAPI.Group]) -> [String] {
            Self.lines(.groups) { $0.daemon = .answers(Self.status(), peers: [], groups: groups, received: 0) }
        }
        #expect(lines([]) == ["ok not in any group"])
        let (up, away) = (Self.member("alice", .connected), Self.member("bob", .notConnected))
        #expect(lines([Self.group("team", [up, away]), Self.group("o\u{1B}ps", [up])]) == [#"ok in 2 groups: team of 2, o\eps of 1"#])
        let failed = Self.member("c\u{202E}arol", .notConnected, error: .init(code: "encryption-mismatch", message: "no\u{9B} TLS"))
        #expect(
            lines([Self.group("team", [up, failed, Self.member("dave", .full)])]) == [
                #"warn c\u{202E}arol in team: no\u{9B} TLS"#,
                "warn team has 1 member beyond its limit; such members receive none of its messages",
            ])
        let findings = Check.groups.findings(
            Self.facts { $0.daemon = .answers(Self.status(), peers: [], groups: [Self.group("team", [failed])], received: 0) })
        #expect(findings.map(\.next) == ["earshot group show 7c1b8a52"])
        #expect(Self.lines(.groups) { $0.daemon = .notAsked } == ["skip not checked: no daemon answers"])
    }

    @Test(arguments: [
        ("running", "ok embedded, running"), ("starting", "warn embedded is starting"),
        ("unavailable", "fail embedded is unavailable: no daemon"),
        ("off", "warn off: only configured peers are found"),
    ])
    func eachStateOfDiscoveryHasItsLine(state: String, line: String) {
        #expect(
            Self.lines(.discovery) {
                $0.daemon = .answers(Self.status(backend: "embedded", state: state), peers: [], groups: [], received: 0)
            } == [
                line
            ])
    }

    /// If Avahi runs but refuses, starting it does not help.
    @Test(arguments: [
        ("cannot advertise on the network: avahi-daemon does not permit it; look for x", "set disable-user-service-publishing=no"),
        ("no daemon", "sudo systemctl start avahi-daemon"),
    ])
    func theNextStepFitsWhatAvahiSays(_ error: String, _ step: String) {
        let findings = Check.discovery.findings(
            Self.facts {
                $0.daemon = .answers(Self.status(state: "unavailable", error: error), peers: [], groups: [], received: 0)
            })
        #expect(findings.first?.next?.hasPrefix(step) == true)
    }

    @Test(arguments: [Check.daemon, .discovery, .groups, .names])
    func withoutPermissionTheDaemonIsNotSaidToBeAbsent(_ check: Check) {
        let lines = Self.lines(check) {
            $0.socket.state = .denied(owner: "earshot", group: "earshot", isForGroup: true)
            $0.daemon = .notAsked
        }
        #expect(lines.count == 1 && lines.first?.contains("this user is not permitted to use the daemon") == true, "\(lines)")
    }

    @Test func whoDoesWithoutAvahiNeedsNone() {
        let without: (inout DoctorFacts) -> Void = {
            $0.daemon = .answers(Self.status(backend: "embedded"), peers: [], groups: [], received: 0)
            $0.avahi = .init(isInstalled: true, state: .stopped)
            $0.bus.isRunning = false
        }
        #expect(Self.lines(.avahi, without) == ["warn avahi-daemon is not running; earshotd does not need it"])
        #expect(Self.lines(.bus, without) == ["ok no system bus at /run/dbus/system_bus_socket; earshotd does not need it"])
        #expect(Self.lines(.avahi) { $0.avahi.state = .silent } == ["fail avahi-daemon is running but does not answer"])
        #expect(Self.lines(.bus) { $0.bus.isRunning = false }.first?.hasPrefix("fail no system bus") == true)
    }

    @Test func interfacesThatFindNoPeersAreReported() {
        #expect(Self.lines(.interfaces) { $0.interfaces.removeLast() }.first?.hasPrefix("fail no interface is up") == true)
        #expect(
            Self.lines(.interfaces) { $0.interfaces[1].hasMulticast = false } == [
                "fail eth0 has multicast switched off: no peers are discovered through it"
            ])
        let tunnel = DoctorFacts.Interface(
            name: "wg0", isUp: true, isLoopback: false, hasMulticast: false, isPointToPoint: true, addresses: ["10.8.0.1"])
        #expect(Self.lines(.interfaces) { $0.interfaces.append(tunnel) }.last?.hasPrefix("ok wg0, a tunnel") == true)
    }

    @Test func anotherPortIsReportedWithItsUser() {
        let other: (inout DoctorFacts) -> Void = { $0.daemon = .answers(Self.status(port: 40000), peers: [], groups: [], received: 0) }
        #expect(Self.lines(.port, other) == ["warn listens on TCP 40000, because 47110 was in use when it started"])
        let taken = Self.lines(.port) {
            other(&$0)
            $0.portUser = .process(7, name: "nc")
        }
        #expect(taken == ["warn listens on TCP 40000, because 47110 is in use by nc (process 7)"])
        let idle = Self.lines(.port) {
            $0.daemon = .notAsked
            $0.portUser = .unknown
        }
        #expect(idle == ["warn TCP 47110 is in use by another program (run as root to see which); earshotd would use another port"])
        let denied = Self.lines(.port) {
            $0.daemon = .notAsked
            $0.portUser = .unknown
            $0.socket.state = .denied(owner: "earshot", group: "earshot", isForGroup: true)
        }
        #expect(denied == ["skip not checked: this user may not ask the daemon whether it uses TCP 47110"])
        #expect(
            Self.lines(.reachability) { $0.attempts[0].result = .silence } == [
                "fail connections to 10.0.0.7:47110 are dropped, even from this machine"
            ])
    }

    private static func ruleset(_ families: [String], table: String = "filter", chain: String = "INPUT") throws -> DoctorFacts.Firewall {
        let chains = families.map { family in
            #"{"chain":{"family":"\#(family)","table":"\#(table)","name":"\#(chain)","type":"filter","hook":"input","prio":0,"policy":"drop"}}"#
        }
        return .rules(try NftRuleset(json: Array(#"{"nftables":[\#(chains.joined(separator: ","))]}"#.utf8)))
    }

    /// Every family in which the machine has an address is checked. A place that drops both families is reported once.
    @Test func aDroppedPortIsReportedForEachFamily() throws {
        func lines(_ families: [String], _ addresses: [String]) throws -> [String] {
            let firewall = try Self.ruleset(families)
            return Self.lines(.firewall) {
                $0.firewall = firewall
                $0.interfaces[1].addresses = addresses
            }
        }
        let open = ["ok UDP 5353 (mDNS) and TCP 47110 are allowed"]
        let both = ["10.0.0.7", "fe80::1%eth0"]
        #expect(try lines([], both) == open)
        #expect(try lines(["ip6"], ["10.0.0.7"]) == open)
        #expect(try lines(["ip"], ["fe80::1%eth0"]) == open)
        let six = [
            "fail UDP 5353 (mDNS) over IPv6 is dropped by the policy of ip6 filter INPUT",
            "fail TCP 47110 over IPv6 is dropped by the policy of ip6 filter INPUT",
        ]
        #expect(try lines(["ip6"], both) == six)
        #expect(try lines(["ip6"], ["2001:db8::7"]) == six)
        #expect(
            try lines(["ip"], both) == [
                "fail UDP 5353 (mDNS) is dropped by the policy of ip filter INPUT",
                "fail TCP 47110 is dropped by the policy of ip filter INPUT",
            ])
        #expect(
            try lines(["inet"], both) == [
                "fail UDP 5353 (mDNS) is dropped by the policy of inet filter INPUT",
                "fail TCP 47110 is dropped by the policy of inet filter INPUT",
            ])
        #expect(try lines(["ip", "ip6"], both).count == 4)
    }

    /// LocalSend is checked only if it is on.
    @Test func localSendIsChecked() throws {
        func facts(_ state: ControlAPI.LocalSend?, multicast: Bool = true) -> (inout DoctorFacts) -> Void {
            {
                $0.daemon = .answers(Self.status(localSend: state), peers: [], groups: [], received: 0)
                $0.interfaces[1].hasMulticast = multicast
            }
        }
        let standard = ControlAPI.LocalSend(enabled: true, port: 53317, wantedPort: 53317)
        #expect(Self.lines(.localSend, facts(nil)).isEmpty && Self.lines(.localSend, facts(.init(enabled: false))).isEmpty)
        #expect(Self.lines(.localSend) { $0.daemon = .notAsked }.isEmpty)
        #expect(Self.lines(.localSend, facts(standard)) == ["ok listens on TCP 53317 and UDP 53317"])
        #expect(
            Self.lines(.localSend, facts(standard, multicast: false)) == [
                "ok listens on TCP 53317 and UDP 53317", "fail no interface has multicast: no device is discovered",
            ])
        #expect(
            Self.lines(.localSend, facts(.init(enabled: true, port: 4711, wantedPort: 53317))) == [
                "warn listens on TCP 4711, because 53317 was in use when it started"
            ])
        let taken = Self.lines(.localSend) {
            facts(.init(enabled: true, port: 4711, wantedPort: 53317))(&$0)
            $0.localSendPortUser = .process(7, name: "localsend")
        }
        #expect(taken == ["warn listens on TCP 4711, because 53317 is in use by localsend (process 7)"])
        #expect(
            Self.lines(.localSend, facts(.init(enabled: true, port: 4711, wantedPort: 0))) == ["ok listens on TCP 4711 and UDP 53317"])
        #expect(Self.lines(.localSend, facts(.init(enabled: true, error: "no\u{1B}"))) == [#"fail LocalSend does not run: no\e"#])
        #expect(
            Self.lines(.localSend, facts(.init(enabled: true, port: 53317, wantedPort: 53317, error: "no multicast"))).last
                == "warn LocalSend works only in part: no multicast")
    }

    @Test func theFirewallMayDropLocalSend() throws {
        let firewall = try Self.ruleset(["inet"], table: "firewalld", chain: "filter_INPUT")
        let findings = Check.firewall.findings(
            Self.facts {
                let state = ControlAPI.LocalSend(enabled: true, port: 4711, wantedPort: 53317)
                $0.daemon = .answers(Self.status(localSend: state), peers: [], groups: [], received: 0)
                $0.firewall = firewall
            })
        #expect(
            findings.map(\.message) == [
                "UDP 5353 (mDNS) is dropped by the policy of inet firewalld filter_INPUT",
                "TCP 47110 is dropped by the policy of inet firewalld filter_INPUT",
                "UDP 53317 (LocalSend) is dropped by the policy of inet firewalld filter_INPUT",
                "TCP 4711 (LocalSend) is dropped by the policy of inet firewalld filter_INPUT",
            ])
        #expect(
            findings.dropFirst(2).map(\.next) == [
                "sudo firewall-cmd --permanent --add-port=53317/udp && sudo firewall-cmd --reload",
                "sudo firewall-cmd --permanent --add-port=4711/tcp && sudo firewall-cmd --reload",
            ])
    }

    @Test func whatToDoAboutAFirewall() throws {
        func next(_ table: String, _ chain: String) throws -> [String?] {
            let firewall = try Self.ruleset(["ip6"], table: table, chain: chain)
            return Check.firewall.findings(
                Self.facts {
                    $0.firewall = firewall
                    $0.interfaces[1].addresses = ["fe80::1%eth0"]
                }
            ).map(\.next)
        }
        #expect(
            try next("filter", "INPUT") == [
                "sudo nft insert rule ip6 filter INPUT udp dport 5353 accept",
                "sudo nft insert rule ip6 filter INPUT tcp dport 47110 accept",
            ])
        #expect(try next("filter", "ufw6-before-input") == ["sudo ufw allow 5353/udp", "sudo ufw allow 47110/tcp"])
        #expect(
            try next("firewalld", "filter_INPUT") == [
                "sudo firewall-cmd --permanent --add-service=mdns && sudo firewall-cmd --reload",
                "sudo firewall-cmd --permanent --add-port=47110/tcp && sudo firewall-cmd --reload",
            ])
        for (firewall, reason) in [
            (.notPermitted, "only root can read the rules; run sudo earshot doctor"), (.noTool, "nft is not installed"),
            (.unreadable("no\u{1B}"), #"the rules cannot be read: no\e"#),
        ] as [(DoctorFacts.Firewall, String)] {
            #expect(Self.lines(.firewall) { $0.firewall = firewall } == ["skip not checked: \(reason)"])
        }
    }

    @Test(arguments: [
        (DoctorFacts.Socket.State.missing, "fail no daemon is running: there is no socket at /s, given by --socket"),
        (.refused, "fail a stale socket: /s, given by --socket, exists, but its daemon has ended"),
        (.notASocket, "fail /s, given by --socket, is not a socket"),
        (.failed("input/output error"), "fail cannot use /s, given by --socket: input/output error"),
    ])
    func eachFaultOfTheSocketHasItsLine(state: DoctorFacts.Socket.State, line: String) {
        let findings = Check.socket.findings(Self.facts { $0.socket = .init(path: "/s", choice: .option, state: state) })
        #expect(findings.map { "\($0.sign.rawValue) \($0.message)" } == [line])
        #expect(findings.allSatisfy { $0.next != nil })
    }

    @Test func daemonAndSettings() {
        #expect(Self.lines(.daemon) { $0.daemon = .failed("it hangs") } == ["fail earshotd does not answer: it hangs"])
        #expect(
            Self.lines(.daemon) { $0.daemon = .answers(Self.status(version: "9.9.9"), peers: [], groups: [], received: 0) } == [
                "warn earshotd is version 9.9.9, but this command is version \(EarshotVersion.current)"
            ])
        #expect(Self.lines(.settings) { $0.settings.files = [] } == ["ok no settings file: all settings have their defaults"])
        #expect(Self.lines(.settings) { $0.settings.files[0].problem = "x.conf:2: no" } == ["fail x.conf:2: no"])
        func next(_ path: String) -> String? {
            Check.settings.findings(Self.facts { $0.settings.files = [.init(path: path, problem: "no")] }).first?.next
        }
        let system = "/etc/earshot/earshotd.conf"
        #expect(next(system) == "correct it, then check the settings: sudo -u earshot earshotd --check-config --config \(system)")
        #expect(next("/home/ann/.config/earshot/earshotd.conf") == "correct it, then check the settings: earshotd --check-config")
        let ofThisUser = Self.lines(.settings) {
            $0.settings.files[0].problem = "x.conf:2: permission denied"
            $0.settings.files[0].isOfThisUser = true
        }
        #expect(ofThisUser == ["skip not checked: x.conf:2: permission denied; this may concern only this user; run sudo earshot doctor"])
        #expect(Self.lines(.settings) { $0.settings.isChecked = false }.first?.hasPrefix("skip ") == true)
        #expect(Self.lines(.avahi) { $0.avahi = .init(isInstalled: false, state: .stopped) } == ["fail avahi-daemon is not installed"])
        #expect(
            Self.lines(.disk) { $0.disk = .failed(path: "/s", "no such directory") } == ["fail cannot examine /s: no such directory"])
        #expect(
            Self.lines(.reachability) { $0.attempts[0].result = .error("no route") } == [
                "fail cannot connect to 10.0.0.7:47110, even from this machine: no route"
            ])
        #expect(Self.lines(.reachability) { $0.attempts = [] }.first?.hasPrefix("skip ") == true)
        #expect(Self.lines(.port) { $0.daemon = .notAsked } == ["ok TCP 47110 is free"])
    }

    @Test func aWrongOrUnsynchronisedClockIsReported() {
        #expect(Self.lines(.clock) { $0.clock.now = Date(timeIntervalSince1970: 0) }.first?.hasPrefix("fail the clock says 19") == true)
        #expect(Self.lines(.clock) { $0.clock.isSynchronised = false }.first?.hasSuffix(", not synchronised") == true)
        func next(_ hasKeeper: Bool) -> String? {
            let clock = DoctorFacts.Clock(now: Date(timeIntervalSince1970: 1_900_000_000), isSynchronised: false, hasKeeper: hasKeeper)
            return Check.clock.findings(Self.facts { $0.clock = clock }).first?.next
        }
        #expect(next(true) == "sudo timedatectl set-ntp true" && next(false) == "sudo apt install systemd-timesyncd")
        #expect(Self.lines(.clock) { $0.clock.isSynchronised = nil }.first?.hasPrefix("ok 2030-") == true)
        #expect(Self.lines(.clock) { $0.clock.now = EarshotVersion.date }.first?.hasPrefix("ok ") == true)
    }

    /// The write probe leaves no file in the directory.
    @Test func theDiskIsWrittenTo() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("doctor-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        guard case .space = DoctorFacts.Disk.gather(stateDirectory: place.path, choice: .option) else {
            Issue.record("a directory that can be written to is not")
            return
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
    }

    @Test func aCopiedIdentity() {
        let lines = Self.lines(.names) {
            $0.daemon = .answers(
                Self.status(identityCopies: ["10.0.0.9:47110", "[fe80::9%eth0]:47110"]), peers: [], groups: [], received: 0)
        }
        #expect(lines == ["fail another machine at 10.0.0.9:47110, [fe80::9%eth0]:47110 advertises the peer id of this one"])
    }

    @Test func aFullOrUnwritableDiskIsReported() {
        let space: (UInt64, Bool, UInt64) -> DoctorFacts.Disk = { free, isReadOnly, inodes in
            .space(path: "/s", .init(total: 100_000_000, free: free, isReadOnly: isReadOnly, inodes: 10, freeInodes: inodes))
        }
        #expect(Self.lines(.disk) { $0.disk = space(0, false, 1) } == ["fail the disk is full: 0 B free of 100.0 MB at /s"])
        #expect(
            Self.lines(.disk) { $0.disk = space(5_000_000, false, 1) } == [
                "fail no space for files above the reserve of 5%: 5.0 MB free of 100.0 MB at /s"
            ])
        #expect(Self.lines(.disk) { $0.disk = space(5_000_001, false, 1) } == ["ok 5.0 MB free of 100.0 MB at /s"])
        #expect(Self.lines(.disk) { $0.disk = space(50_000_000, true, 1) } == ["fail /s is on a read-only file system"])
        #expect(Self.lines(.disk) { $0.disk = space(50_000_000, false, 0) } == ["fail the file system of /s has no inodes left"])
        let quota = Self.lines(.disk) {
            $0.disk = space(50_000_000, false, 1)
            $0.daemon = .answers(Self.status(quota: 1_000_000), peers: [], groups: [], received: 950_000)
        }
        #expect(quota == ["warn received files take 950.0 kB of the quota of 1.0 MB"])
        #expect(
            Self.lines(.disk) { $0.disk = .unwritable(path: "/s", "input/output error") } == ["fail cannot write to /s: input/output error"]
        )
        #expect(Self.lines(.disk) { $0.disk = .unknown } == ["skip not checked: the state directory is unknown"])
    }

    @Test func withoutADaemonNothingIsGuessed() {
        let report = DoctorReport(
            Self.facts {
                $0.socket.state = .missing
                $0.daemon = .notAsked
                $0.disk = .unknown
            })
        #expect(report.failed == 1)
        #expect(report.checks.count { $0.sign == .skip } == 7)
    }
}
