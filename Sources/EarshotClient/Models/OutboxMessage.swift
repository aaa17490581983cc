public import FoundationEssentials

extension ControlAPI {
    /// The answer of `GET /v1/outbox`: messages that wait for peers that are away.
    public struct Outbox: Codable, Hashable, Sendable {
        /// The oldest first.
        @ReadableElements public var messages: [OutboxMessage]

        /// A value from its parts.
        public init(messages: [OutboxMessage]) {
            self._messages = ReadableElements(messages)
        }
    }

    /// One message that waits, without its body: `GET /v1/messages/{id}` has that.
    public struct OutboxMessage: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        public let messageID: String
        /// As its sender gave it.
        public let contentType: String
        /// The body's size in bytes.
        public let size: Int
        /// How it stands at each.
        @ReadableElements public var recipients: [Recipient]
        /// The group that it is for.
        @ReadableValue public var group: GroupLabel?
        /// When it was queued.
        @ReadableTime public var sentAt: Date?
        /// When it is given up.
        @ReadableTime public var expiresAt: Date?

        /// A value from its parts.
        public init(
            messageID: String, contentType: String, size: Int, recipients: [Recipient], group: GroupLabel? = nil, sentAt: Date?,
            expiresAt: Date?
        ) {
            self.messageID = messageID
            self.contentType = contentType
            self.size = size
            self._recipients = ReadableElements(recipients)
            self._group = ReadableValue(group)
            self._sentAt = ReadableTime(sentAt)
            self._expiresAt = ReadableTime(expiresAt)
        }

        private enum CodingKeys: String, CodingKey {
            case messageID = "message_id"
            case contentType = "content_type"
            case size, recipients, group
            case sentAt = "sent_at"
            case expiresAt = "expires_at"
        }
    }
}
