package import EarshotWire
import OrderedCollections

/// The traffic of two peers in their session, or in one group that both are in. Each conversation has its own order: a message that waits
/// in one does not delay another.
package struct Conversation: Sendable, Hashable, CustomStringConvertible {
    package let peer: PeerID
    /// The group; `nil` for the session of the two.
    package let group: GroupID?

    package init(with peer: PeerID, in group: GroupID? = nil) {
        self.peer = peer
        self.group = group
    }

    package var description: String { self.group.map { "\(self.peer) in \($0)" } ?? self.peer.description }
}

/// The connection that carries a conversation now, and the session id for its frames.
struct ConversationCarrier: Sendable {
    let link: LinkID
    /// The id that the messages give as their session. A group's id serves as the session id of its messages.
    let session: SessionID
}

extension NodeCore {
    /// Returns the carrier of a conversation; `nil` while it is not attached to a connection.
    func carrier(of conversation: Conversation) -> ConversationCarrier? {
        guard let record = self.records[conversation.peer], let link = record.connection else { return nil }
        if let group = conversation.group {
            return record.groups.isAttached(group) ? ConversationCarrier(link: link, session: group.session) : nil
        }
        guard record.isAttached, let session = record.sessionID else { return nil }
        return ConversationCarrier(link: link, session: session)
    }

    /// Returns the conversation that a peer's frame gives as its session; `nil` if the two have no such session, or if the group is not
    /// attached.
    func conversation(naming session: SessionID, with peer: PeerID) -> Conversation? {
        if self.records[peer]?.sessionID == session { return Conversation(with: peer) }
        return self.attachedGroup(session, with: peer).map { Conversation(with: peer, in: $0) }
    }

    /// Whether a peer's hello says that it accepts messages that name the message to which they reply.
    func takesReplies(_ peer: PeerID) -> Bool {
        self.records[peer]?.link.current?.facts.peer.extensions.announce(.replies) ?? false
    }

    /// Whether the two share a session or a group.
    package func isTalking(with peer: PeerID) -> Bool {
        guard let record = self.records[peer] else { return false }
        return record.sessionID != nil || !record.groups.isEmpty
    }

    /// Returns every conversation with a peer that has had, or has pending, messages.
    func conversations(with peer: PeerID) -> [Conversation] {
        let groups = self.records[peer]?.groups.shared ?? []
        let all = [Conversation(with: peer)] + groups.map { Conversation(with: peer, in: $0) }
        return all.filter { self.traffic[$0] != nil }
    }
}

extension WireID where Kind == GroupKind {
    /// The id that messages and resources of the group give as their session.
    package var session: SessionID { SessionID(high: self.high, low: self.low) }

    package init(session: SessionID) { self.init(high: session.high, low: session.low) }
}
