import EarshotClient
import EarshotSafety

/// Says before something goes out, and on standard error alone, which recipients are reached in plaintext.
struct ProtectionWarning: Sendable {
    let client: ControlClient

    /// A line for each of these peers whose connection is unprotected now, and for each whose name has come back with another key.
    ///
    /// Whether the peers exist, and whether they may be sent to, is not judged here: sending says that.
    func tell(of peers: [String]) async {
        var told: Set<String> = []
        for name in peers {
            guard let peer = try? await self.client.peer(name).value, told.insert(peer.id).inserted else { continue }
            if let words = await NameWarning(client: self.client).line(of: peer) { Standard.note(words) }
            if peer.protection == .known(.unprotected) { Standard.note(Self.line(peer.name)) }
        }
    }

    /// The same for everyone in a session.
    func tellOfAll() async {
        guard let sessions = try? await self.client.sessions().value.sessions else { return }
        for member in sessions.flatMap(\.members) where member.protection == .known(.unprotected) {
            Standard.note(Self.line(member.name))
        }
    }

    /// The words, escaped.
    private static func line(_ name: String) -> String {
        "\(name.escapedForDisplay) is reached unprotected: anyone on the network can read this"
    }
}
