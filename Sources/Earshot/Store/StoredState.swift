package import EarshotWire

/// What the node takes up again when it starts; messages stay on disk.
package struct StoredState: Sendable, Hashable {
    package var peers: [StoredPeer]
    package var sessions: [StoredSession]
    /// Oldest first.
    package var resources: [Resource]
    /// Of resources that are not over, or of whose end the other side is to be told.
    package var transfers: [StoredTransfer]
    /// Of resources whose rows are gone; oldest first.
    package var endedTransfers: [EndedTransfer] = []
}

/// One change of what is kept; those given together are committed together.
package enum StoreChange: Sendable, Hashable {
    case putPeer(StoredPeer)
    case removePeer(PeerID)
    /// In the place of any other with its peer. Fails where another peer has one of that id.
    case putSession(StoredSession)
    /// Whatever session there is with that peer, and the peer too where no decision was made about it.
    case removeSession(with: PeerID)
    case putResource(Resource)
    /// With its transfer.
    case removeResource(ResourceID)
    /// Of a resource that was put before.
    case putTransfer(StoredTransfer)
    case removeTransfer(ResourceID)
    case putEndedTransfer(EndedTransfer)
}
