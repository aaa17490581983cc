package import EarshotWire

/// Resolves names to ids: a name may become ambiguous, or mean another peer, while a reader waits.
extension ControlClient {
    /// Returns the id of the wanted peer; a full id is accepted even if the peer was never seen.
    package func peerID(_ name: String?) async throws(ControlError) -> PeerID? {
        guard let name else { return nil }
        do throws(ControlError) {
            return try await self.peer(name).id
        } catch {
            guard case .problem(let problem) = error, problem.code == .unknownPeer, let id = PeerID(name) else { throw error }
            return id
        }
    }

    /// Returns the names of all listed peers, by id.
    package func peerNames() async throws(ControlError) -> [PeerID: String] {
        Dictionary(try await self.peers().peers.map { ($0.id, $0.name) }) { first, _ in first }
    }

    /// Returns the id of the wanted group; the full id of a group that this machine has left is accepted.
    package func groupID(_ name: String?) async throws(ControlError) -> GroupID? {
        guard let name else { return nil }
        do throws(ControlError) {
            return try await self.group(name).id
        } catch {
            guard case .problem(let problem) = error, problem.code == .unknownGroup, let id = GroupID(name) else { throw error }
            return id
        }
    }
}
