import EarshotWire

/// Which peers a written name can mean (design section 1): pure, so that the rule can be read and tested alone.
///
/// A display name is a label that anyone may advertise, and that anyone whom we once agreed with may change. So who has been dealt with
/// goes before who has not, and a trusted peer's name never comes to mean, in silence, one that is not trusted.
enum PeerNaming {
    struct Entry: Hashable {
        let id: PeerID
        let name: String
        let isConnected: Bool
        /// Whether it has proven its key in this run.
        let isProven: Bool
        /// Trusted or formerly connected: somebody acted upon it.
        let isKnown: Bool
        let trust: Trust
    }

    /// An id's prefix first; then the display name. More than one is for the caller to refuse.
    static func candidates(for name: String, among entries: [Entry]) -> [Entry] {
        let matches = self.prefixed(name, among: entries)
        return matches.isEmpty ? self.named(entries.filter { $0.name == name }) : matches
    }

    private static func prefixed(_ text: String, among entries: [Entry]) -> [Entry] {
        guard text.utf8.count >= PeerID.shortestPrefix else { return [] }
        // By ASCII alone: Unicode would turn other letters into those of an id, ſ into S.
        let prefix = text.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 - 0x20 : $0 }
        return entries.filter { $0.id.description.utf8.starts(with: prefix) }
    }

    /// Among those of one name: the known ones that are connected, the known ones that are absent, connected strangers, strangers
    /// that have proven their keys, all others. Blocked peers answer only where no other does.
    private static func named(_ entries: [Entry]) -> [Entry] {
        let allowed = entries.filter { $0.trust != .blocked }
        let known = allowed.filter(\.isKnown)
        let strangers = allowed.filter { !$0.isKnown }
        let tiers = [
            known.filter(\.isConnected), known, strangers.filter(\.isConnected), strangers.filter(\.isProven), strangers,
        ]
        guard let first = tiers.first(where: { !$0.isEmpty }) else { return entries }
        // One that we once agreed with has taken an absent trusted peer's name: a person must say whom they mean.
        let trusted = known.filter { $0.trust == .trusted }
        return first.contains { $0.trust == .trusted } ? first : first + trusted
    }
}
