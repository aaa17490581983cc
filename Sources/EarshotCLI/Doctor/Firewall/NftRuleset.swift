import FoundationEssentials

/// The kernel's packet filter, as `nft -j list ruleset` shows it (libnftables-json(5)).
struct NftRuleset: Hashable, Sendable {
    /// A table, with its family.
    struct Table: Hashable, Sendable {
        let family: String
        let name: String
    }

    struct Chain: Hashable, Sendable {
        let table: Table
        let name: String
        /// The hook, such as `input`; `nil` for a chain that is only jumped to.
        let hook: String?
        let type: String?
        let priority: Int
        /// Whether the chain's policy drops packets that no rule decides.
        let dropsByPolicy: Bool
        var rules: [[JSONValue]] = []
    }

    let chains: [Chain]
    /// The elements of named sets and maps.
    let sets: [Table: [String: JSONValue]]

    /// Parses nft's output, and ignores unknown objects.
    init(json: [UInt8]) throws {
        let document = try JSONDecoder().decode(JSONValue.self, from: Data(json))
        guard let items = document["nftables"]?.elements else { throw CommandFailure(.protocolError, "nft's answer has no rules in it") }
        var chains: [Chain] = []
        var sets: [Table: [String: JSONValue]] = [:]
        for (kind, item) in items.compactMap(\.only) {
            guard let family = item["family"]?.text else { continue }
            switch kind {
            case "chain":
                guard let table = item["table"]?.text, let name = item["name"]?.text else { continue }
                var priority = 0
                if case .number(let number)? = item["prio"] { priority = number }
                chains.append(
                    Chain(
                        table: Table(family: family, name: table), name: name, hook: item["hook"]?.text, type: item["type"]?.text,
                        priority: priority, dropsByPolicy: item["policy"]?.text == "drop"))
            case "rule":
                guard let table = item["table"]?.text, let name = item["chain"]?.text, let rule = item["expr"]?.elements,
                    let index = chains.firstIndex(where: { $0.table == Table(family: family, name: table) && $0.name == name })
                else { continue }
                chains[index].rules.append(rule)
            case "set", "map":
                guard let table = item["table"]?.text, let name = item["name"]?.text else { continue }
                sets[Table(family: family, name: table), default: [:]][name] = item["elem"] ?? .array([])
            default: continue
            }
        }
        self.chains = chains
        self.sets = sets
    }

    /// The chain that a rule of the table jumps to.
    func chain(_ name: String, in table: Table) -> Chain? {
        self.chains.first { $0.table == table && $0.name == name }
    }

    /// The chains that packets of `family` (`ip` or `ip6`) to this machine pass, in their order.
    func entrances(_ family: String) -> [Chain] {
        self.chains.filter {
            ["input", "prerouting"].contains($0.hook) && $0.type != "nat" && ["inet", family].contains($0.table.family)
        }.sorted { $0.hook == $1.hook ? $0.priority < $1.priority : $0.hook == "prerouting" }
    }
}
