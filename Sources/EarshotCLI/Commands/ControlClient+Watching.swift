import EarshotClient

extension ControlClient {
    /// Returns events for as long as the command runs, across restarts of the daemon, which are reported on standard error. Ends when the
    /// daemon has been away for longer than `patience`.
    func watch(since: UInt64? = nil, patience: Duration? = nil) async throws(ControlError) -> ControlEvents {
        try await self.events(since: since, patience: patience) { Standard.note($0.words) }
    }
}

extension ControlInterruption {
    /// The sentence for a user.
    var words: String {
        switch self {
        case .daemonLeft: "lost the connection to the daemon; waiting for it to return"
        case .readerTooSlow: "this command read too slowly and the daemon dropped its connection; resuming after the last event"
        }
    }
}
