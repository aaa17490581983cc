/// Resolves names to ids: a name may become ambiguous, or mean another peer, while a reader waits.
extension ControlClient {
    /// The length of a peer's full id, in characters.
    private static let peerIDLength = 52
    /// The length of a group's full id without hyphens, in characters.
    private static let groupIDLength = 32

    /// Returns the id of the wanted peer; a full id is accepted even if the peer was never seen.
    package func peerID(_ name: String?) async throws(ControlError) -> String? {
        guard let name else { return nil }
        do throws(ControlError) {
            return try await self.peer(name).value.id
        } catch {
            guard case .problem(let problem) = error, problem.code == .unknownPeer, name.utf8.count == Self.peerIDLength else {
                throw error
            }
            return name.uppercased()
        }
    }

    /// Returns the id of the wanted group; the full id of a group that this machine has left is accepted.
    package func groupID(_ name: String?) async throws(ControlError) -> String? {
        guard let name else { return nil }
        do throws(ControlError) {
            return try await self.group(name).value.id
        } catch {
            guard case .problem(let problem) = error, problem.code == .unknownGroup, name.utf8.count >= Self.groupIDLength else {
                throw error
            }
            return name.lowercased()
        }
    }
}
