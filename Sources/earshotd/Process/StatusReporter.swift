internal import Earshot
internal import EarshotSafety
internal import ServiceLifecycle

/// Keeps the line that `systemctl status` shows, as a service: told anew when something has happened, at most once a second.
struct StatusReporter: Service {
    /// The shortest time between two lines: a burst of events is one change.
    static let pause: Duration = .seconds(1)

    let node: Node
    let manager: ServiceManager

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var last: String?
            while !Task.isCancelled {
                // From before the look, so that nothing is missed.
                var news = self.node.events.subscribe()
                let line = Self.line(await self.node.status())
                if line != last { self.manager.status(line) }
                last = line
                guard await news.next() != nil else { return }
                try? await TimerClock().sleep(for: Self.pause)
            }
        }
    }

    /// Such as `alice on port 47110; 3 peers, 1 session; discovery avahi running`.
    static func line(_ status: NodeStatus) -> String {
        let counts = status.counts
        let seen = "\(self.count(counts.peers, "peer")), \(self.count(counts.sessions, "session"))"
        let discovery = "discovery \(status.discovery.backend.rawValue) \(status.discovery.state.rawValue)"
        return "\(status.name) on port \(status.port); \(seen); \(discovery)".escapedForDisplay
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
