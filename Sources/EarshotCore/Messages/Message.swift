public import EarshotWire
public import NIOCore

/// A unit of data with a content type, at most 1 MiB.
public struct Message: Sendable, Hashable, Codable, Identifiable {
    /// The mode of delivery.
    public enum Mode: String, Sendable, Hashable, Codable, CaseIterable {
        /// Delivered in order, acknowledged, and stored in the receiver's inbox.
        case reliable
        /// Sent at once, or dropped.
        case unreliable
    }

    /// The recipients of an outgoing message.
    public enum Recipients: Sendable, Hashable {
        /// The given peers, each in any form that names a peer.
        case peers([String])
        /// Every peer with a session at the time of the call, connected or not.
        case all
        /// Every other member of a group. The group is named by its id, by 8 or more of the id's first characters, or by its name.
        case group(String)

        /// The peers with these ids.
        public static func peers(_ ids: [PeerID]) -> Self { .peers(ids.map(\.description)) }

        /// Every other member of the group with this id.
        public static func group(_ id: GroupID) -> Self { .group(id.description) }
    }

    /// Whether an incoming message was read.
    public enum ReadState: String, Sendable, Hashable, Codable, CaseIterable {
        case unread, read
    }

    /// The status of a message at one recipient.
    public enum Status: String, Sendable, Hashable, Codable, CaseIterable {
        case queued, sent, delivered, read, unconfirmed, failed

        /// Whether the status is final: only a later `read` can replace it for a reliable message.
        package var isFinal: Bool {
            switch self {
            case .queued, .sent: false
            case .delivered, .read, .unconfirmed, .failed: true
            }
        }
    }

    /// A recipient of an outgoing message.
    public struct Recipient: Sendable, Hashable, Codable {
        /// The recipient's peer id.
        public let peerID: PeerID
        /// The status at this recipient.
        public package(set) var status: Status
        /// The reason why the message failed or stayed unconfirmed.
        public package(set) var error: EarshotError.Code?
        /// The reason in words.
        public package(set) var errorMessage: String?

        package init(peerID: PeerID, status: Status, error: EarshotError.Code? = nil, errorMessage: String? = nil) {
            self.peerID = peerID
            self.status = status
            self.error = error
            self.errorMessage = errorMessage
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peerId"
            case status, error, errorMessage
        }
    }

    /// The message's id, chosen by the sender and unique per sender only.
    public let id: MessageID
    /// Whether the message was received or sent.
    public let direction: Direction
    /// The sender's id, proven.
    public let senderID: PeerID
    /// The sender's display name at the time: a label.
    public let senderName: String
    /// The content type: 1 to 255 printable ASCII characters, such as `text/plain; charset=utf-8`.
    public let contentType: String
    /// The body, at most 1 MiB.
    public let body: ByteBuffer
    /// The mode of delivery.
    public let mode: Mode
    /// The time at which the message was sent, by the sender's clock.
    package let sent: WallTime
    /// The time at which the message was committed here; `nil` for outgoing messages.
    package let received: WallTime?
    /// Whether the message was read here; `read` for outgoing messages.
    public let readState: ReadState
    /// The recipients of an outgoing message, with their statuses.
    public let recipients: [Recipient]
    /// The group to which the message was sent; `nil` in a session of two.
    public let group: GroupLabel?
    /// The id of the message to which this one replies; `nil` if it is no reply. In an incoming message, the id is untrusted: the sender
    /// chose it, and there may be no message with this id.
    public let inReplyTo: MessageID?

    package init(
        id: MessageID, direction: Direction, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, mode: Mode,
        sent: WallTime, received: WallTime?, readState: ReadState, recipients: [Recipient], group: GroupLabel? = nil,
        inReplyTo: MessageID? = nil
    ) {
        self.group = group
        self.inReplyTo = inReplyTo
        self.id = id
        self.direction = direction
        self.senderID = senderID
        self.senderName = senderName
        self.contentType = contentType
        self.body = body
        self.mode = mode
        self.sent = sent
        self.received = received
        self.readState = readState
        self.recipients = recipients
    }

    /// A copy of the message that is marked as read.
    package var read: Message {
        Message(
            id: self.id, direction: self.direction, senderID: self.senderID, senderName: self.senderName, contentType: self.contentType,
            body: self.body, mode: self.mode, sent: self.sent, received: self.received, readState: .read, recipients: self.recipients,
            group: self.group, inReplyTo: self.inReplyTo)
    }
}

extension Message {
    private enum CodingKeys: String, CodingKey {
        case id, direction
        case senderID = "senderId"
        case senderName, contentType, body, mode
        case sent = "sentAt"
        case received = "receivedAt"
        case readState, recipients, group, inReplyTo
    }

    /// Decodes a message.
    /// - Throws: `DecodingError` if the content type or the body exceeds its limits, or if another field is missing or has the wrong type.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.id = try fields.decode(MessageID.self, forKey: .id)
        self.direction = try fields.decode(Direction.self, forKey: .direction)
        self.senderID = try fields.decode(PeerID.self, forKey: .senderID)
        self.senderName = try fields.decode(String.self, forKey: .senderName)
        self.contentType = try fields.decode(String.self, forKey: .contentType)
        self.body = try fields.decode(ByteBuffer.self, forKey: .body)
        self.mode = try fields.decode(Mode.self, forKey: .mode)
        self.sent = try fields.decode(WallTime.self, forKey: .sent)
        self.received = try fields.decodeIfPresent(WallTime.self, forKey: .received)
        self.readState = try fields.decode(ReadState.self, forKey: .readState)
        self.recipients = try fields.decode([Recipient].self, forKey: .recipients)
        self.group = try fields.decodeIfPresent(GroupLabel.self, forKey: .group)
        self.inReplyTo = try fields.decodeIfPresent(MessageID.self, forKey: .inReplyTo)
        guard MessageFrame.isContentType(self.contentType) else {
            throw fields.fault(.contentType, "a content type is 1 to \(WireLimits.contentType) printable ASCII characters")
        }
        guard self.body.readableBytes <= WireLimits.messageBody else {
            throw fields.fault(.body, "a message has at most \(WireLimits.messageBody) bytes")
        }
    }
}
