public import EarshotCoding

/// A received message, and the value that its body is.
public struct TypedMessageReceived: Sendable {
    /// The message as the daemon has it.
    public let message: ControlAPI.Message
    /// Its body, as one of the types that the reader has named; or its bytes, and why.
    public let content: TypedContent

    /// A UUID in lower case. A sender uses one once; two senders may use the same.
    public var id: String { self.message.id }
    /// Who sent it.
    public var sender: ControlAPI.Message.Sender { self.message.sender }
}

/// Messages as values: see ``ControlClient/messages(of:from:in:)``. Read by one reader: each iterator reads all of them.
public struct TypedMessages: AsyncSequence, Sendable {
    let client: ControlClient
    let types: MessageTypes
    let peer: String?
    let group: String?

    /// A reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(client: self.client, types: self.types, peer: self.peer, group: self.group)
    }

    /// One reader, and how far it is.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// How many are asked for at once; each may have 1 MiB.
        private static let page = 64

        private let client: ControlClient
        private let types: MessageTypes
        private var peer: String?
        private var group: String?
        private var arrivals: MessageArrivals?
        private var arrived: AsyncThrowingStream<MessageArrivals.Arrival, any Error>.Iterator?
        /// The rest of a page, and whether there may be more on the disk.
        private var waiting: ArraySlice<ControlAPI.Message> = []
        private var isLookDue = true
        /// Where the next page begins: messages that cannot be read stay unread, and are passed over.
        private var place: String?
        /// Handed out last, and not marked read yet.
        private var last: ControlAPI.ReadRequest.Entry?

        fileprivate init(client: ControlClient, types: MessageTypes, peer: String?, group: String?) {
            self.client = client
            self.types = types
            self.peer = peer
            self.group = group
        }

        /// Marks the last message read, and waits for the next one; `nil` where the task is cancelled.
        public mutating func next() async throws -> TypedMessageReceived? {
            if let last = self.last { _ = try await self.client.markRead([last]) }
            self.last = nil
            if self.arrivals == nil { try await self.begin() }
            while !Task.isCancelled {
                if let message = self.waiting.popFirst() {
                    self.last = ControlAPI.ReadRequest.Entry(id: message.id, from: message.sender.id)
                    return self.typed(message)
                }
                if self.isLookDue {
                    try await self.look()
                    continue
                }
                switch try await self.arrived?.next(isolation: #isolation) {
                case .stored?: (self.isLookDue, self.place) = (true, nil)
                case .unreliable(let message)?: return self.typed(message)
                case nil: return nil
                }
            }
            return nil
        }

        private func typed(_ message: ControlAPI.Message) -> TypedMessageReceived {
            TypedMessageReceived(message: message, content: self.types.content(message.contentType, message.body))
        }

        private mutating func begin() async throws {
            // Before the first look, so that nothing falls between the two.
            let arrivals = try await MessageArrivals(self.client, from: self.peer, in: self.group)
            (self.peer, self.group) = (arrivals.peer, arrivals.group)
            self.arrived = arrivals.stream.makeAsyncIterator()
            self.arrivals = arrivals
        }

        private mutating func look() async throws {
            let page = try await self.client.messages(from: self.peer, in: self.group, after: self.place, limit: Self.page)
            self.waiting = page.value.messages[...]
            // All of a page is read before the next one is asked for, but for what cannot be read.
            if !page.unreadable.isEmpty { self.place = page.value.next }
            self.isLookDue = page.value.next != nil
        }
    }
}
