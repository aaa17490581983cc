package import EarshotWire
import Synchronization

/// The peers with which a proven control connection stands now.
///
/// Asked on the event loops by dials that do not know yet which peer answers: the newest proven connection of a pair supersedes the one
/// before it, and every stream on that would be lost, only to find a peer that is connected already.
package final class ConnectedPeers: Sendable {
    /// Why a dial ended when the other side had proven itself, and before this side had.
    struct AlreadyConnected: Error {
        let id: PeerID
    }

    private let counts = Mutex<[PeerID: Int]>([:])

    package init() {}

    /// Whether a proven connection with the peer stands.
    package func contains(_ id: PeerID) -> Bool { self.counts.withLock { $0[id] != nil } }

    /// Takes down what has become of a connection, before any other part hears of it.
    package func note(_ event: ConnectionEvent) {
        switch event {
        case .proven(let connection): self.add(1, to: connection.peer.id)
        case .closed(let connection, _): self.add(-1, to: connection.peer.id)
        default: break
        }
    }

    private func add(_ change: Int, to id: PeerID) {
        self.counts.withLock { counts in
            let count = (counts[id] ?? 0) + change
            counts[id] = count > 0 ? count : nil
        }
    }
}
