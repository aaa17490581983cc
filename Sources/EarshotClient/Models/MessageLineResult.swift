extension ControlAPI {
    /// What became of one line of `POST /v1/messages` with NDJSON: its message's recipients, or why it was not sent.
    public struct MessageLineResult: Codable, Hashable, Sendable {
        /// The line's number, from 1; empty lines are counted and otherwise ignored.
        public let line: UInt64
        /// A UUID in lower case, where the message was sent.
        public let messageID: String?
        /// What became of it at each.
        public let recipients: [Recipient]?
        /// Why it was not sent.
        public let error: Failure?

        /// A value from its parts.
        public init(line: UInt64, messageID: String? = nil, recipients: [Recipient]? = nil, error: Failure? = nil) {
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
