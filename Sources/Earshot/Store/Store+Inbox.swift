package import EarshotWire
package import FoundationEssentials

internal import NIOCore
internal import OrderedCollections

extension Store {
    /// Commits a batch of messages in one transaction; the outcomes are in the batch's order.
    ///
    /// What is `.stored` is on disk, after everything that was stored before it. Throws `no-space` or `storage` with nothing changed.
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
            // None of them was kept, so nothing may overtake them.
            self.refusing = refusing
            for message in batch { self.refuse(message.conversation, .storage) }
            throw error
        }
    }

    /// Nothing that comes in the conversation is taken until its sender knows. New keys, and sessions with them, cost a stranger nothing.
    private func refuse(_ conversation: Conversation, _ refusal: DeliveryOutcome.Refusal) {
        self.refusing[conversation] = refusal
        if self.refusing.count > EarshotLimits.refusedConversations { self.refusing.removeFirst() }
    }

    /// One that is there already is left as it is.
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
        // Looked for only where the insertion will not find out, or there is none.
        if !hasRoom || refusal != nil || self.remembered[message.senderID] != nil, try self.isKnown(message) { return .duplicate }
        if let refusal { return .refused(refusal) }
        guard hasRoom else {
            self.refuse(conversation, .inboxFull)
            return .refused(.inboxFull)
        }
        let added = try self.database.run(insertion) { statement throws(SQLiteError) in
            try statement.bind(1, message.senderID.bytes)
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
        self.usage.delivered(weight, from: message.senderID)
        return .stored(
            Message(
                id: message.id, direction: .incoming, senderID: message.senderID, senderName: message.senderName,
                contentType: message.contentType, body: message.body, mode: .reliable, sent: message.sent,
                received: WallTime(receivedAt), readState: .unread, recipients: [], group: message.group))
    }

    private func isKnown(_ message: InboxMessage) throws(SQLiteError) -> Bool {
        try self.database.integer(
            """
            SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND sender = ?2)
                OR EXISTS (SELECT 1 FROM remembered WHERE id = ?1 AND sender = ?2)
            """, [.blob(message.id.bytes), .blob(message.senderID.bytes)]) != 0
    }

    private static func weight(_ message: InboxMessage) -> UInt64 {
        UInt64(message.body.readableBytes + message.contentType.utf8.count + message.senderName.utf8.count + EarshotLimits.messageOverhead)
    }

    /// Messages of the inbox, oldest first; those of one state, one sender or one group where given, behind a place of the inbox, at most `limit`.
    ///
    /// Their bodies have `EarshotLimits.messagePageBytes` at most, or there is one: what does not fit is for the next page.
    package func messagePage(
        state: Message.ReadState?, from sender: PeerID?, in group: GroupID? = nil, after place: Int64 = 0, limit: Int
    ) throws(EarshotError) -> MessagePage {
        guard limit > 0 else { return MessagePage(messages: [], next: nil) }
        // Each form is named its index: the planner would rather walk the whole table in order than use a partial one.
        var source =
            switch state {
            case .unread: "messages INDEXED BY messages_unread WHERE read_at IS NULL"
            case .read: "messages WHERE read_at IS NOT NULL"
            case nil: "messages WHERE TRUE"
            }
        var values: [SQLiteValue] = []
        if let sender {
            source += " AND sender = ?"
            values.append(.blob(sender.bytes))
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
                "\(Self.columns), place FROM \(source)", values,
                until: { row in
                    isCut = count == limit || count > 0 && row.size(7) > EarshotLimits.messagePageBytes - bytes
                    return isCut
                }
            ) { row throws(SQLiteError) in
                count += 1
                bytes += row.size(7)
                last = row.integer(10)
                return try Self.message(row)
            }
            return MessagePage(messages: messages, next: isCut ? last : nil)
        }
    }

    private static let columns = "SELECT sender, id, sent_at, received_at, read_at, sender_name, content_type, body, group_id, group_name"

    /// The messages of that id: one, or several when several senders used it, oldest first.
    package func messages(id: MessageID, from sender: PeerID?) throws(EarshotError) -> [Message] {
        try self.attempt { () throws(SQLiteError) in try self.find(id, from: sender) }
    }

    private func find(_ id: MessageID, from sender: PeerID?) throws(SQLiteError) -> [Message] {
        guard let sender else { return try self.messages("messages WHERE id = ? ORDER BY place", [.blob(id.bytes)]) }
        return try self.messages("messages WHERE id = ? AND sender = ? ORDER BY place", [.blob(id.bytes), .blob(sender.bytes)])
    }

    private func messages(_ source: String, _ values: [SQLiteValue]) throws(SQLiteError) -> [Message] {
        try self.database.query("\(Self.columns) FROM \(source)", values) { row throws(SQLiteError) in try Self.message(row) }
    }

    private static func message(_ row: SQLiteStatement) throws(SQLiteError) -> Message {
        Message(
            id: try Self.wireID(row, 1), direction: .incoming, senderID: try Self.peerID(row, 0), senderName: row.text(5),
            contentType: row.text(6), body: row.buffer(7), mode: .reliable, sent: Self.time(row.integer(2)),
            received: Self.time(row.integer(3)), readState: row.isNull(4) ? .unread : .read, recipients: [],
            group: row.isNull(8) ? nil : GroupLabel(id: try Self.wireID(row, 8), name: row.text(9)))
    }

    /// How many messages are unread.
    package func unreadCount() -> Int { self.usage.unread.count }

    /// Marks a message read and returns it as it is then; `nil` when there is none. The time, which decides when it is
    /// pruned, is the running clock's.
    ///
    /// With `receipt`, that it was read is kept for the sender too, in the same transaction. Throws `conflict` when several senders used
    /// the id and none is named.
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

    /// Which message is meant: by the id alone, or also by who sent it.
    package struct MessageKey: Hashable, Sendable {
        let id: MessageID
        let sender: PeerID?

        /// A value from its parts.
        package init(id: MessageID, sender: PeerID?) {
            self.id = id
            self.sender = sender
        }
    }

    /// Marks messages read in one transaction, and returns those that were unread, by sender. That they were read is kept for the senders
    /// in `receiptsFor`. What is not there is passed over.
    ///
    /// Throws `conflict`, with nothing changed, when several senders used an id and none is named.
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
                        // Named twice, it is marked once; and what made room for another is gone.
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
        let sender = key.sender.map { SQLiteValue.blob($0.bytes) } ?? .null
        return try self.database.query(
            "SELECT sender FROM messages WHERE id = ?1 AND (?2 IS NULL OR sender = ?2) AND read_at IS NULL", [.blob(key.id.bytes), sender]
        ) { row throws(SQLiteError) in try Self.peerID(row, 0) }
    }

    private func mark(_ id: MessageID, of sender: PeerID, at time: Date) throws(SQLiteError) {
        let key: [SQLiteValue] = [.blob(id.bytes), .blob(sender.bytes)]
        let weight = try self.database.integer("SELECT weight FROM messages WHERE id = ? AND sender = ?", key)
        try self.database.run(
            "UPDATE messages SET read_at = ? WHERE id = ? AND sender = ?", [.integer(Self.milliseconds(time))] + key)
        self.usage.wasRead(UInt64(clamping: weight), from: sender)
        while self.usage.hasExcess(limits: self.limits) {
            guard try self.forget(readBefore: nil, limit: 1, at: time) > 0 else { return }
        }
    }
}
