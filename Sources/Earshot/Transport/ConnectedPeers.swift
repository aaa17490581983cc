package import EarshotWire
import Synchronization

/// The peers with a proven control connection.
///
/// Dials check it on the event loops before they prove themselves. The newest proven connection of a pair supersedes the previous one, and
/// every stream on that one would be lost. The answering peer may be unexpected at that address, or may have dialled this machine
/// meanwhile.
package final class ConnectedPeers: Sendable {
    /// The reason why a dial ended after the other side had proven itself, and before this side had.
    struct AlreadyConnected: Error {
        let id: PeerID
    }

    private let links = Mutex<[PeerID: Set<LinkID>]>([:])

    package init() {}

    /// Whether there is a proven connection to the peer.
    package func contains(_ id: PeerID) -> Bool { self.links.withLock { $0[id] != nil } }

    /// Records a connection's event, before any other part sees it.
    package func note(_ event: ConnectionEvent) {
        switch event {
        case .proven(let connection): self.links.withLock { _ = $0[connection.peer.id, default: []].insert(connection.id) }
        case .closed(let connection, _): self.remove(connection)
        default: break
        }
    }

    /// Removes a connection that is over or about to close. It then no longer prevents a new one.
    func remove(_ connection: Connection) {
        let id = connection.peer.id
        self.links.withLock { links in
            links[id]?.remove(connection.id)
            if links[id]?.isEmpty == true { links[id] = nil }
        }
    }
}
