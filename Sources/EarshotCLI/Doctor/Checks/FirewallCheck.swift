import EarshotClient
import EarshotSafety

extension Check {
    /// Firewall rules that drop discovery or connections.
    static let firewall = Check("firewall") { facts in
        let rules: NftRuleset
        switch facts.firewall {
        case .notPermitted: return [.skip("only root can read the rules; run sudo earshot doctor")]
        case .noTool: return [.skip("nft is not installed")]
        case .unreadable(let reason): return [.skip("the rules cannot be read: \(reason.escapedForDisplay)")]
        case .rules(let read): rules = read
        }
        let port = facts.daemon.status?.local?.port ?? Self.standardPort
        let wanted =
            [(name: "UDP 5353 (mDNS)", packet: Self.mDNS), (name: "TCP \(port)", packet: Self.connection(to: port))]
            + Self.localSend(facts)
        let filter = PacketFilter(rules: rules)
        let families = Self.families(facts)
        var remarks: [Remark] = []
        for (name, packet) in wanted {
            let packets = families.map { packet($0.key, $0.interfaces) }
            let verdicts = packets.map { filter.verdict(on: $0) }
            // A table that drops both families is one finding.
            let isOfBoth = packets.count > 1 && Set(verdicts).count == 1
            for (packet, verdict) in zip(packets, verdicts).prefix(isOfBoth ? 1 : packets.count) {
                let what = isOfBoth || packet.family == .ipv4 ? name : "\(name) over IPv6"
                if let remark = Self.remark(what, packet, verdict) { remarks.append(remark) }
            }
        }
        return remarks.isEmpty ? [.ok("\(Words.list(wanted.map(\.name))) are allowed")] : remarks
    }

    private typealias Family = PacketFilter.Packet.Family

    /// The families in which this machine has addresses for others, with their interfaces; IPv4 if there are none.
    private static func families(_ facts: DoctorFacts) -> [(key: Family, interfaces: [String])] {
        let interfaces = facts.interfaces.filter { $0.isUp && !$0.isLoopback }
        let families = Family.allCases.compactMap { family -> (key: Family, interfaces: [String])? in
            let names = interfaces.filter { $0.addresses.contains { $0.contains(":") == (family == .ipv6) } }.map(\.name)
            return names.isEmpty ? nil : (key: family, interfaces: names)
        }
        return families.isEmpty ? [(key: .ipv4, interfaces: interfaces.map(\.name))] : families
    }

    /// Makes a packet that must arrive, for a family and its interfaces.
    private typealias MakePacket = (Family, [String]) -> PacketFilter.Packet

    private static func mDNS(_ family: Family, _ interfaces: [String]) -> PacketFilter.Packet {
        .mDNS(over: family, interfaces: interfaces)
    }

    private static func connection(to port: Int) -> MakePacket {
        { .connection(over: $0, port: port, interfaces: $1) }
    }

    /// The packets of LocalSend, while it runs.
    private static func localSend(_ facts: DoctorFacts) -> [(name: String, packet: MakePacket)] {
        guard let state = facts.daemon.status?.localSend, state.enabled, let port = state.port else { return [] }
        let datagrams = Self.localSendDatagramPort(state)
        return [
            (name: "UDP \(datagrams) (LocalSend)", packet: { .localSend(over: $0, port: datagrams, interfaces: $1) }),
            (name: "TCP \(port) (LocalSend)", packet: Self.connection(to: port)),
        ]
    }

    private static func remark(_ what: String, _ packet: PacketFilter.Packet, _ verdict: PacketFilter.Verdict) -> Remark? {
        switch verdict {
        case .accepted: nil
        case .depends(let place): .ok("\(what) is allowed under conditions, in \(place.description.escapedForDisplay)")
        case .dropped(let place):
            .fail(
                "\(what) is dropped by \(place.isPolicy ? "the policy of" : "a rule in") \(place.description.escapedForDisplay)",
                next: Self.remedy(place, packet.transport, packet.destinationPort))
        }
    }

    private static func remedy(_ place: PacketFilter.Place, _ transport: String, _ port: Int) -> String {
        if place.table == "firewalld" {
            let what = transport == "udp" && port == 5353 ? "--add-service=mdns" : "--add-port=\(port)/\(transport)"
            return "sudo firewall-cmd --permanent \(what) && sudo firewall-cmd --reload"
        }
        if place.isOfUFW { return "sudo ufw allow \(port)/\(transport)" }
        return "sudo nft insert rule \(place.description.escapedForDisplay) \(transport) dport \(port) accept"
    }
}
