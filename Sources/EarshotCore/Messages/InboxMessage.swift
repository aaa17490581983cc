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
    /// The group to which the message was sent; `nil` in a session of two.
    package let group: GroupLabel?
    /// The message to which this one replies, as its sender says.
    package let inReplyTo: MessageID?
    /// Whether the message may be accepted although an earlier one was refused. Either the sender has set `resumed`, which says that it
    /// knows of the refusals, or the message is the first one on its connection.
    package let isResumed: Bool
    /// Whether an earlier message was refused before it reached the store: this one may not overtake it.
    package let followsRefusal: Bool

    package init(
        id: MessageID, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, sent: WallTime, isResumed: Bool = true,
        followsRefusal: Bool = false, group: GroupLabel? = nil, inReplyTo: MessageID? = nil
    ) {
        self.group = group
        self.inReplyTo = inReplyTo
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
    /// The conversation in which the message was sent.
    package var conversation: Conversation { Conversation(with: self.senderID, in: self.group?.id) }
}

/// The outcome of a delivery into the inbox.
package enum DeliveryOutcome: Sendable, Hashable {
    /// The message was committed to disk: acknowledge it.
    case stored(Message)
    /// The message is in memory, and lives only as long as the program: acknowledge it when the program has taken it
    /// (``Input/taken(_:of:)``).
    case held(Message)
    /// The message was in memory already, and the program has not taken it: neither acknowledge nor report it.
    case heldAlready
    /// The message is, or was, in the inbox already: acknowledge it again, and report nothing.
    case duplicate
    /// The message was not stored: send the reason.
    case refused(Refusal)

    package var isStored: Bool {
        switch self {
        case .stored, .held: true
        case .heldAlready, .duplicate, .refused: false
        }
    }

    /// The reason why a message was not stored.
    package enum Refusal: Sendable, Hashable {
        /// The inbox, or its sender's share of it, is full.
        case inboxFull
        /// The message could not be written.
        case storage
    }
}

/// The outcomes of messages that one peer sent together, in their order.
package struct DeliveryReport: Sendable, Hashable {
    package let peer: PeerID
    /// The connection on which the messages came.
    package let link: LinkID
    package let messages: [MessageID]
    /// The outcomes, one per message; `nil` if none of them could be written.
    package let outcomes: [DeliveryOutcome]?

    package init(of peer: PeerID, on link: LinkID, _ messages: [MessageID], _ outcomes: [DeliveryOutcome]?) {
        self.peer = peer
        self.link = link
        self.messages = messages
        self.outcomes = outcomes
    }
}
