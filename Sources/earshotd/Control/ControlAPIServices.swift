internal import Earshot

/// What the routes work on.
struct ControlAPIServices: Sendable {
    let node: Node
    let policy: CallerPolicy
    /// Those who read the event stream.
    let readers: EventReaders
    /// What was answered so far.
    let requests = RequestCounts()

    init(node: Node, policy: CallerPolicy, readers: EventReaders = EventReaders()) {
        self.node = node
        self.policy = policy
        self.readers = readers
    }
}
