import EarshotSafety

extension Check {
    /// Whether the network interfaces allow discovery.
    static let interfaces = Check("interfaces") { facts in
        let up = facts.interfaces.filter { $0.isUp && !$0.isLoopback && !$0.addresses.isEmpty }
        guard !up.isEmpty else {
            return [
                .fail(
                    "no interface is up with an address, except the loopback",
                    next: "connect the machine to a network; ip address lists the interfaces")
            ]
        }
        let able = up.filter(\.hasMulticast)
        var remarks: [Remark] = able.map { .ok("\($0.name.escapedForDisplay), up with \($0.addresses.joined(separator: ", "))") }
        for one in up where !one.hasMulticast {
            let name = one.name.escapedForDisplay
            if one.isPointToPoint {
                remarks.append(.ok("\(name), a tunnel without multicast: list the peers behind it as peers in [discovery]"))
            } else {
                let message = "\(name) has multicast switched off: no peers are discovered through it"
                let next = "sudo ip link set dev \(name) multicast on"
                remarks.append(able.isEmpty ? .fail(message, next: next) : .warn(message, next: next))
            }
        }
        return remarks
    }
}
