package import EarshotWire

/// A caller's request about streams.
package enum StreamRequest: Sendable, Hashable {
    /// Open a stream to a peer, under a name. The answer comes when the stream is over: its last row once the remote reader has taken
    /// everything, or the error that ended it.
    case open(to: String, name: String)
    /// Accept a stream that waits here. The answer is its row.
    case accept(StreamID)
    /// Accept the next stream of this name and from this peer, or any: the one that has waited longest, or the next to be opened. Callers
    /// are served in the order of their requests.
    case acceptNext(name: String?, from: String?, timeout: Duration?)
    /// Finish a stream: its reader has taken everything.
    case finish(StreamID)
    /// Abort an open stream and answer with its last row, or remove a closed one.
    case remove(StreamID)
}

/// A command to the mover of a stream, which moves its bytes on this machine. The first is ``send(to:for:)`` or
/// ``receive(from:on:window:)``.
package enum StreamCommand: Sendable, Equatable {
    /// Send a peer the bytes of the caller that has opened the stream, once the receiver permits some.
    case send(to: PeerID, for: CallID)
    /// Receive a peer's bytes for a reader. The peer may be ahead of the reader by the window, in bytes.
    case receive(from: PeerID, on: LinkID, window: UInt64)
    /// The receiver permits the bytes up to this one, on this connection.
    case permit(upTo: UInt64, on: LinkID)
    /// Ask the receiver for a data connection, and report that, or that there is nothing left for it to carry.
    case askForData
    /// Continue over the data connection, or report that there is nothing left for it to carry.
    case useData
    /// Read the data connection, and report its end.
    case readData
    /// Have the sender continue over this connection, from the first byte that has not arrived.
    case callBack(on: LinkID)
    /// The receiver has the bytes up to this one: continue there, over the control connection.
    case goBack(to: UInt64)
    /// The stream is over, with an error if it failed. Its last row gets the number of bytes moved until now.
    case end(EarshotError?)
    /// The row of the stream has been removed.
    case forget
}

/// A report of the mover of a stream.
package enum StreamReport: Sendable, Equatable {
    /// Enough bytes have been sent to be worth a data connection.
    case isLarge
    /// The reader here has gone, or the caller that waits for the end has.
    case abandoned
    /// The bytes to be sent ended early.
    case broken(EarshotError)
    /// The receiver was asked for a data connection.
    case dataAsked
    /// There is nothing left for a data connection to carry.
    case dataUnneeded
    /// The data connection that was being read has ended, with an error if the peer is at fault.
    case dataEnded(EarshotError?)
}
