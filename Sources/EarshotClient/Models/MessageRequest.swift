public import EarshotWire

extension ControlAPI {
    /// The body of `POST /v1/messages`.
    public struct MessageRequest: Hashable, Sendable {
        /// The recipients of a message.
        public enum Recipients: Hashable, Sendable {
            /// Peers, in any form of naming a peer.
            case peers([String])
            /// Every connected peer; `"all"` in JSON.
            case all
            /// All other members of a group, in any form of naming a group; `group` instead of `to` in JSON.
            case group(String)

            /// The peers with these ids.
            public static func peers(_ ids: [PeerID]) -> Self { .peers(ids.map(\.description)) }

            /// All other members of the group with this id.
            public static func group(_ id: GroupID) -> Self { .group(id.description) }
        }

        /// The recipients.
        public let to: Recipients
        /// The body; `body` or `body_base64` in JSON, see `BodyCoding`.
        public let body: [UInt8]
        /// The content type; by default text or bytes, by the form of the body.
        public let contentType: String
        /// The delivery mode; by default `reliable`.
        public let mode: Tolerant<Message.Mode>
        /// The caller's own id, for safe retries.
        public let messageID: MessageID?
        /// Whether the message is queued for a peer that is away.
        public let queue: Bool?
        /// The timeout in seconds, more than 0 and at most 86,400.
        public let timeoutSeconds: Double?
        /// The id of the message to which this one replies. A peer of an earlier release gets the message without it.
        public let inReplyTo: MessageID?
        /// The PIN of a LocalSend device that asks for one.
        public let pin: String?

        /// Creates a request from its parts.
        public init(
            to: Recipients, body: [UInt8], contentType: String, mode: Message.Mode = .reliable, messageID: MessageID? = nil,
            queue: Bool? = nil, timeout: Duration? = nil, inReplyTo: MessageID? = nil, pin: String? = nil
        ) {
            self.to = to
            self.body = body
            self.contentType = contentType
            self.mode = .known(mode)
            self.messageID = messageID
            self.queue = queue
            self.timeoutSeconds = timeout?.seconds
            self.inReplyTo = inReplyTo
            self.pin = pin
        }
    }
}

extension ControlAPI.MessageRequest: Codable {
    private enum CodingKeys: String, CodingKey {
        case to, group, body
        case bodyBase64 = "body_base64"
        case contentType = "content_type"
        case mode
        case messageID = "message_id"
        case queue
        case timeoutSeconds = "timeout_seconds"
        case inReplyTo = "in_reply_to"
        case pin
    }

    /// Decodes either form of the body, and the defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let body = try BodyCoding.decode(text: .body, base64: .bodyBase64, in: container)
        if let group = try container.decodeIfPresent(String.self, forKey: .group) {
            guard try container.decodeIfPresent(Recipients.self, forKey: .to) == nil else {
                throw DecodingError.dataCorruptedError(forKey: .group, in: container, debugDescription: "either a group or peers, not both")
            }
            self.to = .group(group)
        } else {
            self.to = try container.decode(Recipients.self, forKey: .to)
        }
        self.body = body.bytes
        self.contentType =
            try container.decodeIfPresent(String.self, forKey: .contentType) ?? (body.isText ? BodyCoding.textType : BodyCoding.binaryType)
        self.mode = try container.decodeIfPresent(Tolerant<ControlAPI.Message.Mode>.self, forKey: .mode) ?? .known(.reliable)
        self.messageID = try container.decodeIfPresent(MessageID.self, forKey: .messageID)
        self.queue = try container.decodeIfPresent(Bool.self, forKey: .queue)
        self.timeoutSeconds = try container.decodeIfPresent(Double.self, forKey: .timeoutSeconds)
        self.inReplyTo = try container.decodeIfPresent(MessageID.self, forKey: .inReplyTo)
        self.pin = try container.decodeIfPresent(String.self, forKey: .pin)
    }

    /// Encodes the body in the form that fits it.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        if case .group(let group) = self.to {
            try container.encode(group, forKey: .group)
        } else {
            try container.encode(self.to, forKey: .to)
        }
        try BodyCoding.encode(self.body, contentType: self.contentType, text: .body, base64: .bodyBase64, in: &container)
        try container.encode(self.contentType, forKey: .contentType)
        try container.encode(self.mode, forKey: .mode)
        try container.encodeIfPresent(self.messageID, forKey: .messageID)
        try container.encodeIfPresent(self.queue, forKey: .queue)
        try container.encodeIfPresent(self.timeoutSeconds, forKey: .timeoutSeconds)
        try container.encodeIfPresent(self.inReplyTo, forKey: .inReplyTo)
        try container.encodeIfPresent(self.pin, forKey: .pin)
    }
}

extension ControlAPI.MessageRequest.Recipients: Codable {
    /// Decodes `"all"` or a list of strings.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let text = try? container.decode(String.self) else {
            self = .peers(try container.decode([String].self))
            return
        }
        guard text == "all" else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "neither a list of peers nor \"all\"")
        }
        self = .all
    }

    /// Encodes `"all"` or a list of strings.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .peers(let peers): try container.encode(peers)
        case .all: try container.encode("all")
        // A group has a key of its own, beside the other fields.
        case .group(let group): try container.encode(group)
        }
    }
}
