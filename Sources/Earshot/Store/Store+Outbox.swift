package import EarshotWire
package import NIOCore

extension Store {
    /// Commits changes of the outbox in order, all or none.
    package func change(_ changes: [OutboxChange]) throws(EarshotError) {
        guard !changes.isEmpty else { return }
        try self.transaction { () throws(SQLiteError) in
            for change in changes { try self.change(change) }
        }
    }

    private func change(_ change: OutboxChange) throws(SQLiteError) {
        switch change {
        case .add(let message): try self.add(message)
        case .settle(let id, let recipient):
            try self.database.run(
                """
                UPDATE outbox_recipients SET status = ?, error = ?, error_message = ?
                WHERE peer_id = ? AND message = (SELECT place FROM outbox WHERE id = ?)
                """,
                [
                    .text(recipient.status.rawValue), recipient.error.map { .text($0.rawValue) } ?? .null,
                    recipient.errorMessage.map { .text($0) } ?? .null, .blob(recipient.peerID.storedBytes), .blob(id.bytes),
                ])
        case .remove(let id): try self.database.run("DELETE FROM outbox WHERE id = ?", [.blob(id.bytes)])
        case .noted(let ids, let sender):
            for id in ids {
                self.receipts -= try self.database.run(
                    "DELETE FROM receipts WHERE sender = ? AND id = ?", [.blob(sender.storedBytes), .blob(id.bytes)])
            }
        }
    }

    private func add(_ message: QueuedMessage) throws(SQLiteError) {
        try self.database.run("DELETE FROM outbox WHERE id = ?", [.blob(message.id.bytes)])
        try self.database.run(
            "INSERT INTO outbox (id, fingerprint, sent_at, deadline, content_type, body, group_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                .blob(message.id.bytes), .blob(message.fingerprint), .integer(message.sent.milliseconds),
                .integer(message.deadline.milliseconds), .text(message.contentType), .buffer(message.body),
                message.group.map { .blob($0.bytes) } ?? .null,
            ])
        if let inReplyTo = message.inReplyTo, self.hasReplies {
            try self.database.run(
                "INSERT INTO outbox_replies (id, in_reply_to) VALUES (?, ?)", [.blob(message.id.bytes), .blob(inReplyTo.bytes)])
        }
        let place = try self.database.integer("SELECT place FROM outbox WHERE id = ?", [.blob(message.id.bytes)])
        for (index, recipient) in message.recipients.enumerated() {
            try self.database.run(
                "INSERT INTO outbox_recipients (message, place, peer_id, status) VALUES (?, ?, ?, ?)",
                [.integer(place), .integer(Int64(index)), .blob(recipient.peerID.storedBytes), .text(recipient.status.rawValue)])
        }
    }

    /// Returns every waiting message, and the finished ones that are still remembered, in the order of submission.
    package func outbox() throws(EarshotError) -> [QueuedMessageRow] {
        try self.attempt { () throws(SQLiteError) in
            let reply = self.hasReplies ? "(SELECT in_reply_to FROM outbox_replies r WHERE r.id = outbox.id)" : "NULL"
            var rows = try self.database.query(
                "SELECT id, content_type, length(body), fingerprint, sent_at, deadline, place, group_id, \(reply) FROM outbox ORDER BY place"
            ) { row throws(SQLiteError) in
                (
                    place: row.integer(6),
                    message: QueuedMessageRow(
                        id: try Self.wireID(row, 0), contentType: row.text(1), size: Int(clamping: row.integer(2)),
                        fingerprint: row.bytes(3), sent: Self.time(row.integer(4)), deadline: Self.time(row.integer(5)), recipients: [],
                        group: row.isNull(7) ? nil : try Self.wireID(row, 7), inReplyTo: row.isNull(8) ? nil : try Self.wireID(row, 8))
                )
            }
            for index in rows.indices {
                rows[index].message.recipients = try self.database.query(
                    "SELECT peer_id, status, error, error_message FROM outbox_recipients WHERE message = ? ORDER BY place",
                    [.integer(rows[index].place)]
                ) { row throws(SQLiteError) in
                    guard let status = Message.Status(rawValue: row.text(1)) else { throw SQLiteError.damaged("the word \(row.text(1))") }
                    return Message.Recipient(
                        peerID: try Self.peerID(row, 0), status: status,
                        error: row.isNull(2) ? nil : EarshotError.Code(rawValue: row.text(2)),
                        errorMessage: row.isNull(3) ? nil : row.text(3))
                }
            }
            return rows.map(\.message)
        }
    }

    /// Returns the bodies of messages of the outbox, except missing ones.
    package func outboxBodies(_ ids: [MessageID]) throws(EarshotError) -> [MessageID: ByteBuffer] {
        try self.attempt { () throws(SQLiteError) in
            var bodies: [MessageID: ByteBuffer] = [:]
            for id in ids {
                let rows = try self.database.query("SELECT body FROM outbox WHERE id = ?", [.blob(id.bytes)]) { row in row.buffer(0) }
                bodies[id] = rows.first
            }
            return bodies
        }
    }

    // MARK: Receipts

    /// Returns the messages of the sender that were read here and whose receipts it has not acknowledged, oldest first.
    package func receipts(for sender: PeerID) throws(EarshotError) -> [MessageID] {
        try self.attempt { () throws(SQLiteError) in
            try self.database.query("SELECT id FROM receipts WHERE sender = ? ORDER BY place", [.blob(sender.storedBytes)]) {
                row throws(SQLiteError) in try Self.wireID(row, 0)
            }
        }
    }

    /// Stores a read receipt until its sender has acknowledged it. The oldest one is evicted. Must run within a transaction.
    func keepReceipt(_ id: MessageID, for sender: PeerID) throws(SQLiteError) {
        self.receipts += try self.database.run(
            "INSERT OR IGNORE INTO receipts (sender, id) VALUES (?, ?)", [.blob(sender.storedBytes), .blob(id.bytes)])
        guard self.receipts > EarshotLimits.pendingReceipts else { return }
        self.receipts -= try self.database.run("DELETE FROM receipts WHERE place = (SELECT min(place) FROM receipts)")
    }

    /// Deletes the receipts for a peer whose session ends, except those of its group messages. Must run within a transaction.
    func dropReceipts(of peer: PeerID) throws(SQLiteError) {
        self.receipts -= try self.database.run(
            """
            DELETE FROM receipts WHERE sender = ?1 AND NOT EXISTS
                (SELECT 1 FROM messages WHERE id = receipts.id AND sender = ?1 AND group_id IS NOT NULL)
            """, [.blob(peer.storedBytes)])
    }
}
