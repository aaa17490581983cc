/// An independent part of the node that a watchdog can ask for a sign of life.
package struct Heartbeat: Sendable {
    /// The name of the part, such as `store`.
    package let name: String
    /// How long the part may be busy with one piece of work before it counts as stuck. A disk needs time for a large file, and a restart
    /// would not help.
    package let patience: Duration
    /// Asks the part to call `answer` after its pending work. A part that is stuck never calls it.
    package let ask: @Sendable (_ answer: @escaping @Sendable () -> Void) -> Void

    /// Creates a heartbeat from its parts.
    package init(
        name: String, patience: Duration = .zero, ask: @escaping @Sendable (_ answer: @escaping @Sendable () -> Void) -> Void
    ) {
        self.name = name
        self.patience = patience
        self.ask = ask
    }
}

extension Node {
    /// The heartbeats of the node: its queue on its event loop, and the threads of the store, the spool and discovery.
    package nonisolated var heartbeats: [Heartbeat] {
        [
            Heartbeat(name: "node") { [input] in input.yield(.heartbeat($0)) },
            Heartbeat(name: "store", patience: EarshotLimits.storePatience) { [store] in store.answer($0) },
            Heartbeat(name: "spool", patience: EarshotLimits.spoolPatience) { [spool] in spool.answer($0) },
            Heartbeat(name: "discovery", patience: EarshotLimits.discoveryPatience) { [currentDiscovery] answer in
                guard let discovery = currentDiscovery.value else { return answer() }
                discovery.answer(answer)
            },
        ]
    }
}
