import EarshotClient
import EarshotSafety

/// Warns on standard error about a name that several keys use: a known name with a new key (another peer, or the same peer with a new key),
/// or two known peers with one name.
struct NameWarning: Sendable {
    let client: ControlClient

    /// Reports a name conflict of the named peer. A missing peer is not reported here.
    func tell(of name: any PeerReference) async {
        guard let peer = try? await self.client.peer(name).value, let line = await self.line(of: peer) else { return }
        Standard.note(line)
    }

    /// The warning about this peer, escaped; `nil` if there is no conflict.
    func line(of peer: ControlAPI.Peer) async -> String? {
        guard let other = peer.nameConflict else { return nil }
        return Self.line(peer, namesake: try? await self.client.peer(other).value)
    }

    /// The warning, escaped; `nil` if there is no conflict. `namesake` is the other peer of the conflict, if it is known.
    static func line(_ peer: ControlAPI.Peer, namesake: ControlAPI.Peer? = nil) -> String? {
        guard let other = peer.nameConflict else { return nil }
        let name = peer.name.escapedForDisplay
        let (own, others) = (Words.typed(peer).escapedForDisplay, Words.short(other))
        guard peer.sources.contains("store") else {
            return "warning: a peer called \(name) is known with another key, \(others); this one, \(own), is new: "
                + "compare digits before you trust it, with earshot verify \(own)"
        }
        if peer.displayName != nil { return "warning: another key, \(others), uses the name \(name), which you have given to \(own)" }
        if namesake?.displayName != nil { return "warning: you have given the name \(name) to another peer, \(others); use \(own)" }
        if namesake?.sources.contains("store") == true {
            return "warning: two peers that you know are called \(name): the name is ambiguous; use \(own) or \(others)"
        }
        return "warning: another key, \(others), uses the name \(name); it is not the \(name) that you know (\(own))"
    }
}
