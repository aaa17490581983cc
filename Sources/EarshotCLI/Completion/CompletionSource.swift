import ArgumentParser
import EarshotClient
import EarshotSafety

/// The daemon's current peers, groups and files, as words that complete a command.
///
/// Offers a name if it means one peer and can be typed; otherwise the beginning of the id, or the whole id if the id is only advertised.
struct CompletionSource: Sendable {
    let peers: [ControlAPI.Peer]
    let sessions: [ControlAPI.Session]
    let invitations: [ControlAPI.Invitation]
    let resources: [ControlAPI.Resource]
    var groups: [ControlAPI.Group] = []

    /// The peers that satisfy a condition.
    func peers(where condition: (ControlAPI.Peer) -> Bool) -> [CompletionWord] {
        self.peers.filter(condition).map { peer in
            self.word(
                peer.name, peer.id,
                peer.state == .connected ? "connected" : peer.trust == .unknown ? peer.presence.rawValue : peer.trust.rawValue)
        }
    }

    /// The other members of this machine's sessions.
    var members: [CompletionWord] {
        self.sessions.flatMap(\.members).map { self.word($0.name, $0.peerID, $0.state.rawValue) }
    }

    /// Members of sessions, and trusted peers, which are invited automatically.
    var reachable: [CompletionWord] {
        let members = self.members
        let known = Set(members.map(\.text))
        return members + self.peers { $0.trust == .trusted }.filter { !known.contains($0.text) }
    }

    /// The peers whose invitations are pending here.
    var inviters: [CompletionWord] {
        self.invitations.filter { $0.direction == .incoming && $0.state == .pending }
            .map { invitation in
                let note = invitation.offer == nil ? "invites" : "offers files"
                // A device that shows no certificate has no id: only the invitation's id names its offer.
                guard invitation.peerID != .unprovenDevice else {
                    return CompletionWord(invitation.peerName, typedID: Words.short(invitation.id), isClear: false, note: note)
                }
                return self.word(invitation.peerName, invitation.peerID, note)
            }
    }

    /// A name if it means one group, otherwise the beginning of the id.
    var groupNames: [CompletionWord] {
        self.groups.map { group in
            // A name must not be the beginning of another group's id: the command would take that group.
            let isTaken = self.groups.contains { $0.id != group.id && ($0.name == group.name || Self.begins($0.id, with: group.name)) }
            return CompletionWord(group.name, id: group.id, isClear: !isTaken, note: Words.count(group.members.count, "member"))
        }
    }

    /// The members of all groups of this machine.
    var groupMembers: [CompletionWord] {
        var known: Set<PeerID> = []
        let members = self.groups.flatMap(\.members).filter { known.insert($0.peerID).inserted }
        return members.map { member in
            let isTaken = members.contains { $0.peerID != member.peerID && $0.name == member.name }
            return CompletionWord(member.name, typedID: Words.short(member.peerID), isClear: !isTaken, note: member.state.rawValue)
        }
    }

    /// The files that satisfy a condition.
    func files(where condition: (ControlAPI.Resource) -> Bool) -> [CompletionWord] {
        let files = self.resources.filter(condition)
        return files.map { file in
            CompletionWord(
                file.name, id: file.id, isClear: files.count { $0.name.hasBytes(of: file.name) } == 1,
                note: "\(Words.size(file.size)), \(file.direction == .incoming ? "incoming" : "outgoing")")
        }
    }

    /// Whether a text is long enough to name this id.
    private static func begins(_ id: some CustomStringConvertible, with text: String) -> Bool {
        text.utf8.count >= 8 && id.description.uppercased().hasPrefix(text.uppercased())
    }

    private func word(_ name: String, _ id: PeerID, _ note: String) -> CompletionWord {
        // A name must not be the beginning of another peer's id: the command would take that peer.
        let isTaken = self.peers.contains { $0.id != id && ($0.name == name || Self.begins($0.id, with: name)) }
        let peer = self.peers.first { $0.id == id }
        return CompletionWord(name, typedID: peer.map(Words.typed) ?? Words.short(id), isClear: !isTaken, note: note)
    }
}
