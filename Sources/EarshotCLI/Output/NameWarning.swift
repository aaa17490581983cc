import EarshotClient
import EarshotSafety

/// Says, on standard error, that a name has come back with another key, of another peer or of the same one with a new key, or that two
/// known peers share one.
struct NameWarning: Sendable {
    let client: ControlClient

    /// A line where the peer that is meant by this name has a namesake. Whether there is such a peer is not judged here.
    func tell(of name: String) async {
        guard let peer = try? await self.client.peer(name).value, let line = await self.line(of: peer) else { return }
        Standard.note(line)
    }

    /// The words about this peer, escaped; `nil` where there is nothing to warn of.
    func line(of peer: ControlAPI.Peer) async -> String? {
        guard let other = peer.nameConflict else { return nil }
        return Self.line(peer, namesake: try? await self.client.peer(other).value)
    }

    /// The words, escaped; `nil` where there is nothing to warn of. The namesake is the peer that the conflict is with, where it is at hand.
    static func line(_ peer: ControlAPI.Peer, namesake: ControlAPI.Peer? = nil) -> String? {
        guard let other = peer.nameConflict else { return nil }
        let name = peer.name.escapedForDisplay
        let (own, others) = (Words.typed(peer).escapedForDisplay, Words.short(other).escapedForDisplay)
        guard peer.sources.contains("store") else {
            return "warning: a peer called \(name) is known with another key, \(others); this one, \(own), is new: "
                + "compare digits before you trust it, with earshot verify \(own)"
        }
        if namesake?.sources.contains("store") == true {
            return "warning: two peers that you know are called \(name): the name is ambiguous; use \(own) or \(others)"
        }
        return "warning: another key, \(others), uses the name \(name); it is not the \(name) that you know (\(own))"
    }
}
