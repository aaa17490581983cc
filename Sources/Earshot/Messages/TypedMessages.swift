public import EarshotCoding
public import EarshotCore
public import EarshotWire
import NIOCore

/// A received message with its decoded body.
public struct TypedMessageReceived: Sendable {
    /// The message as it was received.
    public let message: Message
    /// The body as one of the requested types, or its bytes and the reason why it was not decoded.
    public let content: TypedContent

    /// The id of the message. A sender uses an id once, but two senders may use the same one.
    public var id: MessageID { self.message.id }
    /// The id of the sender, which is proven and not merely claimed.
    public var sender: PeerID { self.message.senderID }
}

/// Messages as values: see ``Node/messages(of:from:in:)``. Each iterator has one reader, and returns all messages.
public struct TypedMessages: AsyncSequence, Sendable {
    let node: Node
    let types: MessageTypes
    let peer: String?
    let group: String?

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            node: self.node, unread: UnreadMessages(NodeMessages(node: self.node, peer: self.peer, group: self.group)), types: self.types)
    }

    /// The position of one reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let node: Node
        fileprivate var unread: UnreadMessages<NodeMessages>
        fileprivate let types: MessageTypes

        /// Marks the last message read, and waits for the next one. Returns `nil` if the task is cancelled or the node has ended.
        /// - Throws: `EarshotError`.
        public mutating func next() async throws -> TypedMessageReceived? {
            guard let message = try await self.unread.next() else { return nil }
            if self.node.isEphemeral { await self.node.take(CollectionOfOne(message)) }
            let content = self.types.content(message.contentType, Array(message.body.readableBytesView))
            return TypedMessageReceived(message: message, content: content)
        }
    }
}

/// The inbox of a node.
private struct NodeMessages: MessageSource {
    /// The number of messages read at once. Each may have 1 MiB.
    private static let page = 64

    let node: Node
    /// The names from the program until they are resolved. A name may later refer to another peer or group, or become ambiguous, while a
    /// reader waits.
    var peer: String?
    var group: String?
    private var events: EventLog.Subscription?

    init(node: Node, peer: String?, group: String?) {
        self.node = node
        self.peer = peer
        self.group = group
    }

    mutating func begin() async throws {
        self.events = self.node.events.subscribe()
        if let peer = self.peer { self.peer = try await self.node.peer(peer).id.description }
        if let group = self.group { self.group = try await self.node.heardGroup(group).description }
    }

    mutating func arrival() async throws -> MessageArrival<Message>? {
        while let event = await self.events?.next() {
            switch event.kind {
            case .messageReceived(let message) where message.mode == .unreliable: if self.isWanted(message) { return .unreliable(message) }
            case .messageReceived, .gap: return .stored
            default: break
            }
        }
        return nil
    }

    private func isWanted(_ message: Message) -> Bool {
        (self.peer == nil || self.peer == message.senderID.description)
            && (self.group == nil || self.group == message.group?.id.description)
    }

    func unread(after place: Int64?) async throws -> UnreadPage<Message, Int64> {
        let page = try await self.node.pageUntaken(
            state: .unread, from: self.peer, in: self.group, after: place ?? 0, limit: Self.page)
        return UnreadPage(messages: page.messages, next: page.next)
    }

    func markRead(_ message: Message) async throws {
        _ = try await self.node.markRead([(id: message.id, from: message.senderID.description)])
    }
}
