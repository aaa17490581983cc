/// The source of unread messages and their arrivals: this machine's daemon, or a node in the program.
package protocol MessageSource {
    associatedtype Message: Sendable
    associatedtype Place: Sendable

    /// Starts listening.
    mutating func begin() async throws
    /// Waits until there may be more messages; `nil` if the task is cancelled, or the source has ended.
    mutating func arrival() async throws -> MessageArrival<Message>?
    /// Returns unread messages, oldest first, after a place or from the start.
    func unread(after place: Place?) async throws -> UnreadPage<Message, Place>
    func markRead(_ message: Message) async throws
}

/// The reason for a reader to look again.
package enum MessageArrival<Message: Sendable>: Sendable {
    /// More messages may be stored. The reader looks at all unread messages for each arrival, so only the newest arrival is needed.
    case stored
    /// An unreliable message, which is in no inbox: it is read now or never.
    case unreliable(Message)
}

/// A page of unread messages.
package struct UnreadPage<Message: Sendable, Place: Sendable>: Sendable {
    package let messages: [Message]
    /// The place after which there are more; `nil` if these were the last.
    package let next: Place?
    /// Whether some messages could not be read: they stay unread, and are skipped.
    package let skips: Bool

    package init(messages: [Message], next: Place?, skips: Bool = false) {
        self.messages = messages
        self.next = next
        self.skips = skips
    }
}

/// Reads a source's messages one by one, for as long as the program wants more. Each is marked read when the next one is requested.
package struct UnreadMessages<Source: MessageSource> {
    private var source: Source
    private var hasBegun = false
    /// The rest of a page, and whether more messages may be stored.
    private var waiting: ArraySlice<Source.Message> = []
    private var isLookDue = true
    private var place: Source.Place?
    /// The message that was returned last, and is not marked read yet.
    private var last: Source.Message?

    package init(_ source: Source) { self.source = source }

    /// Marks the last message read, and waits for the next one; `nil` if the task is cancelled, or the source has ended.
    package mutating func next() async throws -> Source.Message? {
        if let last = self.last { try await self.source.markRead(last) }
        self.last = nil
        if !self.hasBegun {
            // Started before the first look, so that no message is missed in between.
            try await self.source.begin()
            self.hasBegun = true
        }
        while !Task.isCancelled {
            if let message = self.waiting.popFirst() {
                self.last = message
                return message
            }
            if self.isLookDue {
                try await self.look()
                continue
            }
            switch try await self.source.arrival() {
            case .stored?: (self.isLookDue, self.place) = (true, nil)
            case .unreliable(let message)?: return message
            case nil: return nil
            }
        }
        return nil
    }

    private mutating func look() async throws {
        let page = try await self.source.unread(after: self.place)
        self.waiting = page.messages[...]
        // All messages of a page are marked read before the next page is requested, except those that cannot be read.
        if page.skips { self.place = page.next }
        self.isLookDue = page.next != nil
    }
}
