extension ControlAPI {
    /// Body of `POST /v1/messages/read`: received messages that were read.
    package struct ReadRequest: Codable, Hashable, Sendable {
        /// One of them.
        package struct Entry: Codable, Hashable, Sendable {
            /// The message's id.
            package let id: String
            /// Its sender, in any form of naming a peer: needed only where two senders used the id.
            package let from: String?

            /// A value from its parts.
            package init(id: String, from: String? = nil) {
                self.id = id
                self.from = from
            }
        }

        /// At most 1,000.
        package let messages: [Entry]

        /// A value from its parts.
        package init(messages: [Entry]) {
            self.messages = messages
        }
    }

    /// Answer of `POST /v1/messages/read`.
    package struct ReadResult: Codable, Hashable, Sendable {
        /// How many of the messages were unread, and are read now.
        package let marked: Int

        /// A value from its parts.
        package init(marked: Int) {
            self.marked = marked
        }
    }
}
