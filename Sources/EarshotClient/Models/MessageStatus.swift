public import EarshotWire

extension ControlAPI {
    /// The status of a message at one recipient.
    public enum DeliveryStatus: String, Hashable, Sendable, CaseIterable {
        case queued
        case sent
        case delivered
        case read
        case unconfirmed
        case failed
    }

    /// A recipient of an outgoing message.
    public struct Recipient: Codable, Hashable, Sendable {
        /// The recipient's peer id: 52 characters of base32.
        public let peerID: PeerID
        /// The status of the message at the recipient.
        public let status: Tolerant<DeliveryStatus>
        /// Why the delivery failed.
        @ReadableValue public var error: Failure?

        /// Creates a value from its parts.
        public init(peerID: PeerID, status: Tolerant<DeliveryStatus>, error: Failure? = nil) {
            self.peerID = peerID
            self.status = status
            self._error = ReadableValue(error)
        }

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case status, error
        }
    }

    /// The answer of `POST /v1/messages`: the status at every recipient.
    public struct MessageReceipt: Codable, Hashable, Sendable {
        /// The message's id: a UUID in lower case.
        public let messageID: MessageID
        /// The recipients, in the order of the request.
        public let recipients: [Recipient]

        /// Creates a value from its parts.
        public init(messageID: MessageID, recipients: [Recipient]) {
            self.messageID = messageID
            self.recipients = recipients
        }

        private enum CodingKeys: String, CodingKey {
            case messageID = "message_id"
            case recipients
        }
    }
}
