package import EarshotWire
import OrderedCollections

/// Which peers have spoken TLS with this machine: under `optional` they are neither let in nor dialled in plaintext until a person resets
/// that. Those of which the store has it are remembered for good, of the others the latest.
package struct PinnedPeers: Sendable {
    private var kept: Set<PeerID> = []
    /// The others, the latest last.
    private var strangers: OrderedSet<PeerID> = []

    package init() {}

    package func contains(_ id: PeerID) -> Bool { self.kept.contains(id) || self.strangers.contains(id) }

    /// The peer has proven its key over TLS.
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
