import EarshotClient
import EarshotSafety

extension Check {
    /// Whether the daemon answers, and is of our version.
    static let daemon = Check("daemon") { facts in
        switch facts.daemon {
        case .notAsked: return [.skip("nothing answers at the socket")]
        case .failed(let reason):
            return [.fail("earshotd does not answer: \(reason)", next: "see what it does: journalctl -u earshotd -n 50")]
        case .answers(let status, _, _, _):
            let (name, version) = (status.name.escapedForDisplay, status.version.escapedForDisplay)
            guard status.version == facts.version else {
                return [
                    .warn(
                        "earshotd is version \(version), and this command \(facts.version)",
                        next: "restart the daemon after an upgrade: sudo systemctl restart earshotd")
                ]
            }
            return [.ok("earshotd \(version) runs, as \(name) with the id \(Words.short(status.peerID).escapedForDisplay)")]
        }
    }
}
