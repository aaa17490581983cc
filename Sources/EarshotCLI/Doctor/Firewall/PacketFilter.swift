/// Evaluates a ruleset for a new incoming packet.
///
/// Some conditions cannot be decided here: a sender's address, a rate, an extension of iptables. If such a rule accepts the packet, the
/// packet counts as accepted under conditions. If such a rule drops the packet, the rule is ignored. So a packet is reported as dropped
/// only if no condition could save it.
struct PacketFilter: Sendable {
    /// A packet that earshotd needs to receive.
    struct Packet: Hashable, Sendable {
        /// The families, by their names in nft.
        enum Family: String, Hashable, Sendable, CaseIterable {
            case ipv4 = "ip"
            case ipv6 = "ip6"
        }

        let family: Family
        let transport: String
        let destinationPort: Int
        /// The source port, known only for mDNS.
        let sourcePort: Int?
        let destination: String?
        let isMulticast: Bool
        /// The interfaces on which the packet may arrive.
        let interfaces: [String]

        /// Another machine's announcement (RFC 6762 section 5.2).
        static func mDNS(over family: Family = .ipv4, interfaces: [String]) -> Packet {
            Packet(
                family: family, transport: "udp", destinationPort: 5353, sourcePort: 5353,
                destination: family == .ipv4 ? "224.0.0.251" : "ff02::fb", isMulticast: true, interfaces: interfaces)
        }

        /// A LocalSend device's announcement.
        static func localSend(over family: Family = .ipv4, port: Int, interfaces: [String]) -> Packet {
            Packet(
                family: family, transport: "udp", destinationPort: port, sourcePort: nil,
                destination: family == .ipv4 ? "224.0.0.167" : "ff12::fd3a:e420", isMulticast: true, interfaces: interfaces)
        }

        /// A peer's connection.
        static func connection(over family: Family = .ipv4, port: Int, interfaces: [String]) -> Packet {
            Packet(
                family: family, transport: "tcp", destinationPort: port, sourcePort: nil, destination: nil, isMulticast: false,
                interfaces: interfaces)
        }
    }

    /// The chain that dropped a packet.
    struct Place: Hashable, Sendable, CustomStringConvertible {
        let family: String
        let table: String
        let chain: String
        /// Whether the chain's policy dropped it, not a rule.
        let isPolicy: Bool

        /// The chain's name in nft.
        var description: String { "\(self.family) \(self.table) \(self.chain)" }
        /// Whether ufw created the chain.
        var isOfUFW: Bool { self.chain.hasPrefix("ufw") }
    }

    enum Verdict: Hashable, Sendable {
        case accepted
        /// Accepted if a condition holds that was not evaluated.
        case depends(Place)
        case dropped(Place)
    }

    /// The result of one chain.
    private enum End {
        case accept, drop(Place), fallThrough
    }

    /// The deepest level of jumps that is followed: more than any sane ruleset has.
    static let depthLimit = 16

    let rules: NftRuleset

    /// Returns the verdict on the packet.
    func verdict(on packet: Packet) -> Verdict {
        var condition: Place?
        for chain in self.rules.entrances(packet.family.rawValue) {
            var mayBeAccepted = false
            var end = self.run(chain, packet, depth: 0, &mayBeAccepted)
            if case .fallThrough = end, chain.dropsByPolicy { end = .drop(Self.place(chain, isPolicy: true)) }
            guard case .drop(let place) = end else { continue }
            // ufw's rules hang below a chain that has an iptables name and the policy.
            let usesUFW = self.rules.chains.contains { $0.table == chain.table && $0.name.hasPrefix("ufw") }
            let users = place.family == Packet.Family.ipv6.rawValue ? "ufw6-user-input" : "ufw-user-input"
            let shown = usesUFW && place.isPolicy ? Place(family: place.family, table: place.table, chain: users, isPolicy: true) : place
            if !mayBeAccepted { return .dropped(shown) }
            condition = shown
        }
        return condition.map { .depends($0) } ?? .accepted
    }

    private static func place(_ chain: NftRuleset.Chain, isPolicy: Bool) -> Place {
        Place(family: chain.table.family, table: chain.table.name, chain: chain.name, isPolicy: isPolicy)
    }

    private func run(_ chain: NftRuleset.Chain, _ packet: Packet, depth: Int, _ mayBeAccepted: inout Bool) -> End {
        guard depth < Self.depthLimit else { return .fallThrough }
        rules: for rule in chain.rules {
            var isCertain = true
            for statement in rule {
                guard let (kind, value) = statement.only else { continue }
                switch kind {
                case "match":
                    switch PacketMatch(rules: self.rules, table: chain.table, packet: packet).holds(value) {
                    case true?: continue
                    case false?: continue rules
                    case nil: isCertain = false
                    }
                case "limit", "xt", "connlimit", "quota", "queue": isCertain = false
                case "vmap":
                    let (verdict, isKnown) = PacketMatch(rules: self.rules, table: chain.table, packet: packet).mapped(value)
                    if !isKnown { isCertain = false }
                    guard let (verdictKind, target) = verdict?.only else { continue }
                    if let end = self.apply(verdictKind, target, chain, packet, depth, isCertain, &mayBeAccepted) { return end }
                    if verdictKind == "return", isCertain { return .fallThrough }
                case "return" where isCertain: return .fallThrough
                default:
                    if let end = self.apply(kind, value, chain, packet, depth, isCertain, &mayBeAccepted) { return end }
                }
            }
        }
        return .fallThrough
    }

    /// The result of a rule's verdict; `nil` if the chain continues.
    private func apply(
        _ kind: String, _ value: JSONValue, _ chain: NftRuleset.Chain, _ packet: Packet, _ depth: Int, _ isCertain: Bool,
        _ mayBeAccepted: inout Bool
    ) -> End? {
        switch kind {
        case "accept":
            if isCertain { return .accept }
            mayBeAccepted = true
        case "drop", "reject":
            if isCertain { return .drop(Self.place(chain, isPolicy: false)) }
        case "jump", "goto":
            guard let name = value["target"]?.text, let target = self.rules.chain(name, in: chain.table) else { return nil }
            let end = self.run(target, packet, depth: depth + 1, &mayBeAccepted)
            switch end {
            case .accept:
                if isCertain { return .accept }
                mayBeAccepted = true
            case .drop: if isCertain { return end }
            case .fallThrough: if kind == "goto", isCertain { return .fallThrough }
            }
        default: break
        }
        return nil
    }
}
