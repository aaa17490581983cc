/// What names mean now: a name may come to mean another peer, or two, while a reader waits.
extension ControlClient {
    /// A peer's full id, in characters.
    private static let peerIDLength = 52
    /// A group's, without hyphens.
    private static let groupIDLength = 32

    /// The id of the peer of which messages are wanted; a full id need not have been seen.
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

    /// The id of the group of which messages or files are wanted; of one that this machine has left, its full id.
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
