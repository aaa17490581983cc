package import EarshotWire
package import NIOCore

/// A message of ours that outlives the process: it waits until its recipients are back, or its deadline.
package struct QueuedMessage: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let contentType: String
    package let body: ByteBuffer
    /// Of content type and body: the same id with another one is another message.
    package let fingerprint: [UInt8]
    package let sent: WallTime
    /// When it is given up.
    package let deadline: WallTime
    package let recipients: [Message.Recipient]
    /// The group that it is for; `nil` for sessions of two.
    package let group: GroupID?

    package init(
        id: MessageID, contentType: String, body: ByteBuffer, fingerprint: [UInt8], sent: WallTime, deadline: WallTime,
        recipients: [Message.Recipient], group: GroupID? = nil
    ) {
        self.group = group
        self.id = id
        self.contentType = contentType
        self.body = body
        self.fingerprint = fingerprint
        self.sent = sent
        self.deadline = deadline
        self.recipients = recipients
    }
}

/// All of a queued message but its body, which stays on disk until it is sent.
package struct QueuedMessageRow: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let contentType: String
    /// Of the body, in bytes.
    package let size: Int
    package let fingerprint: [UInt8]
    package let sent: WallTime
    package let deadline: WallTime
    package var recipients: [Message.Recipient]
    /// The group that it is for; `nil` for sessions of two.
    package let group: GroupID?

    package init(
        id: MessageID, contentType: String, size: Int, fingerprint: [UInt8], sent: WallTime, deadline: WallTime,
        recipients: [Message.Recipient], group: GroupID? = nil
    ) {
        self.group = group
        self.id = id
        self.contentType = contentType
        self.size = size
        self.fingerprint = fingerprint
        self.sent = sent
        self.deadline = deadline
        self.recipients = recipients
    }
}

/// One change of the outbox; those given together are committed together.
package enum OutboxChange: Sendable, Hashable {
    /// A message is to wait, for all its recipients; it takes the place of an older one of the same id.
    case add(QueuedMessage)
    /// What became of a message at one recipient: it does not wait there any more, where that is final.
    case settle(MessageID, Message.Recipient)
    /// It is withdrawn, and no receiver is to hear of it any more.
    case remove(MessageID)
    /// The sender has taken note that we have read these.
    case noted([MessageID], by: PeerID)
}
