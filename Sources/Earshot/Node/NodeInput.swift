import EarshotWire

/// Everything that reaches the node from outside its actor, on one queue, in order.
enum NodeInput: Sendable {
    case discovery(DiscoveryEvent)
    /// The watchdog wants to know whether this queue is worked on.
    case heartbeat(@Sendable () -> Void)
    /// The discovery that ran has ended, and another may begin.
    case discoveryEnded
    case connection(ConnectionEvent)
    /// What the core is to hear, such as how a dial goes, or a stream's bytes.
    case core(Input)
    case timer(NodeTimer, Charge?)
    /// A data connection stands, and has said or been told its token.
    case dataAttached(DataConnection, attempt: UInt64)
    case dataDialFailed(TransferID, attempt: UInt64, EarshotError)
    /// The daemon is about to stop.
    case streamsOver
}

/// What can come due.
enum NodeTimer: Sendable {
    /// Something that the core waits for is due.
    case core
    case pruneInbox
}
