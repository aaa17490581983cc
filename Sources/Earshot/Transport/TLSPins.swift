package import EarshotCore
package import EarshotWire
import Synchronization

/// The peers that are pinned to TLS because they have spoken it with us: under `optional` they are neither accepted nor dialled in
/// plaintext until a person resets that ("First byte, TLS, plaintext" in EarshotWire's Handshake.md).
///
/// The connections' handlers ask and add on their event loops, so that there is no moment between a peer's proof over TLS and its
/// being remembered. What the store keeps of it is the ``Node``'s affair; of strangers only the latest are remembered.
package final class TLSPins: Sendable {
    private let peers = Mutex(PinnedPeers())

    package init() {}

    /// Whether the peer has spoken TLS with us.
    package func contains(_ id: PeerID) -> Bool { self.peers.withLock { $0.contains(id) } }

    /// The peer has proven its key over TLS.
    package func insert(_ id: PeerID) { self.peers.withLock { $0.insert(id) } }

    /// What the node has decided about it.
    package func apply(_ pin: TLSPin, to id: PeerID) { self.peers.withLock { $0.apply(pin, to: id) } }
}
