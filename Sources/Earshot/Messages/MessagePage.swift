/// Some messages of the inbox, in its order, and where the next ones begin.
public struct MessagePage: Sendable, Hashable, Codable {
    /// Oldest first: fewer than were asked for where their bodies would be too many bytes for one answer.
    public let messages: [Message]
    /// The place in the inbox behind which there are more; `nil` where these were the last.
    public let next: Int64?

    package init(messages: [Message], next: Int64?) {
        self.messages = messages
        self.next = next
    }
}
