import EarshotWire
import OrderedCollections

/// The open control connections whose peers have proven their keys.
struct LinkTable: Sendable {
    private var peers: [LinkID: PeerID] = [:]
    /// The connections of blocked peers, which only hear `declined`.
    private var mutedLinks: OrderedDictionary<LinkID, LinkState.Current> = [:]

    var count: Int { self.peers.count }
    var muted: OrderedDictionary<LinkID, LinkState.Current>.Values { self.mutedLinks.values }

    /// Returns the peer that has proven its key on a connection.
    func peer(of link: LinkID) -> PeerID? { self.peers[link] }

    /// Returns the connection of a blocked peer.
    func muted(_ link: LinkID) -> LinkState.Current? { self.mutedLinks[link] }

    mutating func opened(_ link: LinkID, by peer: PeerID) { self.peers[link] = peer }

    mutating func mute(_ current: LinkState.Current) { self.mutedLinks[current.id] = current }

    /// Removes the muted connections of a peer, and returns them. Each stays open until the transport has closed it.
    mutating func removeMuted(of peer: PeerID) -> [LinkID] {
        let links = self.mutedLinks.values.filter { $0.facts.peer.id == peer }.map(\.id)
        for link in links { self.mutedLinks.removeValue(forKey: link) }
        return links
    }

    /// Removes a closed connection. Returns its peer, unless the connection was muted.
    mutating func closed(_ link: LinkID) -> PeerID? {
        let peer = self.peers.removeValue(forKey: link)
        return self.mutedLinks.removeValue(forKey: link) == nil ? peer : nil
    }
}
