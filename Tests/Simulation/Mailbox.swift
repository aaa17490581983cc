import DequeModule
import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The committed messages of one machine: a small model of the store's outbox, inbox and receipts, as kept by `Store+Outbox.swift` and
/// `Store+Inbox.swift`.
struct Mailbox: Sendable {
    /// The capacity of the inbox in unread messages, until the world settles.
    static let limit = 6
    var limit = Self.limit

    /// A request to the disk. Requests are processed in order.
    enum Work: Sendable {
        case keep(KeepID, [OutboxChange])
        case deliver(PeerID, LinkID, [InboxMessage])
        case bodies(Conversation, [MessageID])
        case receipts(PeerID)
        /// A text that a device offers.
        case text(InvitationID, InboxMessage)
    }

    struct Row: Sendable {
        let message: QueuedMessage
        var recipients: [Message.Recipient]
    }

    struct Key: Hashable, Sendable {
        let sender: PeerID
        let id: MessageID
    }

    /// The rows in the order of their addition.
    private(set) var outbox: OrderedDictionary<MessageID, Row> = [:]
    /// Every message that was ever stored, in that order, and whether it was read.
    private(set) var inbox: OrderedDictionary<Key, (body: ByteBuffer, isRead: Bool, isOfGroup: Bool)> = [:]
    private(set) var receipts: OrderedDictionary<PeerID, OrderedSet<MessageID>> = [:]
    private var unread = 0
    /// The senders with a refused message, until they acknowledge the refusal.
    private var refusing: OrderedDictionary<Conversation, DeliveryOutcome.Refusal> = [:]
    var pending: Deque<Work> = []

    /// Returns the rows that a machine starts from.
    mutating func load() -> [QueuedMessageRow] {
        self.pending = []
        self.refusing = [:]
        return self.outbox.values.map { row in
            QueuedMessageRow(
                id: row.message.id, contentType: row.message.contentType, size: row.message.body.readableBytes,
                fingerprint: row.message.fingerprint, sent: row.message.sent, deadline: row.message.deadline, recipients: row.recipients,
                group: row.message.group, inReplyTo: row.message.inReplyTo)
        }
    }

    func has(_ id: MessageID, from sender: PeerID) -> Bool { self.inbox[Key(sender: sender, id: id)] != nil }
    func body(of id: MessageID) -> ByteBuffer? { self.outbox[id]?.message.body }

    mutating func change(_ changes: [OutboxChange]) {
        for change in changes {
            switch change {
            case .add(let message):
                self.outbox.removeValue(forKey: message.id)
                self.outbox[message.id] = Row(message: message, recipients: message.recipients)
            case .settle(let id, let recipient):
                guard let index = self.outbox[id]?.recipients.firstIndex(where: { $0.peerID == recipient.peerID }) else { continue }
                self.outbox[id]?.recipients[index] = recipient
            case .remove(let id): self.outbox.removeValue(forKey: id)
            case .noted(let ids, let sender): for id in ids { self.receipts[sender]?.remove(id) }
            }
        }
    }

    mutating func deliver(_ messages: [InboxMessage], at wall: WallTime) -> [DeliveryOutcome] {
        messages.map { message in
            let key = Key(sender: message.senderID, id: message.id)
            if message.isResumed { self.refusing[message.conversation] = nil }
            if message.followsRefusal, self.refusing[message.conversation] == nil { self.refusing[message.conversation] = .storage }
            if self.inbox[key] != nil { return .duplicate }
            if let refusal = self.refusing[message.conversation] { return .refused(refusal) }
            guard self.unread < self.limit else {
                self.refusing[message.conversation] = .inboxFull
                return .refused(.inboxFull)
            }
            self.inbox[key] = (message.body, false, message.group != nil)
            self.unread += 1
            return .stored(
                Message(
                    id: message.id, direction: .incoming, senderID: message.senderID, senderName: message.senderName,
                    contentType: message.contentType, body: message.body, mode: .reliable, sent: message.sent, received: wall,
                    readState: .unread, recipients: [], group: message.group, inReplyTo: message.inReplyTo))
        }
    }

    /// Refuses messages after a failed write, so that no later message overtakes them.
    mutating func refuse(_ messages: [InboxMessage]) { for message in messages { self.refusing[message.conversation] = .storage } }

    /// Marks the oldest unread messages read. Returns those whose senders want receipts, by sender.
    mutating func read(_ count: Int, receiptsFor wants: (PeerID) -> Bool) -> OrderedDictionary<PeerID, [MessageID]> {
        var told: OrderedDictionary<PeerID, [MessageID]> = [:]
        var left = count
        for (key, message) in self.inbox where !message.isRead && left > 0 {
            left -= 1
            self.inbox[key]?.isRead = true
            self.unread -= 1
            guard wants(key.sender) else { continue }
            self.receipts[key.sender, default: []].append(key.id)
            told[key.sender, default: []].append(key.id)
        }
        return told
    }

    /// Ends the session with a peer: it gets no more receipts, except for its messages to groups.
    mutating func endSession(with peer: PeerID) {
        self.receipts[peer]?.removeAll { self.inbox[Key(sender: peer, id: $0)]?.isOfGroup != true }
    }
}
