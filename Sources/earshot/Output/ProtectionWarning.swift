import EarshotControl
import EarshotSafety

/// Says before something goes out, and on standard error alone, which recipients are reached in plaintext.
struct ProtectionWarning: Sendable {
    let client: ControlClient

    /// A line for each of these peers whose connection is unprotected now.
    ///
    /// Whether the peers exist, and whether they may be sent to, is not judged here: sending says that.
    func tell(of peers: [String]) async {
        var told: Set<String> = []
        for name in peers {
            guard let peer = try? await self.client.peer(name).value, let line = Self.line(peer), told.insert(peer.id).inserted
            else { continue }
            Standard.note(line)
        }
    }

    /// The words, escaped; `nil` where there is nothing to warn of.
    static func line(_ peer: ControlAPI.Peer) -> String? {
        guard peer.protection == .known(.unprotected) else { return nil }
        return "\(peer.name.escapedForDisplay) is reached unprotected: anyone on the network can read this"
    }
}
