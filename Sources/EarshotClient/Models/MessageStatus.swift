extension ControlAPI {
    /// What became of a message at one recipient.
    public enum DeliveryStatus: String, Hashable, Sendable, CaseIterable {
        case queued
        case sent
        case delivered
        case read
        case unconfirmed
        case failed
    }

    /// One recipient of an outgoing message.
    public struct Recipient: Codable, Hashable, Sendable {
        /// 52 characters of base32.
        public let peerID: String
        /// What became of the message there.
        public let status: Tolerant<DeliveryStatus>
        /// Why it failed.
        @ReadableValue public var error: Failure?

        /// A value from its parts.
        public init(peerID: String, status: Tolerant<DeliveryStatus>, error: Failure? = nil) {
            self.peerID = peerID
            self.status = status
            self._error = ReadableValue(error)
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case status, error
        }
    }

    /// The answer of `POST /v1/messages`: every recipient delivered, unconfirmed or failed.
    public struct MessageReceipt: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        public let messageID: String
        /// In the order of the request.
        public let recipients: [Recipient]

        /// A value from its parts.
        public init(messageID: String, recipients: [Recipient]) {
            self.messageID = messageID
            self.recipients = recipients
        }

        private enum CodingKeys: String, CodingKey {
            case messageID = "message_id"
            case recipients
        }
    }
}
