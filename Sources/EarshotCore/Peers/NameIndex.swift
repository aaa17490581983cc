import EarshotWire
import OrderedCollections

/// An index of the stored peers by lower-case name, and of the latest stranger under each of these names.
struct NameIndex: Sendable {
    private var known: [String: OrderedSet<PeerID>] = [:]
    private var strangers: [PeerID: PeerID] = [:]

    /// The number of entries.
    var count: Int { self.known.count + self.strangers.count }

    /// Returns the stored peers with a name, the oldest first.
    func bearers(of name: String) -> OrderedSet<PeerID> { self.known[name.lowercased()] ?? [] }

    /// Returns the stranger that has the same name as a stored peer.
    func stranger(besides peer: PeerID) -> PeerID? { self.strangers[peer] }

    /// Adds a stored peer under its name. Returns `false` if it is there already.
    mutating func add(_ peer: PeerID, named name: String) -> Bool {
        self.known[name.lowercased(), default: []].append(peer).inserted
    }

    mutating func remove(_ peer: PeerID, named name: String) {
        let name = name.lowercased()
        self.known[name]?.remove(peer)
        if self.known[name]?.isEmpty == true { self.known[name] = nil }
    }

    mutating func note(stranger: PeerID, besides peer: PeerID) { self.strangers[peer] = stranger }
    mutating func forgetStranger(besides peer: PeerID) { self.strangers[peer] = nil }
}
