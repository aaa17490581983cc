/// A part of the node that works by itself, and that can be asked for a sign of life: what a watchdog goes by.
public struct Heartbeat: Sendable {
    /// Which part, such as `store`.
    public let name: String
    /// How long it may be busy with one thing without being stuck: a disk takes its time for a large file, and a restart would not help it.
    public let patience: Duration
    /// Has the part call back once it gets round to it: behind what it has to do already, and never where it is stuck.
    public let ask: @Sendable (_ answer: @escaping @Sendable () -> Void) -> Void

    /// A heartbeat from its parts.
    public init(
        name: String, patience: Duration = .zero, ask: @escaping @Sendable (_ answer: @escaping @Sendable () -> Void) -> Void
    ) {
        self.name = name
        self.patience = patience
        self.ask = ask
    }
}

extension Node {
    /// Every part of the node: its own queue on its event loop, the threads of the store, the spool and discovery.
    public nonisolated var heartbeats: [Heartbeat] {
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
