import EarshotClient
import Synchronization

/// The present trust in peers, kept up to date by the daemon's events, so that not every message needs a further call.
final class PeerTrusts: Sendable {
    private let client: ControlClient
    private let known = Mutex<[PeerID: String]>([:])

    init(_ client: ControlClient) { self.client = client }

    /// Returns the trust in a peer, waiting for an absent daemon.
    func trust(in peer: PeerID) async throws -> String {
        guard peer != .unprovenDevice else { return ControlAPI.Trust.unknown.rawValue }
        if let trust = self.known.withLock({ $0[peer] }) { return trust }
        do {
            let trust = try await whileAway { try await self.client.peer(peer).trust.rawValue }
            return self.known.withLock { known in
                // An event that has come meanwhile is newer.
                if known[peer] == nil { known[peer] = trust }
                return known[peer] ?? trust
            }
        } catch ControlError.problem(let problem) where problem.code == .unknownPeer {
            return ControlAPI.Trust.unknown.rawValue
        }
    }

    /// Notes a change of a peer. After missed events, nothing is known.
    func note(_ event: ControlReply<ControlAPI.Event>) {
        if let peer = event.peer {
            self.known.withLock { $0[peer.id] = peer.trust.rawValue }
        } else if event.value.type == .gap || !event.unreadable.isEmpty {
            self.known.withLock { $0 = [:] }
        }
    }
}
