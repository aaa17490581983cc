import EarshotControl
import EarshotSafety

extension Check {
    /// Rules that drop discovery or connections.
    static let firewall = Check("firewall") { facts in
        let rules: NftRuleset
        switch facts.firewall {
        case .notPermitted: return [.skip("the rules are root's to read; run it as root: sudo earshot doctor")]
        case .noTool: return [.skip("nft is not installed")]
        case .unreadable(let reason): return [.skip("the rules cannot be read: \(reason.escapedForDisplay)")]
        case .rules(let read): rules = read
        }
        let port = facts.daemon.status?.local?.port ?? Self.standardPort
        let names = facts.interfaces.filter { $0.isUp && !$0.isLoopback }.map(\.name)
        let wanted: [(PacketFilter.Packet, String, String)] = [
            (.mDNS(interfaces: names), "UDP 5353 (mDNS)", "udp"), (.connection(port: port, interfaces: names), "TCP \(port)", "tcp"),
        ]
        let filter = PacketFilter(rules: rules)
        var remarks: [Remark] = []
        for (packet, name, transport) in wanted {
            switch filter.verdict(on: packet) {
            case .accepted: continue
            case .depends(let place):
                remarks.append(.ok("\(name) is let in under conditions, in \(place.description.escapedForDisplay)"))
            case .dropped(let place):
                remarks.append(
                    .fail(
                        "\(name) is dropped by \(place.isPolicy ? "the policy of" : "a rule in") \(place.description.escapedForDisplay)",
                        next: Self.remedy(place, transport, packet.destinationPort)))
            }
        }
        return remarks.isEmpty ? [.ok("UDP 5353 (mDNS) and TCP \(port) are let in")] : remarks
    }

    private static func remedy(_ place: PacketFilter.Place, _ transport: String, _ port: Int) -> String {
        if place.table == "firewalld" {
            let what = transport == "udp" ? "--add-service=mdns" : "--add-port=\(port)/tcp"
            return "sudo firewall-cmd --permanent \(what) && sudo firewall-cmd --reload"
        }
        if place.isOfUFW { return "sudo ufw allow \(port)/\(transport)" }
        return "sudo nft insert rule \(place.description.escapedForDisplay) \(transport) dport \(port) accept"
    }
}
