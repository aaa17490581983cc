package import EarshotWire
import Synchronization

/// The peers with which a proven control connection stands now.
///
/// Asked on the event loops by dials before they prove themselves: the newest proven connection of a pair supersedes the one before it, and
/// every stream on that would be lost. The peer that answers may be one that was not expected there, or has dialled this machine meanwhile.
package final class ConnectedPeers: Sendable {
    /// Why a dial ended when the other side had proven itself, and before this side had.
    struct AlreadyConnected: Error {
        let id: PeerID
    }

    private let links = Mutex<[PeerID: Set<LinkID>]>([:])

    package init() {}

    /// Whether a proven connection with the peer stands.
    package func contains(_ id: PeerID) -> Bool { self.links.withLock { $0[id] != nil } }

    /// Takes down what has become of a connection, before any other part hears of it.
    package func note(_ event: ConnectionEvent) {
        switch event {
        case .proven(let connection): self.links.withLock { _ = $0[connection.peer.id, default: []].insert(connection.id) }
        case .closed(let connection, _): self.remove(connection)
        default: break
        }
    }

    /// The connection is over, or about to be: it keeps no other from being made.
    func remove(_ connection: Connection) {
        let id = connection.peer.id
        self.links.withLock { links in
            links[id]?.remove(connection.id)
            if links[id]?.isEmpty == true { links[id] = nil }
        }
    }
}
