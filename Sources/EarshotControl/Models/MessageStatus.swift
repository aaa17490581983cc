extension ControlAPI {
    /// What became of a message at one recipient.
    package enum DeliveryStatus: String, Hashable, Sendable, CaseIterable {
        case queued
        case sent
        case delivered
        case read
        case unconfirmed
        case failed
    }

    /// One recipient of an outgoing message.
    package struct Recipient: Codable, Hashable, Sendable {
        /// 52 characters of base32.
        package let peerID: String
        /// What became of the message there.
        package let status: Tolerant<DeliveryStatus>
        /// Why it failed.
        @ReadableValue package var error: Failure?

        /// A value from its parts.
        package init(peerID: String, status: Tolerant<DeliveryStatus>, error: Failure? = nil) {
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
    package struct MessageReceipt: Codable, Hashable, Sendable {
        /// A UUID in lower case.
        package let messageID: String
        /// In the order of the request.
        package let recipients: [Recipient]

        /// A value from its parts.
        package init(messageID: String, recipients: [Recipient]) {
            self.messageID = messageID
            self.recipients = recipients
        }

        private enum CodingKeys: String, CodingKey {
            case messageID = "message_id"
            case recipients
        }
    }
}
