import EarshotClient
import EarshotSafety

extension Check {
    /// Names that several peers use.
    static let names = Check("names") { facts in
        guard case .answers(let status, let peers, _, _) = facts.daemon else { return [.skip(Self.whyNoDaemon(facts))] }
        let name = status.name.escapedForDisplay
        var remarks: [Remark] = []
        if let copies = status.local?.identityCopies, !copies.isEmpty {
            remarks.append(
                .fail(
                    "another machine at \(copies.map(\.escapedForDisplay).joined(separator: ", ")) advertises the peer id of this one",
                    next: "if its disk is a copy of this machine's, make a new identity there: "
                        + "sudo -u earshot earshotd identity new --state-directory /var/lib/earshot"))
        }
        if let instance = status.local?.instanceName, instance != status.name {
            remarks.append(
                .warn(
                    "advertised as \(instance.escapedForDisplay), because another machine on the network advertises \(name)",
                    next: "give this machine a unique name: set name in [peer]"))
        }
        // Anyone can give a LocalSend device any name, and a name never means a device if an Earshot peer has it.
        let groups = [String: [String]](grouping: peers.filter { $0.kind != .known(.localsend) }.map { ($0.name, Words.typed($0)) }).filter
        {
            $0.value.count > 1 || $0.key == status.name
        }
        for (shared, ids) in groups.sorted(by: { $0.key < $1.key }) {
            let list = ids.sorted().map(\.escapedForDisplay).joined(separator: ", ")
            if shared == status.name {
                remarks.append(.warn("\(name) is also the name of \(list)", next: "compare the ids: earshot status on each"))
            } else {
                remarks.append(
                    .warn(
                        "\(shared.escapedForDisplay) is the name of \(ids.count) peers: \(list)",
                        next: "use these ids, or longer ones, instead of the name"))
            }
        }
        return remarks.isEmpty ? [.ok("no other peer is called \(name)")] : remarks
    }
}

extension [String: [String]] {
    fileprivate init(grouping pairs: [(String, String)]) {
        self.init(pairs.map { ($0.0, [$0.1]) }, uniquingKeysWith: +)
    }
}
