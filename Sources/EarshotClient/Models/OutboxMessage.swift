public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// The answer of `GET /v1/outbox`: the queued messages.
    public struct Outbox: Codable, Hashable, Sendable {
        /// The messages, oldest first.
        @ReadableElements public var messages: [OutboxMessage]

        /// Creates a value from its parts.
        public init(messages: [OutboxMessage]) {
            self._messages = ReadableElements(messages)
        }
    }

    /// A queued message without its body, which `GET /v1/messages/{id}` returns.
    public struct OutboxMessage: Codable, Hashable, Sendable {
        /// The message's id: a UUID in lower case.
        public let messageID: MessageID
        /// The content type that the sender gave.
        public let contentType: String
        /// The body's size in bytes.
        public let size: Int
        /// The status at each recipient.
        @ReadableElements public var recipients: [Recipient]
        /// The group of the message.
        @ReadableValue public var group: GroupLabel?
        /// The id of the message to which this one replies.
        public let inReplyTo: MessageID?
        /// The time of queuing.
        @ReadableTime public var sentAt: Date?
        /// When the message expires.
        @ReadableTime public var expiresAt: Date?

        /// Creates a value from its parts.
        public init(
            messageID: MessageID, contentType: String, size: Int, recipients: [Recipient], group: GroupLabel? = nil,
            inReplyTo: MessageID? = nil, sentAt: Date?, expiresAt: Date?
        ) {
            self.messageID = messageID
            self.contentType = contentType
            self.size = size
            self._recipients = ReadableElements(recipients)
            self._group = ReadableValue(group)
            self.inReplyTo = inReplyTo
            self._sentAt = ReadableTime(sentAt)
            self._expiresAt = ReadableTime(expiresAt)
        }

        private enum CodingKeys: String, CodingKey {
            case messageID = "message_id"
            case contentType = "content_type"
            case size, recipients, group
            case inReplyTo = "in_reply_to"
            case sentAt = "sent_at"
            case expiresAt = "expires_at"
        }
    }
}
