/// The constants of the limits on bandwidth.
extension EarshotLimits {
    /// The smallest rate of a transfer that shares a limit with others, in bytes per second. A slower transfer would look like a stalled one to
    /// its peer. The transfers together then exceed a limit that is too small for their number.
    package static let smallestShare: UInt64 = 64
    /// The bytes that a paced transfer may move at once after a pause, as a time at its rate.
    package static let paceBurst: Duration = .milliseconds(100)
    /// The bytes that a paced transfer moves in one step, as a time at its rate: half of the burst, so that a late step loses nothing.
    package static let paceStep: Duration = .milliseconds(50)
    /// The fewest bytes in one step. A frame's header and the system calls of a step cost as much as these bytes.
    package static let smallestPaceStep = 256
    /// The longest time for which a paced mover waits before it checks whether its rate has changed or the transfer has ended.
    package static let paceCheck: Duration = .milliseconds(100)
    /// The rate from which a limited transfer is received over a data connection, in bytes per second. The kernels' buffers take megabytes ahead
    /// of the receiver, and let the sender continue only after a large part of them. At a lower rate, the sender would therefore take the
    /// transfer for a stalled one (`resourceStallTime`). The window of the control connection has no such buffer.
    package static let receiveDataRate: UInt64 = 64 * 1024
    /// The bytes by which the sender of a limited transfer may be ahead over the control connection, as a time at its rate.
    package static let pacedWindow: Duration = .seconds(2)
    /// The longest time for which bytes from the control connection wait for their rate. A limit that has just become much lower must not keep
    /// the sender of a large window waiting until it reports a stall.
    package static let pacedWriteTime: Duration = .seconds(4)
}
