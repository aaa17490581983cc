package import EarshotCore
package import EarshotWire
import Synchronization

/// The peers that are pinned to TLS because they have used it with this node. With `optional`, plaintext with them is neither accepted nor
/// dialled until a user resets the pin ("First byte, TLS, plaintext" in EarshotWire's Handshake.md).
///
/// The connections' handlers read and add pins on their event loops, so that there is no gap between a peer's proof over TLS and its pin.
/// The ``Node`` persists pins. The number of pinned strangers is limited: the oldest pins are discarded.
package final class TLSPins: Sendable {
    private let peers = Mutex(PinnedPeers())

    package init() {}

    /// Whether the peer is pinned.
    package func contains(_ id: PeerID) -> Bool { self.peers.withLock { $0.contains(id) } }

    /// Pins a peer that has proven its key over TLS.
    package func insert(_ id: PeerID) { self.peers.withLock { $0.insert(id) } }

    /// Applies the node's decision about a pin.
    package func apply(_ pin: TLSPin, to id: PeerID) { self.peers.withLock { $0.apply(pin, to: id) } }
}
