package import EarshotWire

/// The rule for the peers that a written name can mean. Pure, so that the rule can be read and tested alone.
///
/// A display name is a label. Anyone may advertise it, and a peer with a session may change its own. An id in an advertisement proves
/// nothing either, and can begin with any word that base32 can spell. A known peer therefore takes precedence over every other peer, nearby
/// or away. The beginning of an id matches only ids that are more than advertised. If several known peers match, the user has to choose.
package enum PeerNaming {
    package struct Entry: Hashable {
        package let id: PeerID
        /// The peer's own name.
        package let name: String
        /// The name that a user here has given to the peer.
        package let alias: String?
        package let isConnected: Bool
        /// Whether the peer has proven its key in this run.
        package let isProven: Bool
        /// Whether the peer is trusted, stored by a decision, or in a session.
        package let isKnown: Bool
        /// Whether the id is more than advertised: the key was proven, the peer is stored, or the settings name it.
        package let hasSureID: Bool
        package let trust: Trust

        package init(
            id: PeerID, name: String, alias: String? = nil, isConnected: Bool, isProven: Bool, isKnown: Bool, hasSureID: Bool, trust: Trust
        ) {
            self.id = id
            self.name = name
            self.alias = alias
            self.isConnected = isConnected
            self.isProven = isProven
            self.isKnown = isKnown
            self.hasSureID = hasSureID
            self.trust = trust
        }

        /// Whether the peer is known and not blocked.
        fileprivate var isFriend: Bool { self.isKnown && self.trust != .blocked }
    }

    /// Returns the peer with that alias, which a user has chosen and no peer can take; else the known peers with that name; else the peers
    /// whose id begins with it; else the other peers with that name. The caller refuses more than one candidate.
    ///
    /// Names are compared as Swift compares strings, and not by their bytes as file names are. If a peer uses another form of the same
    /// letters, a user cannot tell the two names apart, and has to give an id.
    package static func candidates(for name: String, among entries: [Entry]) -> [Entry] {
        if let named = entries.first(where: { $0.alias == name }) { return [named] }
        let prefixed = self.prefixed(name, among: entries).filter(\.hasSureID)
        let friends = entries.filter { $0.name == name && $0.isFriend }
        // If a known peer's name equals the beginning of another known peer's id, the name is ambiguous.
        if !friends.isEmpty { return friends + prefixed.filter { $0.isFriend && $0.name != name } }
        return prefixed.isEmpty ? self.strangers(entries.filter { $0.name == name }) : prefixed
    }

    /// Returns the peers whose ids begin with the prefix and are only advertised. A user has to give their whole ids.
    package static func onlyAdvertised(_ prefix: String, among entries: [Entry]) -> [Entry] {
        self.prefixed(prefix, among: entries).filter { !$0.hasSureID }
    }

    private static func prefixed(_ text: String, among entries: [Entry]) -> [Entry] {
        guard let prefix = self.idPrefix(text, of: .earshot) else { return [] }
        return entries.filter { $0.id.description.utf8.starts(with: prefix) }
    }

    /// Returns a text as the beginning of ids of this kind; `nil` if it has too few characters. An id begins so if its text does.
    package static func idPrefix(_ text: String, of kind: PeerID.Kind) -> [UInt8]? {
        let mark = kind == .localsend ? PeerID.deviceMark.utf8.count : 0
        guard text.utf8.count >= mark + PeerID.shortestPrefix else { return nil }
        // Only ASCII letters are folded: Unicode would turn other letters into those of an id, such as ſ into S.
        return text.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 - 0x20 : $0 }
    }

    /// Returns, among peers of one name that are not known, the connected peers, else the peers that have proven their keys, else all
    /// others. Blocked peers are returned only if there are no others.
    private static func strangers(_ entries: [Entry]) -> [Entry] {
        let allowed = entries.filter { $0.trust != .blocked }
        let tiers = [allowed.filter(\.isConnected), allowed.filter(\.isProven), allowed]
        return tiers.first { !$0.isEmpty } ?? entries
    }
}
