import Earshot
import EarshotDiscovery
import Logging
import Synchronization

/// Keeps a peer's engine alive while one of the peer's sessions, advertisers or browsers exists. All objects of one peer id share one node
/// and port.
final class EngineOwner: Sendable {
    let engine: PeerEngine

    private init(_ engine: PeerEngine) { self.engine = engine }

    deinit {
        self.engine.stop()
        Self.ended(self.engine)
    }

    private struct Registry {
        var owners: [PeerID: WeakReference<EngineOwner>] = [:]
        /// Engines that have not ended yet. The next engine of the same peer waits for the end.
        var last: [PeerID: PeerEngine] = [:]
    }

    private static let registry = Mutex(Registry())

    /// Makes the discovery. Tests replace it with one that they control.
    static let makeDiscovery = Mutex<@Sendable () -> any PeerDiscovery>({
        var logger = Logger(label: "multipeer.discovery")
        logger.logLevel = .error
        return AutomaticDiscovery(logger: logger)
    })

    /// Returns the owner for this peer.
    /// - Precondition: This machine has the peer's key.
    static func of(_ peer: MCPeerID, for what: StaticString) -> EngineOwner {
        self.registry.withLock { registry in
            if let owner = registry.owners[peer.id]?.value { return owner }
            guard let identity = peer.identity else {
                preconditionFailure("\(what): myPeerID is another machine's peer; its key is not here")
            }
            let engine = PeerEngine(peer, identity, after: registry.last[peer.id])
            let owner = EngineOwner(engine)
            registry.owners[peer.id] = WeakReference(owner)
            registry.last[peer.id] = engine
            return owner
        }
    }

    private static func ended(_ engine: PeerEngine) {
        Task {
            await engine.ended()
            self.registry.withLock { registry in
                guard registry.last[engine.id] === engine else { return }
                registry.last[engine.id] = nil
                if registry.owners[engine.id]?.value == nil { registry.owners[engine.id] = nil }
            }
        }
    }
}
