package import EarshotWire

/// What a ``NodeCore`` has its shell do.
package enum Effect: Sendable, Hashable {
    /// Write frames on a control connection, if it still stands.
    case send(LinkID, [Frame])
    case dataPath(TransferID, DataPathEffect)
}

/// What is to be done for a transfer's data connection.
package enum DataPathEffect: Sendable, Hashable {
    /// Let the peer dial with this token, over what carries its control connection; report it as attached.
    case expect(DataToken, from: PeerID, over: LinkID, attempt: UInt64)
    /// Dial the peer with the token that it has given.
    case dial(DataToken, PeerID, over: LinkID, attempt: UInt64)
    /// Let nobody dial for it any more.
    case revoke
    /// What has just been reported as attached is the transfer's data connection from now on.
    case use(attempt: UInt64)
    /// There will be none.
    case doWithout(attempt: UInt64)
    /// What has just been reported as attached comes too late, or is one too many.
    case drop
    /// The attempt is over, and the connection that it came to is not needed any more.
    case close(attempt: UInt64)
}
