/// A page of the inbox, in its order, with the place of the next page.
public struct MessagePage: Sendable, Hashable, Codable {
    /// The messages, oldest first. There are fewer than requested if their bodies would be too large for one answer.
    public let messages: [Message]
    /// The place in the inbox after which the next page starts; `nil` after the last page.
    public let next: Int64?

    package init(messages: [Message], next: Int64?) {
        self.messages = messages
        self.next = next
    }
}
