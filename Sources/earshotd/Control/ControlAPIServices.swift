internal import Earshot

/// The objects that the routes use.
struct ControlAPIServices: Sendable {
    let node: Node
    let policy: CallerPolicy
    let settings: RunningSettings
    /// The readers of the event stream.
    let readers: EventReaders
    /// The counts of answered requests.
    let requests = RequestCounts()

    init(node: Node, policy: CallerPolicy, settings: RunningSettings, readers: EventReaders = EventReaders()) {
        self.node = node
        self.policy = policy
        self.settings = settings
        self.readers = readers
    }
}
