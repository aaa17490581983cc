import EarshotClient
import EarshotSafety

extension Check {
    /// The state of discovery.
    static let discovery = Check("discovery") { facts in
        guard let discovery = facts.daemon.status?.discovery else { return [.skip(Self.whyNoDaemon(facts))] }
        let backend = discovery.backend.escapedForDisplay
        let reason = discovery.error.map { ": \($0.escapedForDisplay)" } ?? ""
        switch discovery.state {
        case "running": return [.ok("\(backend), running")]
        case "starting": return [.warn("\(backend) is starting\(reason)", next: "check again in a few seconds")]
        case "off":
            return [
                .warn("off: only configured peers are found", next: "to discover peers automatically, set backend = auto in [discovery]")
            ]
        default:
            let otherwise = "or set backend = embedded in [discovery] to use the built-in responder"
            let next =
                switch discovery.backend {
                case "avahi" where discovery.error?.contains("does not permit it") == true:
                    "set disable-user-service-publishing=no in avahi-daemon.conf, run sudo systemctl restart avahi-daemon, \(otherwise)"
                case "avahi": "sudo systemctl start avahi-daemon, \(otherwise)"
                default: "see its log: journalctl -u earshotd -n 50"
                }
            return [.fail("\(backend) is \(discovery.state.escapedForDisplay)\(reason)", next: next)]
        }
    }

    /// Whether discovery depends on Avahi: the settings demand it, or the daemon has not switched to another backend yet.
    static func needsAvahi(_ facts: DoctorFacts) -> Bool {
        guard let discovery = facts.daemon.status?.discovery else { return false }
        return discovery.backend == "avahi" && discovery.state != "off"
    }
}
