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
    package var groups: [StoredGroup] = []
}
