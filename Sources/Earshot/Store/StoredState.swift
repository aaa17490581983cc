/// The state that the node loads when it starts. Messages stay on disk.
package struct StoredState: Sendable, Hashable {
    package var peers: [StoredPeer]
    package var sessions: [StoredSession]
    /// The rows of resources, oldest first.
    package var resources: [Resource]
    /// The transfers of unfinished resources, and of those whose end has not yet been told to the other side.
    package var transfers: [StoredTransfer]
    /// The records of transfers whose rows were removed, oldest first.
    package var endedTransfers: [EndedTransfer] = []
    package var groups: [StoredGroup] = []
}
