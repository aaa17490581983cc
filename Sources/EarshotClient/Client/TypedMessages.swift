public import EarshotCoding
public import EarshotWire

/// A received message with its decoded body.
public struct TypedMessageReceived: Sendable {
    /// The message as the daemon has it.
    public let message: ControlAPI.Message
    /// The body as one of the requested types; or its bytes, with the reason.
    public let content: TypedContent

    /// The message's id, unique for each sender.
    public var id: MessageID { self.message.id }
    /// The sender.
    public var sender: ControlAPI.Message.Sender { self.message.sender }
}

/// Messages as values: see ``ControlClient/messages(of:from:in:)``. Each iterator belongs to one reader and returns all messages.
public struct TypedMessages: AsyncSequence, Sendable {
    let client: ControlClient
    let types: MessageTypes
    let peer: String?
    let group: String?

    /// Returns a reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(unread: UnreadMessages(DaemonMessages(client: self.client, peer: self.peer, group: self.group)), types: self.types)
    }

    /// A reader with its position.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var unread: UnreadMessages<DaemonMessages>
        fileprivate let types: MessageTypes

        /// Marks the last message read, and waits for the next one; `nil` if the task is cancelled.
        public mutating func next() async throws -> TypedMessageReceived? {
            guard let message = try await self.unread.next() else { return nil }
            return TypedMessageReceived(message: message, content: self.types.content(message.contentType, message.body))
        }
    }
}

/// The daemon's inbox.
private struct DaemonMessages: MessageSource {
    /// The number of messages in one request; each may have 1 MiB.
    private static let page = 64

    let client: ControlClient
    /// The peer and group as the program names them; their ids after `begin()`.
    var peer: String?
    var group: String?
    private var arrivals: MessageArrivals?
    private var arrived: AsyncThrowingStream<MessageArrival<ControlAPI.Message>, any Error>.Iterator?

    init(client: ControlClient, peer: String?, group: String?) {
        self.client = client
        self.peer = peer
        self.group = group
    }

    mutating func begin() async throws {
        let arrivals = try await MessageArrivals(self.client, from: self.peer, in: self.group)
        (self.peer, self.group) = (arrivals.peer?.description, arrivals.group?.description)
        self.arrived = arrivals.stream.makeAsyncIterator()
        self.arrivals = arrivals
    }

    mutating func arrival() async throws -> MessageArrival<ControlAPI.Message>? { try await self.arrived?.next(isolation: #isolation) }

    func unread(after place: String?) async throws -> UnreadPage<ControlAPI.Message, String> {
        let page = try await self.client.messages(from: self.peer, in: self.group, after: place, limit: Self.page)
        return UnreadPage(messages: page.value.messages, next: page.value.next, skips: !page.unreadable.isEmpty)
    }

    func markRead(_ message: ControlAPI.Message) async throws {
        _ = try await self.client.markRead([ControlAPI.ReadRequest.Entry(id: message.id, from: message.sender.id)])
    }
}
