public import EarshotWire

extension ControlAPI {
    /// The body of `POST /v1/messages/read`: received messages to mark as read.
    public struct ReadRequest: Codable, Hashable, Sendable {
        /// A message to mark as read.
        public struct Entry: Codable, Hashable, Sendable {
            /// The message's id.
            public let id: MessageID
            /// The sender, in any form of naming a peer; needed only if two senders used the id.
            public let from: String?

            /// Creates a value from its parts.
            public init(id: MessageID, from: (any PeerReference)? = nil) {
                self.id = id
                self.from = from?.description
            }
        }

        /// The messages, at most 1,000.
        public let messages: [Entry]

        /// Creates a value from its parts.
        public init(messages: [Entry]) {
            self.messages = messages
        }
    }

    /// The answer of `POST /v1/messages/read`.
    public struct ReadResult: Codable, Hashable, Sendable {
        /// The number of messages that were unread before.
        public let marked: Int

        /// Creates a value from its parts.
        public init(marked: Int) {
            self.marked = marked
        }
    }
}
