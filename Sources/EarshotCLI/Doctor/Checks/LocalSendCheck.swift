import EarshotClient
import EarshotSafety

extension Check {
    /// Whether LocalSend devices can reach the daemon; no lines while LocalSend is off.
    static let localSend = Check("localsend") { facts in
        guard let state = facts.daemon.status?.localSend, state.enabled else { return [] }
        let reason = state.error.map { ": \($0.escapedOnceMore)" } ?? ""
        guard let port = state.port else {
            return [.fail("LocalSend does not run\(reason)", next: "see its log: journalctl -u earshotd -n 50")]
        }
        var remarks: [Remark] = []
        let wanted = state.wantedPort ?? port
        if wanted != 0, wanted != port {
            remarks.append(
                Self.listensElsewhere(on: port, instead: wanted, facts.localSendPortUser.words, setting: "port in [localsend]"))
        } else {
            remarks.append(.ok("listens on TCP \(port) and UDP \(Self.localSendDatagramPort(state))"))
        }
        if state.error != nil { remarks.append(.warn("LocalSend works only in part\(reason)", next: nil)) }
        let able = facts.interfaces.contains { $0.isUp && !$0.isLoopback && $0.hasMulticast && !$0.addresses.isEmpty }
        if !able {
            remarks.append(
                .fail("no interface has multicast: no device is discovered", next: "sudo ip link set dev INTERFACE multicast on"))
        }
        return remarks
    }

    /// The UDP port of the announcements: the port in the settings.
    static func localSendDatagramPort(_ state: ControlAPI.LocalSend) -> Int {
        guard let wanted = state.wantedPort, wanted != 0 else { return Self.standardLocalSendPort }
        return wanted
    }

    /// The TCP and UDP port of LocalSend by default.
    static let standardLocalSendPort = 53317
}
