public import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// The inbox, and what became of messages that were sent.
extension Node {
    /// What an event takes in the log beyond its message's body, in bytes.
    private static let eventOverhead = 512

    /// What an event takes in the log, in bytes: what a peer may make long counts by its length.
    static func eventCost(_ kind: NodeEvent.Kind) -> Int {
        switch kind {
        case .messageReceived(let message): message.body.readableBytes + Self.eventOverhead
        case .invitationReceived(let invitation), .invitationResolved(let invitation): invitation.context.count + Self.eventOverhead
        default: Self.eventOverhead
        }
    }

    // MARK: Outbox

    /// Messages that wait on disk for peers that are away, the oldest first.
    public func outbox() -> [OutboxMessage] { self.core.outbox }

    /// Takes a message that waits back from all recipients that have not got it; that is on disk when this returns.
    /// - Throws: `not-found`; `conflict` where it does not wait any more; `busy` while it is being written.
    public func cancelQueued(_ id: MessageID) async throws(EarshotError) -> SentMessage {
        let answer = await self.call(.cancelQueued(id))
        guard case .sent(let outcomes) = answer, let outcome = outcomes.first else { throw answer.error }
        return try outcome.get()
    }

    // MARK: Inbox

    /// The first page of received messages, oldest first: ``messagePage(state:from:in:after:limit:)`` says what it holds.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `storage`.
    public nonisolated func messages(
        state: Message.ReadState?, from name: String?, in group: String? = nil, limit: Int
    ) async throws(EarshotError) -> [Message] {
        try await self.messagePage(state: state, from: name, in: group, limit: limit).messages
    }

    /// Received messages, of one sender or one group where given, oldest first, those behind the place that an earlier page has named, or from the start.
    ///
    /// At most `limit` (1 to 1,000), and fewer where their bodies would be more than 8 MiB together.
    /// Not the node's own work: a page goes from the disk to its caller and past the node's loop.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `unknown-group`, `ambiguous-group`, `storage`.
    public nonisolated func messagePage(
        state: Message.ReadState?, from name: String?, in group: String? = nil, after place: Int64 = 0, limit: Int
    ) async throws(EarshotError) -> MessagePage {
        let page = try await self.pageUntaken(state: state, from: name, in: group, after: place, limit: limit)
        if self.isEphemeral { await self.take(page.messages) }
        return page
    }

    /// The same for a reader that hands them to the program one by one.
    nonisolated func pageUntaken(
        state: Message.ReadState?, from name: String?, in group: String?, after place: Int64, limit: Int
    ) async throws(EarshotError) -> MessagePage {
        var sender: PeerID?
        if let name { sender = try await self.sender(name) }
        var groupID: GroupID?
        if let group { groupID = try await self.heardGroup(group) }
        return try await self.store.messagePage(
            state: state, from: sender, in: groupID, after: place, limit: min(max(limit, 1), EarshotLimits.messagesListed))
    }

    private func sender(_ name: String) throws(EarshotError) -> PeerID { try self.core.resolve(name) }

    /// A group that this machine has left may still have messages in the inbox: its full id names it.
    func heardGroup(_ name: String) throws(EarshotError) -> GroupID {
        if let id = GroupID(name) { return id }
        return try self.core.groupID(name)
    }

    /// One message in either direction.
    /// - Throws: `not-found`; `conflict` where two senders gave the id and `from` does not say which.
    public func message(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        if name == nil, let own = self.core.outgoingMessage(id) {
            let body = if let body = own.body { body } else { try await self.store.outboxBodies([id])[id] ?? ByteBuffer() }
            return Message(
                id: id, direction: .outgoing, senderID: self.id, senderName: self.configuration.displayName.description,
                contentType: own.contentType, body: body, mode: own.mode, sent: own.sent, received: nil, readState: .read,
                recipients: own.recipients, group: own.group.map { self.core.label(of: $0) })
        }
        let message = try await self.received(id, from: name)
        self.take(CollectionOfOne(message))
        return message
    }

    private func received(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        var sender: PeerID?
        if let name { sender = try self.core.resolve(name) }
        let messages = try await self.store.messages(id: id, from: sender)
        guard let message = messages.first else { throw EarshotError(.notFound, "there is no message \(id)") }
        guard messages.count == 1 else {
            throw EarshotError(.conflict, "\(messages.count) peers have sent a message \(id)", remedy: .nameSender)
        }
        return message
    }

    /// Marks a received message read, and tells its sender, where the settings say so.
    /// - Throws: as ``message(_:from:)``.
    public func markRead(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        let message = try await self.received(id, from: name)
        self.take(CollectionOfOne(message))
        guard message.readState == .unread else { return message }
        let receipt = self.core.wantsReceipts(message.senderID)
        guard let read = try await self.store.markRead(id: id, from: message.senderID, at: self.runningTime.date, receipt: receipt) else {
            throw EarshotError(.notFound, "there is no message \(id)")
        }
        if receipt { self.handle(.read([id], of: message.senderID)) }
        self.unreadMessages = await self.store.unreadCount()
        return read
    }

    /// Marks received messages read, all in one commit, and tells their senders, where the settings say so. Those that are gone or were
    /// read before are passed over. Each may name its sender; at most 1,000 at once.
    /// - Returns: how many were unread.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `invalid-parameter`, `storage`; `conflict` where two senders gave an id and no sender is
    ///   named. Nothing is marked then.
    public func markRead(_ messages: [(id: MessageID, from: String?)]) async throws(EarshotError) -> Int {
        guard messages.count <= EarshotLimits.messagesMarkedAtOnce else {
            throw EarshotError(.invalidParameter, "at most \(EarshotLimits.messagesMarkedAtOnce) messages are marked at once")
        }
        var senders: [String: PeerID] = [:]
        var keys: [Store.MessageKey] = []
        for message in messages {
            guard let name = message.from else {
                keys.append(Store.MessageKey(id: message.id, sender: nil))
                continue
            }
            let sender = if let known = senders[name] { known } else { try self.core.resolve(name) }
            senders[name] = sender
            keys.append(Store.MessageKey(id: message.id, sender: sender))
        }
        let told = Set(self.core.allFacts.map(\.id).filter(self.core.wantsReceipts))
        let marked = try await self.store.markRead(keys, receiptsFor: told, at: self.runningTime.date)
        for (sender, ids) in marked {
            self.take(ids, of: sender)
            if told.contains(sender) { self.handle(.read(ids, of: sender)) }
        }
        let count = marked.values.reduce(0) { $0 + $1.count }
        // In step with what the disk says: its outcomes come here in their order.
        self.unreadMessages -= count
        return count
    }
}
