package import EarshotWire
import OrderedCollections

/// What two peers say to each other in their session, or in one group that both are in. Each is in an order of its own: what waits in one
/// holds up nothing in another.
package struct Conversation: Sendable, Hashable, CustomStringConvertible {
    package let peer: PeerID
    /// `nil` for the session of the two.
    package let group: GroupID?

    package init(with peer: PeerID, in group: GroupID? = nil) {
        self.peer = peer
        self.group = group
    }

    package var description: String { self.group.map { "\(self.peer) in \($0)" } ?? self.peer.description }
}

/// Where what is said in a conversation goes out now.
struct ConversationCarrier: Sendable {
    let link: LinkID
    /// What its messages name: a group's id is that of its session.
    let session: SessionID
}

extension NodeCore {
    /// `nil` while a conversation is not attached to a connection.
    func carrier(of conversation: Conversation) -> ConversationCarrier? {
        guard let record = self.records[conversation.peer], let link = record.connection else { return nil }
        if let group = conversation.group {
            return record.groups.isAttached(group) ? ConversationCarrier(link: link, session: group.session) : nil
        }
        guard record.isAttached, let session = record.sessionID else { return nil }
        return ConversationCarrier(link: link, session: session)
    }

    /// What a peer's frame means by its session, while something may be said in it; `nil` where the two are in no such.
    func conversation(naming session: SessionID, with peer: PeerID) -> Conversation? {
        if self.records[peer]?.sessionID == session { return Conversation(with: peer) }
        return self.attachedGroup(session, with: peer).map { Conversation(with: peer, in: $0) }
    }

    /// Whether the two have to do with each other: in a session, or in a group.
    package func isTalking(with peer: PeerID) -> Bool {
        guard let record = self.records[peer] else { return false }
        return record.sessionID != nil || !record.groups.isEmpty
    }

    /// Every conversation with a peer in which something was said, or waits to be.
    func conversations(with peer: PeerID) -> [Conversation] {
        let groups = self.records[peer]?.groups.shared ?? []
        let all = [Conversation(with: peer)] + groups.map { Conversation(with: peer, in: $0) }
        return all.filter { self.traffic[$0] != nil }
    }
}

extension WireID where Kind == GroupKind {
    /// What messages and resources of the group name as their session.
    package var session: SessionID { SessionID(high: self.high, low: self.low) }

    package init(session: SessionID) { self.init(high: session.high, low: session.low) }
}
