internal import Earshot

/// The objects that the routes use.
struct ControlAPIServices: Sendable {
    let node: Node
    let policy: CallerPolicy
    /// The readers of the event stream.
    let readers: EventReaders
    /// The counts of answered requests.
    let requests = RequestCounts()

    init(node: Node, policy: CallerPolicy, readers: EventReaders = EventReaders()) {
        self.node = node
        self.policy = policy
        self.readers = readers
    }
}
