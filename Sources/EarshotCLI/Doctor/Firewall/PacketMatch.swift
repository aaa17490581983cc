import Glibc

/// Evaluates a rule's conditions for a packet: true, false, or unknown.
struct PacketMatch {
    let rules: NftRuleset
    let table: NftRuleset.Table
    let packet: PacketFilter.Packet

    /// The known value of a packet's field.
    private enum Field {
        case number(Int)
        case text(String)
        /// One of these values, without knowing which.
        case oneOf([String])
        /// The packet has no such field, so that every comparison with it is false.
        case absent
    }

    /// Evaluates a condition `{"op", "left", "right"}`.
    func holds(_ match: JSONValue) -> Bool? {
        guard let left = match["left"], let right = match["right"], let field = self.field(left) else { return nil }
        if case .absent = field { return false }
        let isMember = self.contains(right, field)
        switch match["op"]?.text {
        case "==", "in": return isMember
        case "!=": return isMember.map { !$0 }
        case let comparison?:
            guard case .number(let value) = field, case .number(let bound) = right else { return nil }
            switch comparison {
            case "<": return value < bound
            case ">": return value > bound
            case "<=": return value <= bound
            case ">=": return value >= bound
            default: return nil
            }
        case nil: return nil
        }
    }

    /// The verdict of a verdict map, and whether it is certain.
    func mapped(_ map: JSONValue) -> (verdict: JSONValue?, isKnown: Bool) {
        guard let key = map["key"], let data = map["data"], let pairs = self.members(data), let field = self.field(key) else {
            return (nil, false)
        }
        for pair in pairs {
            guard let parts = pair.elements, parts.count == 2 else { return (nil, false) }
            switch self.contains(parts[0], field) {
            case true?: return (parts[1], true)
            case false?: continue
            case nil: return (parts[1], false)
            }
        }
        return (nil, true)
    }

    private func field(_ left: JSONValue) -> Field? {
        guard let (kind, value) = left.only else { return nil }
        let isIPv4 = self.packet.family == .ipv4
        switch (kind, value["protocol"]?.text ?? value["key"]?.text, value["field"]?.text) {
        case ("payload", let name?, "dport") where name == self.packet.transport || name == "th":
            return .number(self.packet.destinationPort)
        case ("payload", let name?, "sport") where name == self.packet.transport || name == "th":
            return self.packet.sourcePort.map { .number($0) }
        // A condition on the other family's header holds only for packets of that family.
        case ("payload", "ip", _) where !isIPv4, ("payload", "ip6", _) where isIPv4: return .absent
        case ("payload", "ip", "protocol"), ("payload", "ip6", "nexthdr"): return .text(self.packet.transport)
        case ("payload", "ip", "daddr"), ("payload", "ip6", "daddr"): return self.packet.destination.map { .text($0) }
        case ("payload", "ip"?, _), ("payload", "ip6"?, _): return nil
        // A condition on another protocol holds only for packets of that protocol.
        case ("payload", "tcp"?, _), ("payload", "udp"?, _): return value["protocol"]?.text == self.packet.transport ? nil : .absent
        case ("payload", .some, _): return .absent
        case ("meta", "l4proto", _): return .text(self.packet.transport)
        case ("meta", "nfproto", _): return .text(isIPv4 ? "ipv4" : "ipv6")
        case ("meta", "protocol", _): return .text(self.packet.family.rawValue)
        case ("meta", "pkttype", _): return .text(self.packet.isMulticast ? "multicast" : "host")
        case ("meta", "iifname", _), ("meta", "iif", _): return .oneOf(self.packet.interfaces)
        case ("ct", "state", _): return .text("new")
        default:
            guard kind == "fib", value["result"]?.text == "type" else { return nil }
            return .text(self.packet.isMulticast ? "multicast" : "local")
        }
    }

    /// Whether the field's value equals the given value, or is among the given values.
    private func contains(_ right: JSONValue, _ field: Field) -> Bool? {
        if let members = self.members(right) {
            let answers = members.map { self.contains($0, field) }
            return answers.contains(true) ? true : answers.contains(nil) ? nil : false
        }
        if let bounds = right["range"]?.elements {
            guard case .number(let value) = field, bounds.count == 2, case .number(let low) = bounds[0], case .number(let high) = bounds[1]
            else { return nil }
            return low <= value && value <= high
        }
        if right["prefix"] != nil { return self.isInPrefix(right, field) }
        if let element = right["elem"]?["val"] { return self.contains(element, field) }
        switch (field, right) {
        case (.number(let value), .number(let wanted)): return value == wanted
        case (.text(let value), .string(let wanted)): return value == wanted
        case (.text(let value), .number(let wanted)): return (value == "tcp" && wanted == 6) || (value == "udp" && wanted == 17)
        case (.oneOf(let values), .string(let wanted)):
            let prefix = wanted.hasSuffix("*") ? String(wanted.dropLast()) : nil
            let hits = values.filter { value in prefix.map { value.hasPrefix($0) } ?? (value == wanted) }
            // The packet may arrive on the other interfaces.
            return hits.isEmpty ? false : hits.count == values.count ? true : nil
        default: return nil
        }
    }

    /// The elements of a set, given by name or inline.
    private func members(_ value: JSONValue) -> [JSONValue]? {
        if let elements = value["set"]?.elements ?? value.elements { return elements }
        guard let name = value.text, name.hasPrefix("@") else { return nil }
        return self.rules.sets[self.table]?[String(name.dropFirst())]?.elements
    }

    private func isInPrefix(_ right: JSONValue, _ field: Field) -> Bool? {
        guard case .text(let address) = field, let base = right["prefix"]?["addr"]?.text,
            case .number(let length)? = right["prefix"]?["len"],
            let value = self.bytes(address), let start = self.bytes(base), (0...value.count * 8).contains(length)
        else { return nil }
        let (whole, rest) = length.quotientAndRemainder(dividingBy: 8)
        guard value.prefix(whole) == start.prefix(whole) else { return false }
        guard rest > 0 else { return true }
        return (value[whole] ^ start[whole]) >> UInt8(8 - rest) == 0
    }

    /// The address's bytes; `nil` if it does not belong to the packet's family.
    private func bytes(_ address: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: self.packet.family == .ipv4 ? 4 : 16)
        return inet_pton(self.packet.family == .ipv4 ? AF_INET : AF_INET6, address, &bytes) == 1 ? bytes : nil
    }
}
