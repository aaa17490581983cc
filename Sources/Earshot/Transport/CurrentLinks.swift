package import EarshotCore
import NIOCore
import Synchronization

/// This machine's networks, read from the kernel at most once in `EarshotLimits.linksAge`, because anyone can send
/// datagrams and open connections.
package final class CurrentLinks: Sendable {
    private struct State {
        var links: LocalLinks
        var readAt: NIODeadline
    }

    private let state = Mutex<State?>(nil)

    package init() {}

    /// Whether an address is on one of the networks, or is this machine's own.
    package func permit(_ address: PeerAddress) -> Bool {
        let links = self.state.withLock { state in
            let now = NIODeadline.now()
            if let current = state, now - current.readAt < TimeAmount(EarshotLimits.linksAge) { return current.links }
            let links = LocalLinks.current()
            state = State(links: links, readAt: now)
            return links
        }
        return links.permit(address, fromLoopback: true)
    }
}
