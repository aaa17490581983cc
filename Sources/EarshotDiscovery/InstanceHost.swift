/// The host of an instance: its name and its addresses on the instance's interface and protocol.
struct InstanceHost: Equatable {
    /// The name in the SRV record, such as `alice.local`.
    let name: String
    /// The only address that the resolver reported.
    var resolved: String
    /// Whether changes of the host's addresses are followed.
    var isFollowed: Bool
    private var known: Set<String> = []

    init(name: String, resolved: String, isFollowed: Bool) {
        self.name = name
        self.resolved = resolved
        self.isFollowed = isFollowed
    }

    /// All known addresses, in a stable order; the resolver's address until more are known.
    var addresses: [String] { self.known.isEmpty ? [self.resolved] : self.known.sorted() }

    /// Records that the host has gained or lost an address. Addresses beyond the limit are ignored.
    mutating func note(_ address: String, isPresent: Bool) {
        if !isPresent {
            self.known.remove(address)
        } else if self.known.count < DiscoveryLimits.addresses {
            self.known.insert(address)
        }
    }
}
