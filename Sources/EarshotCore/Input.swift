package import EarshotWire

/// What reaches a ``NodeCore`` from outside.
package enum Input: Sendable, Hashable {
    /// Of a transfer that needs a data connection.
    case dataPath(TransferID, DataPathEvent)
    /// Something about a peer that its dependents have to hear.
    case peer(PeerID, PeerChange)
    /// Time has passed; what is due is dealt with before any input.
    case deadline
}

/// What the dependents of a peer have to hear.
package enum PeerChange: Sendable, Hashable {
    /// Its connection is gone, or its session has ended.
    case detached
}

/// What happens to a transfer's data connection, or on the way to one.
package enum DataPathEvent: Sendable, Hashable {
    /// Both sides have agreed that the transfer's bytes go over a data connection; the one that it had is closed. `link` is the control
    /// connection, which this side has opened where it `isInitiator`; no other one was wanted as this `attempt`.
    case wanted(PeerID, link: LinkID, isInitiator: Bool, attempt: UInt64)
    /// It needs none any more.
    case over
    /// A peer's ticket, or its word that it can not dial.
    case ticket(DataToken, from: PeerID)
    case unavailable(from: PeerID)
    /// An attempt of this side's to dial has come to nothing.
    case dialFailed(attempt: UInt64)
    /// A connection stands that one of the two has dialled.
    case attached(attempt: UInt64)
    /// Its time is over.
    case expired(attempt: UInt64)
}
