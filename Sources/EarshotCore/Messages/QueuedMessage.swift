package import EarshotWire
package import NIOCore

/// A message of this machine that outlives the process. It waits until its recipients return, or until its deadline.
package struct QueuedMessage: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let contentType: String
    package let body: ByteBuffer
    /// The digest of content type and body. A message with the same id and another digest is a different message.
    package let fingerprint: [UInt8]
    package let sent: WallTime
    /// The time at which the message expires.
    package let deadline: WallTime
    package let recipients: [Message.Recipient]
    /// The group of the message; `nil` for sessions of two.
    package let group: GroupID?
    /// The message to which this one replies.
    package let inReplyTo: MessageID?

    package init(
        id: MessageID, contentType: String, body: ByteBuffer, fingerprint: [UInt8], sent: WallTime, deadline: WallTime,
        recipients: [Message.Recipient], group: GroupID? = nil, inReplyTo: MessageID? = nil
    ) {
        self.group = group
        self.inReplyTo = inReplyTo
        self.id = id
        self.contentType = contentType
        self.body = body
        self.fingerprint = fingerprint
        self.sent = sent
        self.deadline = deadline
        self.recipients = recipients
    }
}

/// A queued message without its body, which stays on disk until it is sent.
package struct QueuedMessageRow: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let contentType: String
    /// The size of the body in bytes.
    package let size: Int
    package let fingerprint: [UInt8]
    package let sent: WallTime
    package let deadline: WallTime
    package var recipients: [Message.Recipient]
    /// The group of the message; `nil` for sessions of two.
    package let group: GroupID?
    /// The message to which this one replies.
    package let inReplyTo: MessageID?

    package init(
        id: MessageID, contentType: String, size: Int, fingerprint: [UInt8], sent: WallTime, deadline: WallTime,
        recipients: [Message.Recipient], group: GroupID? = nil, inReplyTo: MessageID? = nil
    ) {
        self.group = group
        self.inReplyTo = inReplyTo
        self.id = id
        self.contentType = contentType
        self.size = size
        self.fingerprint = fingerprint
        self.sent = sent
        self.deadline = deadline
        self.recipients = recipients
    }
}

/// A change of the outbox. Changes passed together are committed together.
package enum OutboxChange: Sendable, Hashable {
    /// Adds a message for all its recipients. It replaces an older message with the same id.
    case add(QueuedMessage)
    /// Sets the status of a message at one recipient. If the status is final, the message no longer waits for that recipient.
    case settle(MessageID, Message.Recipient)
    /// Removes a message, which no recipient gets any more.
    case remove(MessageID)
    /// Notes that the sender knows that these messages were read here.
    case noted([MessageID], by: PeerID)
}
