import EarshotClient
import EarshotSafety

/// Warns on standard error, before something is sent, about recipients that are reached in plaintext.
struct ProtectionWarning: Sendable {
    let client: ControlClient

    /// Reports each peer whose connection is unprotected, and each peer whose name is also used by another key.
    ///
    /// This method does not check whether the peers exist or may be sent to; sending reports that.
    func tell(of peers: [String]) async {
        var told: Set<PeerID> = []
        for name in peers {
            guard let peer = try? await self.client.peer(name).value, told.insert(peer.id).inserted else { continue }
            await self.tell(of: peer)
        }
    }

    /// Reports the same of one peer.
    func tell(of peer: ControlAPI.Peer) async {
        if let words = await NameWarning(client: self.client).line(of: peer) { Standard.note(words) }
        if peer.protection == .known(.unprotected) { Standard.note(Self.line(peer.name)) }
    }

    /// Reports unprotected connections of all session members.
    func tellOfAll() async {
        guard let sessions = try? await self.client.sessions().sessions else { return }
        for member in sessions.flatMap(\.members) where member.protection == .known(.unprotected) {
            Standard.note(Self.line(member.name))
        }
    }

    /// The sentence, escaped.
    private static func line(_ name: String) -> String {
        "\(name.escapedForDisplay) is reached unprotected: anyone on the network can read this"
    }
}
