import EarshotWire

/// Everything that reaches the node from outside its actor, on one queue, in order.
enum NodeInput: Sendable {
    case discovery(DiscoveryEvent)
    /// The watchdog wants to know whether this queue is worked on.
    case heartbeat(@Sendable () -> Void)
    /// The discovery that ran has ended, and another may begin.
    case discoveryEnded
    case connection(ConnectionEvent)
    /// What the core is to hear, such as how a dial goes.
    case core(Input)
    case timer(NodeTimer, Charge?)
    /// A data connection stands, and has said or been told its token.
    case dataAttached(DataConnection, attempt: UInt64)
    case dataDialFailed(TransferID, attempt: UInt64, EarshotError)
    /// This stream has no reader here any more, and no caller waits for its end.
    case streamAbandoned(StreamID)
    /// So much has gone out of this stream that it is worth a data connection.
    case streamIsLarge(StreamID)
    /// A stream's data connection brings nothing any more, and why, where that is the peer's fault.
    case streamDataEnded(StreamID, EarshotError?)
    /// A caller that waited for a stream has gone.
    case streamAcceptorGone(UInt64)
    /// The daemon is about to stop.
    case streamsOver
}

/// What can come due.
enum NodeTimer: Sendable {
    case transfer(ResourceID, Transfer.Limit)
    /// Something that the core waits for is due.
    case core
    /// Time to say how far a transfer is.
    case progress(ResourceID)
    case pruneInbox
    case stream(StreamID)
    case streamAcceptor(UInt64)
}
