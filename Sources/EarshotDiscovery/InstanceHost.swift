/// Where an instance lives: its host's name and the addresses that the host has on the instance's interface and protocol.
struct InstanceHost: Equatable {
    /// As the SRV record names it, such as `alice.local`.
    let name: String
    /// The one address that the resolver named.
    var resolved: String
    /// Whether the host's addresses are told as they change.
    var isFollowed: Bool
    private var known: Set<String> = []

    init(name: String, resolved: String, isFollowed: Bool) {
        self.name = name
        self.resolved = resolved
        self.isFollowed = isFollowed
    }

    /// All that are known, in a stable order; the resolver's one until more is heard.
    var addresses: [String] { self.known.isEmpty ? [self.resolved] : self.known.sorted() }

    /// The host has this address, or has it no more; more than fit are ignored.
    mutating func note(_ address: String, isPresent: Bool) {
        if !isPresent {
            self.known.remove(address)
        } else if self.known.count < DiscoveryLimits.addresses {
            self.known.insert(address)
        }
    }
}
