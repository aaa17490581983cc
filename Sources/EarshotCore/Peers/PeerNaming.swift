package import EarshotWire

/// Which peers a written name can mean: pure, so that the rule can be read and tested alone.
///
/// A display name is a label that anyone may advertise, and that a peer whom we once agreed with may change; an id in an advertisement is no
/// more than that, and may begin with any word that base32 can spell. So a peer that is known goes before every stranger, here or away, and
/// the beginning of an id means only ids that are more than an advertisement's word. Where several known peers are meant, a person says which.
package enum PeerNaming {
    package struct Entry: Hashable {
        package let id: PeerID
        package let name: String
        package let isConnected: Bool
        /// Whether it has proven its key in this run.
        package let isProven: Bool
        /// Trusted, kept by a decision, or in a session.
        package let isKnown: Bool
        /// Whether its id is more than an advertisement's word: its key was proven, it is kept, or the settings name it.
        package let hasSureID: Bool
        package let trust: Trust

        package init(
            id: PeerID, name: String, isConnected: Bool, isProven: Bool, isKnown: Bool, hasSureID: Bool, trust: Trust
        ) {
            self.id = id
            self.name = name
            self.isConnected = isConnected
            self.isProven = isProven
            self.isKnown = isKnown
            self.hasSureID = hasSureID
            self.trust = trust
        }

        /// Known, and not shut out.
        fileprivate var isFriend: Bool { self.isKnown && self.trust != .blocked }
    }

    /// A known peer of that name; else ids that begin so; else strangers of that name. More than one is for the caller to refuse.
    ///
    /// Names are compared as Swift compares strings, and not by their bytes as those of files are: a peer that takes another form of the same
    /// letters cannot be told from the other by a person, who has to give an id.
    package static func candidates(for name: String, among entries: [Entry]) -> [Entry] {
        let prefixed = self.prefixed(name, among: entries).filter(\.hasSureID)
        let friends = entries.filter { $0.name == name && $0.isFriend }
        // A known peer that calls itself as another known peer's id begins does not get what was meant for that one.
        if !friends.isEmpty { return friends + prefixed.filter { $0.isFriend && $0.name != name } }
        return prefixed.isEmpty ? self.strangers(entries.filter { $0.name == name }) : prefixed
    }

    /// Those whose ids begin so by an advertisement's word alone: for these the whole id has to be given.
    package static func onlyAdvertised(_ prefix: String, among entries: [Entry]) -> [Entry] {
        self.prefixed(prefix, among: entries).filter { !$0.hasSureID }
    }

    private static func prefixed(_ text: String, among entries: [Entry]) -> [Entry] {
        guard text.utf8.count >= PeerID.shortestPrefix else { return [] }
        // By ASCII alone: Unicode would turn other letters into those of an id, ſ into S.
        let prefix = text.utf8.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) ? $0 - 0x20 : $0 }
        return entries.filter { $0.id.description.utf8.starts(with: prefix) }
    }

    /// Among those of one name: connected strangers, strangers that have proven their keys, all others. Blocked peers answer only where no
    /// other does.
    private static func strangers(_ entries: [Entry]) -> [Entry] {
        let allowed = entries.filter { $0.trust != .blocked }
        let tiers = [allowed.filter(\.isConnected), allowed.filter(\.isProven), allowed]
        return tiers.first { !$0.isEmpty } ?? entries
    }
}
