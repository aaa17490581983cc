import EarshotControl
import EarshotSafety

/// Says, on standard error, that a name has come back with another key: an impostor, or somebody with a new key.
struct NameWarning: Sendable {
    let client: ControlClient

    /// A line where the peer that is meant by this name has a namesake. Whether there is such a peer is not judged here.
    func tell(of name: String) async {
        guard let peer = try? await self.client.peer(name).value, let line = Self.line(peer) else { return }
        Standard.note(line)
    }

    /// The words, escaped; `nil` where there is nothing to warn of.
    static func line(_ peer: ControlAPI.Peer) -> String? {
        guard let other = peer.nameConflict else { return nil }
        let name = peer.name.escapedForDisplay
        let (own, others) = (Words.short(peer.id).escapedForDisplay, Words.short(other).escapedForDisplay)
        if peer.sources.contains("store") {
            return "warning: another key, \(others), is here under the name of \(name); it is not the \(name) that you know (\(own))"
        }
        return "warning: a peer called \(name) is known with another key, \(others); this one, \(own), is new: "
            + "compare digits before you trust it, with earshot verify \(own)"
    }
}
