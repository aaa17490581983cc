package import EarshotWire
import OrderedCollections
import Synchronization

/// The peers that are pinned to TLS because they have spoken it with us: under `optional` they are neither accepted nor dialled in
/// plaintext until a person resets that ("First byte, TLS, plaintext" in EarshotWire's Handshake.md).
///
/// The connections' handlers ask and add on their event loops, so that there is no moment between a peer's proof over TLS and its
/// being remembered. What the store keeps of it is the ``Node``'s affair; of strangers only the latest are remembered.
package final class TLSPins: Sendable {
    private struct State {
        /// Those of whom the store has it.
        var kept: Set<PeerID> = []
        /// The others, the latest last.
        var strangers: OrderedSet<PeerID> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Whether the peer has spoken TLS with us.
    package func contains(_ id: PeerID) -> Bool {
        self.state.withLock { $0.kept.contains(id) || $0.strangers.contains(id) }
    }

    /// The peer has proven its key over TLS.
    package func insert(_ id: PeerID) {
        self.state.withLock { state in
            guard !state.kept.contains(id) else { return }
            state.strangers.remove(id)
            state.strangers.append(id)
            if state.strangers.count > EarshotLimits.rememberedTLSStrangers { state.strangers.removeFirst() }
        }
    }

    /// The store has it of this peer: it is not forgotten however many strangers come.
    package func keep(_ id: PeerID) {
        self.state.withLock { state in
            state.strangers.remove(id)
            state.kept.insert(id)
        }
    }

    /// The store has it of this peer no longer: it is remembered as a stranger's.
    package func release(_ id: PeerID) {
        guard self.state.withLock({ $0.kept.remove(id) }) != nil else { return }
        self.insert(id)
    }

    /// A person has reset it.
    package func forget(_ id: PeerID) {
        self.state.withLock { state in
            state.strangers.remove(id)
            state.kept.remove(id)
        }
    }
}
