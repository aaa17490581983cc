package import EarshotWire
import OrderedCollections

/// The peers that have used TLS with this machine. With `encryption = optional`, plaintext connections from and to them are refused until a
/// user resets that. Stored peers are remembered permanently, and of the others the latest.
package struct PinnedPeers: Sendable {
    private var kept: Set<PeerID> = []
    /// The peers that are not stored, the latest last.
    private var strangers: OrderedSet<PeerID> = []

    package init() {}

    package func contains(_ id: PeerID) -> Bool { self.kept.contains(id) || self.strangers.contains(id) }

    /// Notes that the peer has proven its key over TLS.
    package mutating func insert(_ id: PeerID) {
        guard !self.kept.contains(id) else { return }
        self.strangers.remove(id)
        self.strangers.append(id)
        if self.strangers.count > EarshotLimits.rememberedTLSStrangers { self.strangers.removeFirst() }
    }

    package mutating func apply(_ pin: TLSPin, to id: PeerID) {
        switch pin {
        case .keep:
            self.strangers.remove(id)
            self.kept.insert(id)
        case .release: if self.kept.remove(id) != nil { self.insert(id) }
        case .forget:
            self.strangers.remove(id)
            self.kept.remove(id)
        }
    }
}
