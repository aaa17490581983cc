package import EarshotWire

/// What is asked about streams.
package enum StreamRequest: Sendable, Hashable {
    /// Open one to a peer, under a name. Answered when it is over: with its last row, once the far reader has taken everything, or with why
    /// that did not come to pass.
    case open(to: String, name: String)
    /// Accept one that waits here. Answers its row.
    case accept(StreamID)
    /// Accept the next one of this name and from this peer, or any: that which waits longest, or the next that is opened. Of several callers
    /// the first gets it.
    case acceptNext(name: String?, from: String?, timeout: Duration?)
    /// The reader has taken everything.
    case finish(StreamID)
    /// Abort an open one, and answer its last row; forget a closed one.
    case remove(StreamID)
}

/// What the mover of a stream is to do, which moves its bytes on this machine. It begins with ``send(to:for:)`` or
/// ``receive(from:on:window:)``.
package enum StreamCommand: Sendable, Equatable {
    /// Send a peer the bytes of the caller that has opened it, once the receiver permits some.
    case send(to: PeerID, for: CallID)
    /// Take the bytes that a peer sends, for a reader, and let it be so many ahead of that.
    case receive(from: PeerID, on: LinkID, window: UInt64)
    /// The receiver takes the bytes up to this one, on this connection.
    case permit(upTo: UInt64, on: LinkID)
    /// Ask the receiver for a data connection, and open it: report whether it stands, or that there is nothing left for it to carry.
    case askForData
    /// The sender has asked for one: open it, and report whether it stands.
    case openData
    /// Go on over the data connection, or report that there is nothing left for it to carry.
    case useData
    /// Take what comes on the data connection, and report its end.
    case readData
    case closeData
    /// Have the sender go on over this connection, from the first byte that has not come.
    case callBack(on: LinkID)
    /// The receiver has the bytes up to this one: go on there, over the control connection.
    case goBack(to: UInt64)
    /// It is over: by a fault, where there is an error. What has moved until now is the last row's figure.
    case end(EarshotError?)
    /// Its row is gone.
    case forget
}

/// What the mover of a stream reports.
package enum StreamReport: Sendable, Equatable {
    /// So much has gone out that a data connection is worth its while.
    case isLarge
    /// It has no reader here any more, or nobody waits for its end.
    case abandoned
    /// What was to be sent came to no end.
    case broken(EarshotError)
    /// Whether the data connection that was to be opened stands.
    case dataOpened(Bool)
    /// There is nothing left for a data connection to carry.
    case dataUnneeded
    /// The data connection that was read brings nothing any more, and why, where that is the peer's fault.
    case dataEnded(EarshotError?)
}
