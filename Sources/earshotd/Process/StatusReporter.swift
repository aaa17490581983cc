internal import Earshot
internal import EarshotSafety
internal import ServiceLifecycle

/// A service that updates the line in `systemctl status` after events, at most once a second.
struct StatusReporter: Service {
    /// The shortest time between two updates: a burst of events causes one update.
    static let pause: Duration = .seconds(1)

    let node: Node
    let manager: ServiceManager

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var last: String?
            while !Task.isCancelled {
                // Subscribes before reading the status, so that no event is missed.
                var news = self.node.events.subscribe()
                let line = Self.line(await self.node.status())
                if line != last { self.manager.status(line) }
                last = line
                guard await news.next() != nil else { return }
                try? await TimerClock().sleep(for: Self.pause)
            }
        }
    }

    /// The line, such as `alice on port 47110; 3 peers, 1 session; discovery avahi running`.
    static func line(_ status: NodeStatus) -> String {
        let counts = status.counts
        let seen = "\(self.count(counts.peers, "peer")), \(self.count(counts.sessions, "session"))"
        let discovery = "discovery \(status.discovery.backend.rawValue) \(status.discovery.state.rawValue)"
        return "\(status.name) on port \(status.port); \(seen); \(discovery)".escapedForDisplay
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
