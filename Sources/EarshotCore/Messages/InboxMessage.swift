package import EarshotWire
package import NIOCore

/// A reliable message on its way into the inbox.
package struct InboxMessage: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let senderID: PeerID
    package let senderName: String
    package let contentType: String
    package let body: ByteBuffer
    package let sent: WallTime
    /// The group that it was sent to; `nil` in a session of two.
    package let group: GroupLabel?
    /// Whether it may be taken although an earlier one was refused: its sender has set `resumed`, which says that it knows of the refusals,
    /// or it is the first one on its connection.
    package let isResumed: Bool
    /// Whether an earlier one was refused before it came to the store: this one may not overtake that.
    package let followsRefusal: Bool

    package init(
        id: MessageID, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, sent: WallTime, isResumed: Bool = true,
        followsRefusal: Bool = false, group: GroupLabel? = nil
    ) {
        self.group = group
        self.id = id
        self.senderID = senderID
        self.senderName = senderName
        self.contentType = contentType
        self.body = body
        self.sent = sent
        self.isResumed = isResumed
        self.followsRefusal = followsRefusal
    }
}

extension InboxMessage {
    /// What its sender has sent it in.
    package var conversation: Conversation { Conversation(with: self.senderID, in: self.group?.id) }
}

/// What became of a message on its way into the inbox.
package enum DeliveryOutcome: Sendable, Hashable {
    /// Committed to disk: acknowledge it.
    case stored(Message)
    /// In memory, where it ends with the program: acknowledge it once the program has taken it (``Input/taken(_:of:)``).
    case held(Message)
    /// It is in memory already, and the program has not taken it: neither acknowledge nor report it.
    case heldAlready
    /// It is, or was, here already: acknowledge it again, report nothing.
    case duplicate
    /// Not kept: say why.
    case refused(Refusal)

    package var isStored: Bool {
        switch self {
        case .stored, .held: true
        case .heldAlready, .duplicate, .refused: false
        }
    }

    /// Why a message was not kept.
    package enum Refusal: Sendable, Hashable {
        /// The inbox, or its sender's part of it, is full.
        case inboxFull
        /// It could not be written.
        case storage
    }
}

/// What became of messages that one peer has sent together, in their order.
package struct DeliveryReport: Sendable, Hashable {
    package let peer: PeerID
    /// The connection that they have come on.
    package let link: LinkID
    package let messages: [MessageID]
    /// One for each message; `nil` where none of them could be written.
    package let outcomes: [DeliveryOutcome]?

    package init(of peer: PeerID, on link: LinkID, _ messages: [MessageID], _ outcomes: [DeliveryOutcome]?) {
        self.peer = peer
        self.link = link
        self.messages = messages
        self.outcomes = outcomes
    }
}
