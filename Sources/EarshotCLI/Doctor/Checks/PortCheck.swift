import EarshotClient
import EarshotSafety

extension Check {
    /// The port that the daemon prefers if none is configured.
    static let standardPort = 47110

    /// The daemon's port, and other programs that use it.
    static let port = Check("port") { facts in
        let user = facts.portUser.words
        guard let local = facts.daemon.status?.local else {
            guard let user else { return [.ok("TCP \(Self.standardPort) is free")] }
            // The daemon may be running and use the port itself.
            if case .denied = facts.socket.state {
                return [.skip("this user may not ask the daemon whether it uses TCP \(Self.standardPort)")]
            }
            if case .process(_, "earshotd") = facts.portUser { return [.ok("TCP \(Self.standardPort) is used by \(user)")] }
            return [
                .warn(
                    "TCP \(Self.standardPort) is in use by \(user); earshotd would use another port",
                    next: "stop that program, or set port in [peer]")
            ]
        }
        guard local.wantedPort != 0, local.port != local.wantedPort else { return [.ok("listens on TCP \(local.port)")] }
        return [Self.listensElsewhere(on: local.port, instead: local.wantedPort, user, setting: "port in [peer]")]
    }

    /// Returns the remark that the daemon listens on another port than the wanted one, which this program uses, or another one used before.
    static func listensElsewhere(on port: Int, instead wanted: Int, _ user: String?, setting: String) -> Remark {
        let words = "listens on TCP \(port), because \(wanted)"
        let next = "a firewall rule for \(wanted) does not cover this port: "
        guard let user else {
            return .warn("\(words) was in use when it started", next: next + "sudo systemctl restart earshotd")
        }
        return .warn("\(words) is in use by \(user)", next: next + "stop that program and restart earshotd, or set \(setting)")
    }

    /// Whether connections reach the daemon's port.
    static let reachability = Check("reachable") { facts in
        guard let local = facts.daemon.status?.local else { return [.skip(Self.whyNoDaemon(facts))] }
        guard !facts.attempts.isEmpty else { return [.skip("this machine has only loopback addresses")] }
        return facts.attempts.map { attempt in
            let rule =
                if case .rules = facts.firewall { "the rule that drops it is below" } else { "sudo earshot doctor names the rule" }
            let next = "allow TCP \(local.port); \(rule)"
            switch attempt.result {
            case .connected: return .ok("\(attempt.address) accepts connections")
            case .silence: return .fail("connections to \(attempt.address) are dropped, even from this machine", next: next)
            case .error(let reason): return .fail("cannot connect to \(attempt.address), even from this machine: \(reason)", next: next)
            }
        }
    }
}
