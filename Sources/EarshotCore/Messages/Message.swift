public import EarshotWire
public import NIOCore

/// A whole datum with a content type, at most 1 MiB.
public struct Message: Sendable, Hashable, Codable, Identifiable {
    /// How it travels.
    public enum Mode: String, Sendable, Hashable, Codable, CaseIterable {
        /// In order, acknowledged, kept in the receiver's inbox.
        case reliable
        /// Sent at once or dropped.
        case unreliable
    }

    /// Whom an outgoing message is for.
    public enum Recipients: Sendable, Hashable {
        /// Each in any form of naming a peer.
        case peers([String])
        /// Every peer with a session, connected or not, at the time of the call.
        case all
        /// Every other member of a group, by its id, 8 or more of its first characters, or its name.
        case group(String)
    }

    /// Whether an incoming message was read.
    public enum ReadState: String, Sendable, Hashable, Codable, CaseIterable {
        case unread, read
    }

    /// What became of a message at one recipient.
    public enum Status: String, Sendable, Hashable, Codable, CaseIterable {
        case queued, sent, delivered, read, unconfirmed, failed

        /// Whether nothing but a later `read` can change that of a reliable message.
        package var isFinal: Bool {
            switch self {
            case .queued, .sent: false
            case .delivered, .read, .unconfirmed, .failed: true
            }
        }
    }

    /// One recipient of an outgoing message.
    public struct Recipient: Sendable, Hashable, Codable {
        /// Whom it was sent to.
        public let peerID: PeerID
        /// How it stands there.
        public package(set) var status: Status
        /// Why it failed or stayed unconfirmed.
        public package(set) var error: EarshotError.Code?
        /// The same in words.
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

    /// Chosen by the sender; unique for one sender only.
    public let id: MessageID
    /// Received, or sent.
    public let direction: Direction
    /// Who sent it, proven.
    public let senderID: PeerID
    /// The sender's display name at the time: a label.
    public let senderName: String
    /// 1 to 255 printable ASCII characters, such as `text/plain; charset=utf-8`.
    public let contentType: String
    /// At most 1 MiB.
    public let body: ByteBuffer
    /// How it travelled.
    public let mode: Mode
    /// By the sender's clock.
    package let sent: WallTime
    /// When it was committed here; `nil` for outgoing ones.
    package let received: WallTime?
    /// Whether it was read here; `read` for outgoing ones.
    public let readState: ReadState
    /// For outgoing messages.
    public let recipients: [Recipient]
    /// The group that it was sent to; `nil` in a session of two.
    public let group: GroupLabel?

    package init(
        id: MessageID, direction: Direction, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, mode: Mode,
        sent: WallTime, received: WallTime?, readState: ReadState, recipients: [Recipient], group: GroupLabel? = nil
    ) {
        self.group = group
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

    /// The same once it was read.
    package var read: Message {
        Message(
            id: self.id, direction: self.direction, senderID: self.senderID, senderName: self.senderName, contentType: self.contentType,
            body: self.body, mode: self.mode, sent: self.sent, received: self.received, readState: .read, recipients: self.recipients,
            group: self.group)
    }
}

extension Message {
    private enum CodingKeys: String, CodingKey {
        case id, direction
        case senderID = "senderId"
        case senderName, contentType, body, mode
        case sent = "sentAt"
        case received = "receivedAt"
        case readState, recipients, group
    }

    /// Decodes a message.
    /// - Throws: `DecodingError` where the content type or the body is outside of its limits, or anything else is not what it is to be.
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
        guard MessageFrame.isContentType(self.contentType) else {
            throw fields.fault(.contentType, "a content type is 1 to \(WireLimits.contentType) printable ASCII characters")
        }
        guard self.body.readableBytes <= WireLimits.messageBody else {
            throw fields.fault(.body, "a message has at most \(WireLimits.messageBody) bytes")
        }
    }
}
