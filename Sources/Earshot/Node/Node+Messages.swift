public import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// Messages that come in, and the inbox: acknowledged when they are on disk, delivered once and in order (design section 5).
extension Node {
    // MARK: Receiving

    /// Queues a message for the inbox; `true` where its weight stays with it until it is on disk.
    func received(_ frame: MessageFrame, weight: Int, on connection: Connection) -> Bool {
        let peer = connection.peer.id
        guard frame.mode != .unreliable else {
            self.receivedUnreliable(frame, from: peer)
            return false
        }
        guard let record = self.records[peer], record.session?.id == frame.session else {
            connection.send([.messageReceipts([MessageReceipt(id: frame.id, outcome: .refused)])])
            return false
        }
        self.records[peer]?.hasSentMessage = true
        self.enqueue(
            .deliver(
                InboxMessage(
                    id: frame.id, senderID: peer, senderName: record.name, contentType: frame.contentType, body: frame.body.compacted,
                    sentAt: Date(timeIntervalSince1970: Double(frame.sentAtMilliseconds) / 1000),
                    isResumed: frame.mode == .resumed || !record.hasSentMessage),
                from: connection, weight: weight))
        return true
    }

    /// For those who read the events now; nobody else hears of it.
    private func receivedUnreliable(_ frame: MessageFrame, from peer: PeerID) {
        guard let record = self.records[peer], record.session?.id == frame.session else { return }
        let message = Message(
            id: frame.id, direction: .incoming, senderID: peer, senderName: record.name, contentType: frame.contentType,
            body: frame.body.compacted, mode: .unreliable, sentAt: Date(timeIntervalSince1970: Double(frame.sentAtMilliseconds) / 1000),
            receivedAt: Date(), readState: .unread, recipients: [])
        self.tell(.messageReceived(message), cost: message.body.readableBytes + 512, isLive: true)
    }

    // MARK: Inbox

    /// Received messages, oldest first, at most `limit` (1 to 1,000).
    /// - Throws: `unknown-peer`, `ambiguous-peer`, `storage`.
    public func messages(state: Message.ReadState?, from name: String?, limit: Int) async throws(EarshotError) -> [Message] {
        var sender: PeerID?
        if let name { sender = try self.resolve(name) }
        return try await self.store.messages(state: state, from: sender, limit: min(max(limit, 1), 1000))
    }

    /// One message in either direction.
    /// - Throws: `not-found`; `conflict` where two senders gave the id and `from` does not say which.
    public func message(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        if name == nil, let own = self.outgoing[id] {
            let body = if let body = own.body { body } else { try await self.store.outboxBodies([id])[id] ?? ByteBuffer() }
            return Message(
                id: id, direction: .outgoing, senderID: self.id, senderName: self.configuration.displayName.description,
                contentType: own.contentType, body: body, mode: own.mode, sentAt: own.sentAt, receivedAt: nil, readState: .read,
                recipients: own.recipients)
        }
        return try await self.received(id, from: name)
    }

    private func received(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        var sender: PeerID?
        if let name { sender = try self.resolve(name) }
        let messages = try await self.store.messages(id: id, from: sender)
        guard let message = messages.first else { throw EarshotError(.notFound, "there is no message \(id)") }
        guard messages.count == 1 else {
            throw EarshotError(.conflict, "\(messages.count) peers have sent a message \(id); say which by from=PEER")
        }
        return message
    }

    /// Marks a received message read, and tells its sender, where the settings say so.
    /// - Throws: as ``message(_:from:)``.
    public func markRead(_ id: MessageID, from name: String?) async throws(EarshotError) -> Message {
        let message = try await self.received(id, from: name)
        guard message.readState == .unread else { return message }
        let receipt = self.configuration.receipts && self.records[message.senderID]?.session != nil
        guard let read = try await self.store.markRead(id: id, from: message.senderID, receipt: receipt) else {
            throw EarshotError(.notFound, "there is no message \(id)")
        }
        if receipt { self.send(read: [id], to: message.senderID) }
        self.unreadMessages = await self.store.unreadCount()
        return read
    }
}
