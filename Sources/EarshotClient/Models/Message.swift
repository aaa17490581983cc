public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// A message: a body with a content type, at most 1 MiB.
    public struct Message: Codable, Hashable, Sendable {
        /// The delivery mode of a message.
        public enum Mode: String, Hashable, Sendable, CaseIterable {
            case reliable
            case unreliable
        }

        /// Whether an incoming message has been read.
        public enum State: String, Hashable, Sendable, CaseIterable {
            case unread
            case read
        }

        /// The sender of a message.
        public struct Sender: Codable, Hashable, Sendable {
            /// The sender's peer id: 52 characters of base32.
            public let id: PeerID
            /// The sender's display name, untrusted.
            public let name: String

            /// Creates a value from its parts.
            public init(id: PeerID, name: String) {
                self.id = id
                self.name = name
            }

            private enum CodingKeys: String, CodingKey {
                case id, name
            }
        }

        /// The message's id: a UUID in lower case.
        public let id: MessageID
        /// The direction; `incoming` messages were sent to this machine.
        public let direction: Tolerant<Direction>
        /// The sender; `from` in JSON.
        public let sender: Sender
        /// The recipients' peer ids, for an outgoing message.
        public let to: [PeerID]?
        /// The body, untrusted; `body` or `body_base64` in JSON, see `BodyCoding`.
        public let body: [UInt8]
        /// The content type that the sender gave, untrusted.
        public let contentType: String
        /// The size of the body, in bytes.
        public var size: Int { self.body.count }
        /// The delivery mode.
        public let mode: Tolerant<Mode>
        /// The time of sending, by the sender's clock.
        @ReadableTime public var sentAt: Date?
        /// When the message was stored here; `nil` for outgoing messages.
        @ReadableValue public var receivedAt: Date?
        /// Whether the message has been read.
        public let state: Tolerant<State>
        /// The status at each recipient, for an outgoing message.
        public let recipients: [Recipient]?
        /// The group of the message; `nil` in a session of two.
        public let group: GroupLabel?
        /// The id of the message to which this one replies; `nil` if it is no reply. In an incoming message, the id is untrusted: the sender
        /// chose it, and there may be no message with this id.
        public let inReplyTo: MessageID?

        /// Creates a value from its parts.
        public init(
            id: MessageID, direction: Tolerant<Direction>, sender: Sender, to: [PeerID]? = nil, body: [UInt8], contentType: String,
            mode: Tolerant<Mode>, sentAt: Date, receivedAt: Date? = nil, state: Tolerant<State>, recipients: [Recipient]? = nil,
            group: GroupLabel? = nil, inReplyTo: MessageID? = nil
        ) {
            self.id = id
            self.direction = direction
            self.sender = sender
            self.to = to
            self.body = body
            self.contentType = contentType
            self.mode = mode
            self._sentAt = ReadableTime(sentAt)
            self._receivedAt = ReadableValue(receivedAt)
            self.state = state
            self.recipients = recipients
            self.group = group
            self.inReplyTo = inReplyTo
        }

        private enum CodingKeys: String, CodingKey {
            case id, direction
            case sender = "from"
            case to, body
            case bodyBase64 = "body_base64"
            case contentType = "content_type"
            case size, mode
            case sentAt = "sent_at"
            case receivedAt = "received_at"
            case state, recipients, group
            case inReplyTo = "in_reply_to"
        }

        /// Decodes either form of the body.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.id = try container.decode(MessageID.self, forKey: .id)
            self.direction = try container.decode(Tolerant<Direction>.self, forKey: .direction)
            self.sender = try container.decode(Sender.self, forKey: .sender)
            self.to = try container.decodeIfPresent([PeerID].self, forKey: .to)
            self.body = try BodyCoding.decode(text: .body, base64: .bodyBase64, in: container).bytes
            self.contentType = try container.decode(String.self, forKey: .contentType)
            self.mode = try container.decode(Tolerant<Mode>.self, forKey: .mode)
            self._sentAt = try container.decode(ReadableTime.self, forKey: .sentAt)
            self._receivedAt = try container.decode(ReadableValue<Date>.self, forKey: .receivedAt)
            self.state = try container.decode(Tolerant<State>.self, forKey: .state)
            self.recipients = try container.decodeIfPresent([Recipient].self, forKey: .recipients)
            self.group = try container.decodeIfPresent(GroupLabel.self, forKey: .group)
            self.inReplyTo = try container.decodeIfPresent(MessageID.self, forKey: .inReplyTo)
        }

        /// Encodes the body in the form that fits it.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(self.id, forKey: .id)
            try container.encode(self.direction, forKey: .direction)
            try container.encode(self.sender, forKey: .sender)
            try container.encodeIfPresent(self.to, forKey: .to)
            try BodyCoding.encode(self.body, contentType: self.contentType, text: .body, base64: .bodyBase64, in: &container)
            try container.encode(self.contentType, forKey: .contentType)
            try container.encode(self.size, forKey: .size)
            try container.encode(self.mode, forKey: .mode)
            try container.encode(self._sentAt, forKey: .sentAt)
            try container.encode(ExplicitNull(wrappedValue: self.receivedAt), forKey: .receivedAt)
            try container.encode(self.state, forKey: .state)
            try container.encodeIfPresent(self.recipients, forKey: .recipients)
            try container.encode(ExplicitNull(wrappedValue: self.group), forKey: .group)
            try container.encodeIfPresent(self.inReplyTo, forKey: .inReplyTo)
        }
    }

    /// The answer of `GET /v1/messages`.
    public struct MessageList: Codable, Hashable, Sendable {
        /// The messages, oldest first; fewer than requested if the answer would be too long.
        @ReadableElements public var messages: [Message]
        /// The value of `after` for the next messages, if there are more.
        public let next: String?

        /// Creates a value from its parts.
        public init(messages: [Message], next: String? = nil) {
            self._messages = ReadableElements(messages)
            self.next = next
        }

        private enum CodingKeys: String, CodingKey {
            case messages, next
        }
    }
}
