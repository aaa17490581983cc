import EarshotWire

/// An input from outside the node's actor. All inputs are on one queue, in order.
enum NodeInput: Sendable {
    case discovery(DiscoveryEvent)
    /// The watchdog asks whether the queue makes progress.
    case heartbeat(@Sendable () -> Void)
    /// The running discovery has ended, and another may start.
    case discoveryEnded
    case connection(ConnectionEvent)
    /// An input for the core, such as the progress of a dial or the bytes of a stream.
    case core(Input)
    case timer(NodeTimer, Charge?)
    /// A data connection is established, and its token was sent or received.
    case dataAttached(DataConnection, attempt: UInt64)
    case dataDialFailed(TransferID, attempt: UInt64, EarshotError)
    /// A datagram that announces a LocalSend device.
    case deviceAnnounced(DeviceInfo, PeerAddress, isAnswer: Bool)
    /// The daemon is about to stop.
    case streamsOver
}

/// The kind of a timer.
enum NodeTimer: Sendable {
    /// A deadline of the core.
    case core
    case pruneInbox
}
