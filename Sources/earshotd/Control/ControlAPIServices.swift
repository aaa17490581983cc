internal import Earshot

/// What the routes work on.
struct ControlAPIServices: Sendable {
    let node: Node
    let policy: CallerPolicy
}
