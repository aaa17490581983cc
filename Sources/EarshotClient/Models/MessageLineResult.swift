public import EarshotWire

extension ControlAPI {
    /// The result of one line of `POST /v1/messages` with NDJSON: the message's recipients, or the error.
    public struct MessageLineResult: Codable, Hashable, Sendable {
        /// The line's number, from 1; empty lines are counted and otherwise ignored.
        public let line: UInt64
        /// The message's id, a UUID in lower case, if the message was sent.
        public let messageID: MessageID?
        /// The status at each recipient.
        public let recipients: [Recipient]?
        /// Why the message was not sent.
        public let error: Failure?

        /// Creates a value from its parts.
        public init(line: UInt64, messageID: MessageID? = nil, recipients: [Recipient]? = nil, error: Failure? = nil) {
            self.line = line
            self.messageID = messageID
            self.recipients = recipients
            self.error = error
        }

        private enum CodingKeys: String, CodingKey {
            case line
            case messageID = "message_id"
            case recipients, error
        }
    }
}
