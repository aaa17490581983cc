import EarshotWire

/// Which peers a written name can mean (design section 1): pure, so that the rule can be read and tested alone.
enum PeerNaming {
    struct Entry: Hashable {
        let id: PeerID
        let name: String
        let isConnected: Bool
        /// Trusted or formerly connected: somebody acted upon it.
        let isKnown: Bool
        let isBlocked: Bool
    }

    /// An id's prefix first; then the display name. A name that belongs to a known peer never means a stranger, absent
    /// though the known one may be; among strangers, the connected come first. Blocked peers answer only where no other does.
    static func candidates(for name: String, among entries: [Entry]) -> [Entry] {
        if name.utf8.count >= PeerID.shortestPrefix {
            let prefix = name.uppercased()
            let matches = entries.filter { $0.id.description.hasPrefix(prefix) }
            if !matches.isEmpty { return matches }
        }
        let named = entries.filter { $0.name == name }
        let known = named.filter(\.isKnown)
        let strangers = named.filter { !$0.isKnown && !$0.isBlocked }
        for tier in [known.filter(\.isConnected), known, strangers.filter(\.isConnected), strangers] where !tier.isEmpty {
            return tier
        }
        return named
    }
}
