import EarshotClient
import EarshotSafety

extension Check {
    /// Whether the daemon answers, and has the version of this command.
    static let daemon = Check("daemon") { facts in
        switch facts.daemon {
        case .notAsked: return [.skip(Self.whyNoDaemon(facts, otherwise: "nothing answers at the socket"))]
        case .failed(let reason):
            return [.fail("earshotd does not answer: \(reason)", next: "see its log: journalctl -u earshotd -n 50")]
        case .answers(let status, _, _, _):
            let (name, version) = (status.name.escapedForDisplay, status.version.escapedForDisplay)
            guard status.version == facts.version else {
                return [
                    .warn(
                        "earshotd is version \(version), but this command is version \(facts.version)",
                        next: "restart the daemon after an upgrade: sudo systemctl restart earshotd")
                ]
            }
            return [.ok("earshotd \(version) is running as \(name), id \(Words.short(status.peerID))")]
        }
    }

    /// The reason why a check that needs the daemon is skipped.
    static func whyNoDaemon(_ facts: DoctorFacts, otherwise: String = "no daemon answers") -> String {
        switch facts.socket.state {
        case .denied: "this user is not permitted to use the daemon"
        case .answers, .missing, .refused, .notASocket, .failed: otherwise
        }
    }
}
