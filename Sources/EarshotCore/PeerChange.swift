/// What the parts of the node that depend on a peer have to hear of it. `NodeCore.spread(_:of:)` lists the hearers in order.
package enum PeerChange: Sendable, Equatable {
    /// A connection to it is proven: what counted for the one before counts no more.
    case connected
    /// Both sides have named the session on the connection: it carries messages.
    case attached
    /// It has another session than before, or none.
    case sessionReplaced
    /// Something that others depend on has ended; the error is said of what ends with it.
    case ended(Ending, EarshotError)
    /// It has closed its connection for a fault of this side's: what was moving would come to the same again.
    case refusedConnection(explanation: String)
    /// The two sides do not agree on a connection, and dialling again would end the same way.
    case unreachable(EarshotError)
    /// It is seen, or connected: what waits for a session with it may ask for one.
    case withinReach
    /// Its row is gone.
    case forgotten
}
