/// A change of a peer that concerns dependent parts of the node. `NodeCore.spread(_:of:)` lists the receivers in order.
package enum PeerChange: Sendable, Equatable {
    /// A connection to the peer is proven. State of the connection before it is no longer valid.
    case connected
    /// Both sides have named the session on the connection, which carries messages from now on.
    case attached
    /// The peer has another session than before, or none.
    case sessionReplaced
    /// Something that others depend on has ended. Everything that ends with it gets the error.
    case ended(Ending, EarshotError)
    /// The peer has closed its connection because of an error of this side. Repeating the same traffic would fail again.
    case refusedConnection(explanation: String)
    /// The two sides cannot agree on a connection, and dialling again would fail in the same way.
    case unreachable(EarshotError)
    /// The peer is seen or connected. Pending traffic may ask for a session with it.
    case withinReach
    /// The peer's row is gone.
    case forgotten
}
