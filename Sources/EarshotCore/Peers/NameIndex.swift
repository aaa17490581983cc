import EarshotWire
import OrderedCollections

/// Which peers that are kept go by a name, in lower case, and which stranger came last under one of these names.
struct NameIndex: Sendable {
    private var known: [String: OrderedSet<PeerID>] = [:]
    private var strangers: [PeerID: PeerID] = [:]

    /// Names and strangers in it.
    var count: Int { self.known.count + self.strangers.count }

    /// The oldest first.
    func bearers(of name: String) -> OrderedSet<PeerID> { self.known[name.lowercased()] ?? [] }

    /// Which stranger goes by the name of a peer that is kept.
    func stranger(besides peer: PeerID) -> PeerID? { self.strangers[peer] }

    /// `false` where it is there already.
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
