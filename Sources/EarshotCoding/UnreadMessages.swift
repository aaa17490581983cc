/// Where unread messages lie, and how a reader hears of more: this machine's daemon, or a node of the program's own.
package protocol MessageSource {
    associatedtype Message: Sendable
    associatedtype Place: Sendable

    /// Begins to listen.
    mutating func begin() async throws
    /// Waits until there may be more; `nil` where the task is cancelled, or the source has ended.
    mutating func arrival() async throws -> MessageArrival<Message>?
    /// Unread messages, the oldest first, behind a place, or from the start.
    func unread(after place: Place?) async throws -> UnreadPage<Message, Place>
    func markRead(_ message: Message) async throws
}

/// Why a reader looks.
package enum MessageArrival<Message: Sendable>: Sendable {
    /// There may be more on the disk. Each means a look at all that is unread, so that none but the newest is needed.
    case stored
    /// It is in no inbox: it is read now or never.
    case unreliable(Message)
}

/// Some of the unread messages.
package struct UnreadPage<Message: Sendable, Place: Sendable>: Sendable {
    package let messages: [Message]
    /// Behind which there are more; `nil` where these were the last.
    package let next: Place?
    /// Whether some of them could not be read: they stay unread, and are passed over.
    package let skips: Bool

    package init(messages: [Message], next: Place?, skips: Bool = false) {
        self.messages = messages
        self.next = next
        self.skips = skips
    }
}

/// Reads a source's messages one by one, for as long as the program wants more: each is marked read when the next one is asked for.
package struct UnreadMessages<Source: MessageSource> {
    private var source: Source
    private var hasBegun = false
    /// The rest of a page, and whether there may be more on the disk.
    private var waiting: ArraySlice<Source.Message> = []
    private var isLookDue = true
    private var place: Source.Place?
    /// Handed out last, and not marked read yet.
    private var last: Source.Message?

    package init(_ source: Source) { self.source = source }

    /// Marks the last message read, and waits for the next one; `nil` where the task is cancelled, or the source has ended.
    package mutating func next() async throws -> Source.Message? {
        if let last = self.last { try await self.source.markRead(last) }
        self.last = nil
        if !self.hasBegun {
            // Before the first look, so that nothing falls between the two.
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
        // All of a page is read before the next one is asked for, but for what cannot be read.
        if page.skips { self.place = page.next }
        self.isLookDue = page.next != nil
    }
}
