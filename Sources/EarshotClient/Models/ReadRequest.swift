extension ControlAPI {
    /// Body of `POST /v1/messages/read`: received messages that were read.
    public struct ReadRequest: Codable, Hashable, Sendable {
        /// One of them.
        public struct Entry: Codable, Hashable, Sendable {
            /// The message's id.
            public let id: String
            /// Its sender, in any form of naming a peer: needed only where two senders used the id.
            public let from: String?

            /// A value from its parts.
            public init(id: String, from: String? = nil) {
                self.id = id
                self.from = from
            }
        }

        /// At most 1,000.
        public let messages: [Entry]

        /// A value from its parts.
        public init(messages: [Entry]) {
            self.messages = messages
        }
    }

    /// Answer of `POST /v1/messages/read`.
    public struct ReadResult: Codable, Hashable, Sendable {
        /// How many of the messages were unread, and are read now.
        public let marked: Int

        /// A value from its parts.
        public init(marked: Int) {
            self.marked = marked
        }
    }
}
