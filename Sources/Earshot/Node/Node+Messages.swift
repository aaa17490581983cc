public import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// The inbox, and the states of sent messages.
extension Node {
    /// The cost of an event in the log beyond its message's body, in bytes.
    private static let eventOverhead = 512

    /// Returns the cost of an event in the log, in bytes. It includes the size of the parts that a peer can make long.
    static func eventCost(_ kind: NodeEvent.Kind) -> Int {
        switch kind {
        case .messageReceived(let message): message.body.readableBytes + Self.eventOverhead
        case .invitationReceived(let invitation), .invitationResolved(let invitation):
            invitation.context.count + Self.eventOverhead
                + (invitation.offer ?? []).reduce(0) { $0 + 96 + $1.name.utf8.count + $1.contentType.utf8.count }
        default: Self.eventOverhead
        }
    }

    // MARK: Outbox

    /// Returns the messages that wait on disk for absent peers, oldest first.
    public func outbox() -> [OutboxMessage] { self.core.outbox }

    /// Cancels a waiting message for all recipients that have not received it. When this returns, the cancellation is on disk.
    /// - Throws: `not-found`; `conflict` if the message no longer waits; `busy` while it is being written.
    public func cancelQueued(_ id: MessageID) async throws(EarshotError) -> SentMessage {
        let answer = await self.call(.cancelQueued(id))
        guard case .sent(let outcomes) = answer, let outcome = outcomes.first else { throw answer.error }
        return try outcome.get()
    }

    // MARK: Inbox

    /// Returns the first page of received messages, oldest first; see ``messagePage(state:from:in:after:limit:)``.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `storage`.
    public nonisolated func messages(
        state: Message.ReadState? = nil, from peer: (any PeerReference)? = nil, in group: (any GroupReference)? = nil,
        limit: Int = 1000
    ) async throws(EarshotError) -> [Message] {
        try await self.messagePage(state: state, from: peer, in: group, limit: limit).messages
    }

    /// Returns received messages, oldest first, of one sender or one group if given. They start after the place that an earlier page has
    /// named, or with the oldest.
    ///
    /// A page has at most `limit` messages (1 to 1,000), and fewer if their bodies exceed 8 MiB together. It goes from the disk directly
    /// to the caller and does not occupy the node's loop.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `unknown-group`, `ambiguous-group`, `storage`.
    public nonisolated func messagePage(
        state: Message.ReadState? = nil, from peer: (any PeerReference)? = nil, in group: (any GroupReference)? = nil,
        after place: Int64 = 0, limit: Int = 1000
    ) async throws(EarshotError) -> MessagePage {
        let page = try await self.pageUntaken(
            state: state, from: peer?.description, in: group?.description, after: place, limit: limit)
        if self.isEphemeral { await self.take(page.messages) }
        return page
    }

    /// Returns the same page without acknowledging its messages, for a reader that hands them to the program one by one.
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

    /// Returns the sender with this name. Messages of devices without a certificate share one sender, which is no peer.
    private func sender(_ name: String) throws(EarshotError) -> PeerID {
        name == PeerID.unprovenDevice.description ? .unprovenDevice : try self.core.resolve(name)
    }

    /// Returns the id of a group. The full id also names a group that this machine has left, because the inbox may still have its
    /// messages.
    func heardGroup(_ name: String) throws(EarshotError) -> GroupID {
        if let id = GroupID(name) { return id }
        return try self.core.groupID(name)
    }

    /// Returns a sent or received message.
    /// - Throws: `not-found`; `conflict` if two senders used the id and `from` is not given.
    public func message(_ id: MessageID, from peer: (any PeerReference)? = nil) async throws(EarshotError) -> Message {
        if peer == nil, let own = self.core.outgoingMessage(id) {
            let body = if let body = own.body { body } else { try await self.store.outboxBodies([id])[id] ?? ByteBuffer() }
            return Message(
                id: id, direction: .outgoing, senderID: self.id, senderName: self.configuration.displayName.description,
                contentType: own.contentType, body: body, mode: own.mode, sent: own.sent, received: nil, readState: .read,
                recipients: own.recipients, group: own.group.map { self.core.label(of: $0) }, inReplyTo: own.inReplyTo)
        }
        let message = try await self.received(id, from: peer?.description)
        self.take(CollectionOfOne(message))
        return message
    }

    private func received(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        var sender: PeerID?
        if let name { sender = try self.sender(name) }
        let messages = try await self.store.messages(id: id, from: sender)
        guard let message = messages.first else { throw EarshotError(.notFound, "there is no message \(id)") }
        guard messages.count == 1 else {
            throw EarshotError(.conflict, "\(messages.count) peers have sent a message \(id)", remedy: .nameSender)
        }
        return message
    }

    /// Marks a received message read, and tells its sender if the settings say so.
    /// - Throws: as ``message(_:from:)``.
    @discardableResult
    public func markRead(_ id: MessageID, from peer: (any PeerReference)? = nil) async throws(EarshotError) -> Message {
        let message = try await self.received(id, from: peer?.description)
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

    /// Marks received messages read, all in one commit, and tells their senders if the settings say so. Messages that are deleted or
    /// already read are skipped. Each entry may name its sender. At most 1,000 messages are allowed.
    /// - Returns: The number of messages that were unread.
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `invalid-parameter`, `storage`; `conflict` if two senders used an id and no sender is
    ///   named. If the call throws, it has marked no message.
    @discardableResult
    public func markRead(_ messages: [(id: MessageID, from: (any PeerReference)?)]) async throws(EarshotError) -> Int {
        guard messages.count <= EarshotLimits.messagesMarkedAtOnce else {
            throw EarshotError(.invalidParameter, "at most \(EarshotLimits.messagesMarkedAtOnce) messages are marked at once")
        }
        var senders: [String: PeerID] = [:]
        var keys: [Store.MessageKey] = []
        for message in messages {
            guard let name = message.from?.description else {
                keys.append(Store.MessageKey(id: message.id, sender: nil))
                continue
            }
            let sender = if let known = senders[name] { known } else { try self.sender(name) }
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
        // Consistent with the disk, because the store's results arrive here in their order.
        self.unreadMessages -= count
        return count
    }
}
