package import EarshotWire
package import FoundationEssentials

internal import NIOCore
internal import OrderedCollections

extension Store {
    /// Commits a batch of messages in one transaction. The outcomes are in the order of the batch.
    ///
    /// A message with the outcome `.stored` is on disk, after all earlier stored messages.
    ///
    /// - Throws: `no-space` or `storage`, with nothing changed.
    package func deliver(_ batch: [InboxMessage], receivedAt: Date) throws(EarshotError) -> [DeliveryOutcome] {
        guard !batch.isEmpty else { return [] }
        let usage = self.usage
        let refusing = self.refusing
        do {
            return try self.attempt { () throws(SQLiteError) in
                try self.database.transaction { () throws(SQLiteError) in
                    let insertion = try self.database.prepared(Self.insertion)
                    var outcomes: [DeliveryOutcome] = []
                    outcomes.reserveCapacity(batch.count)
                    for message in batch { outcomes.append(try self.deliver(message, receivedAt: receivedAt, insertion)) }
                    return outcomes
                }
            }
        } catch {
            self.usage = usage
            // No message of the batch was stored, so no later message may overtake them.
            self.refusing = refusing
            for message in batch { self.refuse(message.conversation, .storage) }
            throw error
        }
    }

    /// Refuses all messages of the conversation until its sender knows of the refusal. The number of entries is limited, because new keys,
    /// and sessions with them, cost a stranger nothing.
    private func refuse(_ conversation: Conversation, _ refusal: DeliveryOutcome.Refusal) {
        self.refusing[conversation] = refusal
        if self.refusing.count > EarshotLimits.refusedConversations { self.refusing.removeFirst() }
    }

    /// A message that already exists is not changed.
    private static let insertion = """
        INSERT OR IGNORE INTO messages
            (sender, id, weight, sent_at, received_at, sender_name, content_type, body, group_id, group_name)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """

    private func deliver(
        _ message: InboxMessage, receivedAt: Date, _ insertion: SQLiteStatement
    ) throws(SQLiteError) -> DeliveryOutcome {
        let conversation = message.conversation
        if message.isResumed { self.refusing[conversation] = nil }
        if message.followsRefusal, self.refusing[conversation] == nil { self.refuse(conversation, .storage) }
        let weight = Self.weight(message)
        let hasRoom = self.usage.hasRoom(for: weight, from: message.senderID, limits: self.limits)
        let refusal = self.refusing[conversation]
        // Searched only if the insertion would not detect a duplicate, or if there will be no insertion.
        if !hasRoom || refusal != nil || self.remembered[message.senderID] != nil, try self.isKnown(message) { return .duplicate }
        if let refusal { return .refused(refusal) }
        guard hasRoom else {
            self.refuse(conversation, .inboxFull)
            return .refused(.inboxFull)
        }
        let added = try self.database.run(insertion) { statement throws(SQLiteError) in
            try statement.bind(1, message.senderID.storedBytes)
            try statement.bind(2, message.id.bytes)
            try statement.bind(3, Int64(clamping: weight))
            try statement.bind(4, message.sent.milliseconds)
            try statement.bind(5, Self.milliseconds(receivedAt))
            try statement.bind(6, message.senderName)
            try statement.bind(7, message.contentType)
            try statement.bind(8, message.body)
            if let group = message.group {
                try statement.bind(9, group.id.bytes)
                try statement.bind(10, group.name)
            } else {
                try statement.bindNull(9)
                try statement.bindNull(10)
            }
        }
        guard added > 0 else { return .duplicate }
        if let inReplyTo = message.inReplyTo, self.hasReplies {
            try self.database.run(
                "INSERT INTO replies (id, sender, in_reply_to) VALUES (?, ?, ?)",
                [.blob(message.id.bytes), .blob(message.senderID.storedBytes), .blob(inReplyTo.bytes)])
        }
        self.usage.delivered(weight, from: message.senderID)
        return .stored(
            Message(
                id: message.id, direction: .incoming, senderID: message.senderID, senderName: message.senderName,
                contentType: message.contentType, body: message.body, mode: .reliable, sent: message.sent,
                received: WallTime(receivedAt), readState: .unread, recipients: [], group: message.group, inReplyTo: message.inReplyTo))
    }

    private func isKnown(_ message: InboxMessage) throws(SQLiteError) -> Bool {
        try self.database.integer(
            """
            SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND sender = ?2)
                OR EXISTS (SELECT 1 FROM remembered WHERE id = ?1 AND sender = ?2)
            """, [.blob(message.id.bytes), .blob(message.senderID.storedBytes)]) != 0
    }

    private static func weight(_ message: InboxMessage) -> UInt64 {
        UInt64(message.body.readableBytes + message.contentType.utf8.count + message.senderName.utf8.count + EarshotLimits.messageOverhead)
    }

    /// Returns messages of the inbox, oldest first: of one state, one sender or one group if given, after a place of the inbox, at most
    /// `limit`.
    ///
    /// Their bodies have at most `EarshotLimits.messagePageBytes` together, unless there is only one message. The rest is for the next
    /// page.
    package func messagePage(
        state: Message.ReadState?, from sender: PeerID?, in group: GroupID? = nil, after place: Int64 = 0, limit: Int
    ) throws(EarshotError) -> MessagePage {
        guard limit > 0 else { return MessagePage(messages: [], next: nil) }
        // Each variant names its index, because the planner would otherwise scan the whole table in order instead of using a partial
        // index.
        var source =
            switch state {
            case .unread: "messages INDEXED BY messages_unread WHERE read_at IS NULL"
            case .read: "messages WHERE read_at IS NOT NULL"
            case nil: "messages WHERE TRUE"
            }
        var values: [SQLiteValue] = []
        if let sender {
            source += " AND sender = ?"
            values.append(.blob(sender.storedBytes))
        }
        if let group {
            source += " AND group_id = ?"
            values.append(.blob(group.bytes))
        }
        source += " AND place > ? ORDER BY place"
        values.append(.integer(place))
        return try self.attempt { () throws(SQLiteError) in
            var (bytes, last) = (0, place)
            var (count, isCut) = (0, false)
            let messages = try self.database.query(
                "\(self.columns), place FROM \(source)", values,
                until: { row in
                    isCut = count == limit || count > 0 && row.size(7) > EarshotLimits.messagePageBytes - bytes
                    return isCut
                }
            ) { row throws(SQLiteError) in
                count += 1
                bytes += row.size(7)
                last = row.integer(11)
                return try Self.message(row)
            }
            return MessagePage(messages: messages, next: isCut ? last : nil)
        }
    }

    private var columns: String {
        let reply =
            self.hasReplies ? "(SELECT in_reply_to FROM replies r WHERE r.id = messages.id AND r.sender = messages.sender)" : "NULL"
        return "SELECT sender, id, sent_at, received_at, read_at, sender_name, content_type, body, group_id, group_name, \(reply)"
    }

    /// Returns the messages with this id, oldest first. There are several if several senders used the id.
    package func messages(id: MessageID, from sender: PeerID?) throws(EarshotError) -> [Message] {
        try self.attempt { () throws(SQLiteError) in try self.find(id, from: sender) }
    }

    private func find(_ id: MessageID, from sender: PeerID?) throws(SQLiteError) -> [Message] {
        guard let sender else { return try self.messages("messages WHERE id = ? ORDER BY place", [.blob(id.bytes)]) }
        return try self.messages("messages WHERE id = ? AND sender = ? ORDER BY place", [.blob(id.bytes), .blob(sender.storedBytes)])
    }

    private func messages(_ source: String, _ values: [SQLiteValue]) throws(SQLiteError) -> [Message] {
        try self.database.query("\(self.columns) FROM \(source)", values) { row throws(SQLiteError) in try Self.message(row) }
    }

    private static func message(_ row: SQLiteStatement) throws(SQLiteError) -> Message {
        Message(
            id: try Self.wireID(row, 1), direction: .incoming, senderID: try Self.peerID(row, 0), senderName: row.text(5),
            contentType: row.text(6), body: row.buffer(7), mode: .reliable, sent: Self.time(row.integer(2)),
            received: Self.time(row.integer(3)), readState: row.isNull(4) ? .unread : .read, recipients: [],
            group: row.isNull(8) ? nil : GroupLabel(id: try Self.wireID(row, 8), name: row.text(9)),
            inReplyTo: row.isNull(10) ? nil : try Self.wireID(row, 10))
    }

    /// Returns the number of unread messages.
    package func unreadCount() -> Int { self.usage.unread.count }

    /// Marks a message read and returns its new state; `nil` if there is none. `time` is that of the running clock, and determines when
    /// the message is pruned.
    ///
    /// With `receipt`, a read receipt for the sender is stored in the same transaction.
    ///
    /// - Throws: `conflict` if several senders used the id and `sender` is `nil`.
    package func markRead(
        id: MessageID, from sender: PeerID?, at time: Date, receipt: Bool = false
    ) throws(EarshotError) -> Message? {
        let found = try self.messages(id: id, from: sender)
        guard found.count <= 1 else {
            throw EarshotError(.conflict, "\(found.count) senders used the message id \(id); name the sender")
        }
        guard let message = found.first, message.readState == .unread else { return found.first }
        let usage = self.usage
        let remembered = self.remembered
        let receipts = self.receipts
        do {
            try self.attempt { () throws(SQLiteError) in
                try self.database.transaction { () throws(SQLiteError) in
                    if receipt { try self.keepReceipt(message.id, for: message.senderID) }
                    try self.mark(message.id, of: message.senderID, at: time)
                }
            }
        } catch {
            self.receipts = receipts
            self.usage = usage
            self.remembered = remembered
            throw error
        }
        return message.read
    }

    /// The key of a message: its id, or its id and sender.
    package struct MessageKey: Hashable, Sendable {
        let id: MessageID
        let sender: PeerID?

        /// Creates a key from its parts.
        package init(id: MessageID, sender: PeerID?) {
            self.id = id
            self.sender = sender
        }
    }

    /// Marks messages read in one transaction, and returns those that were unread, by sender. Read receipts for the senders in
    /// `receiptsFor` are stored too. Missing messages are skipped.
    ///
    /// - Throws: `conflict`, with nothing changed, if several senders used an id and its key has no sender.
    package func markRead(
        _ keys: [MessageKey], receiptsFor told: Set<PeerID>, at time: Date
    ) throws(EarshotError) -> [PeerID: [MessageID]] {
        var unread: [(sender: PeerID, id: MessageID)] = []
        for key in keys {
            let senders = try self.attempt { () throws(SQLiteError) in try self.sendersOfUnread(key) }
            guard let sender = senders.first else { continue }
            guard senders.count == 1 else {
                throw EarshotError(.conflict, "\(senders.count) senders used the message id \(key.id); name the sender")
            }
            unread.append((sender, key.id))
        }
        guard !unread.isEmpty else { return [:] }
        let (usage, remembered, receipts) = (self.usage, self.remembered, self.receipts)
        do {
            return try self.attempt { () throws(SQLiteError) in
                try self.database.transaction { () throws(SQLiteError) in
                    var marked: [PeerID: [MessageID]] = [:]
                    for (sender, id) in unread {
                        // A repeated key is marked once. A message may also have been evicted by an earlier one of this loop.
                        guard try !self.sendersOfUnread(MessageKey(id: id, sender: sender)).isEmpty else { continue }
                        if told.contains(sender) { try self.keepReceipt(id, for: sender) }
                        try self.mark(id, of: sender, at: time)
                        marked[sender, default: []].append(id)
                    }
                    return marked
                }
            }
        } catch {
            (self.usage, self.remembered, self.receipts) = (usage, remembered, receipts)
            throw error
        }
    }

    private func sendersOfUnread(_ key: MessageKey) throws(SQLiteError) -> [PeerID] {
        let sender = key.sender.map { SQLiteValue.blob($0.storedBytes) } ?? .null
        return try self.database.query(
            "SELECT sender FROM messages WHERE id = ?1 AND (?2 IS NULL OR sender = ?2) AND read_at IS NULL", [.blob(key.id.bytes), sender]
        ) { row throws(SQLiteError) in try Self.peerID(row, 0) }
    }

    private func mark(_ id: MessageID, of sender: PeerID, at time: Date) throws(SQLiteError) {
        let key: [SQLiteValue] = [.blob(id.bytes), .blob(sender.storedBytes)]
        let weight = try self.database.integer("SELECT weight FROM messages WHERE id = ? AND sender = ?", key)
        try self.database.run(
            "UPDATE messages SET read_at = ? WHERE id = ? AND sender = ?", [.integer(Self.milliseconds(time))] + key)
        self.usage.wasRead(UInt64(clamping: weight), from: sender)
        while self.usage.hasExcess(limits: self.limits) {
            guard try self.forget(readBefore: nil, limit: 1, at: time) > 0 else { return }
        }
    }
}
