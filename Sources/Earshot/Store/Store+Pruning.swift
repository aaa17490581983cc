package import FoundationEssentials

internal import EarshotWire

extension Store {
    /// Deletes messages that were read before `readBefore`, and ids that were remembered too long. Returns the number of deleted messages.
    /// Both times are those of the running clock.
    ///
    /// Each transaction deletes at most a thousand messages, so that deliveries can run in between.
    @discardableResult
    package func prune(readBefore: Date, now: Date) async throws(EarshotError) -> Int {
        var total = 0
        while true {
            let count = try self.pruneSome(readBefore: readBefore, now: now)
            total += count
            if count == 0 { break }
            await Task.yield()
        }
        try self.attempt { () throws(SQLiteError) in
            try self.database.run(
                "DELETE FROM remembered WHERE received_at < ?", [.integer(Self.milliseconds(now) - InboxLimits.rememberedSeconds * 1000)])
            self.remembered = try Self.countRemembered(self.database)
            try self.database.run(
                "DELETE FROM ended_transfers WHERE ended_at < ?", [.integer(Self.milliseconds(now) - InboxLimits.rememberedSeconds * 1000)])
        }
        return total
    }

    private func pruneSome(readBefore: Date, now: Date) throws(EarshotError) -> Int {
        let usage = self.usage
        let remembered = self.remembered
        do {
            return try self.attempt { () throws(SQLiteError) in
                try self.database.transaction { () throws(SQLiteError) in try self.forget(readBefore: readBefore, limit: 1000, at: now) }
            }
        } catch {
            self.usage = usage
            self.remembered = remembered
            throw error
        }
    }

    /// Deletes the messages that were read first (before `readBefore`, if given), and remembers their ids. Must run within a transaction.
    func forget(readBefore: Date?, limit: Int, at now: Date) throws(SQLiteError) -> Int {
        let rows = try self.database.query(
            """
            SELECT place, sender, id, weight FROM messages INDEXED BY messages_read
            WHERE read_at IS NOT NULL AND read_at < ? ORDER BY read_at, place LIMIT ?
            """, [.integer(readBefore.map { Self.milliseconds($0) } ?? .max), .integer(Int64(limit))]
        ) { row throws(SQLiteError) in
            Forgotten(
                place: row.integer(0), sender: try Self.peerID(row, 1), id: row.bytes(2), weight: UInt64(clamping: row.integer(3)))
        }
        for row in rows {
            try self.database.run("DELETE FROM messages WHERE place = ?", [.integer(row.place)])
            try self.database.run(
                "INSERT OR IGNORE INTO remembered (sender, id, received_at) VALUES (?, ?, ?)",
                [.blob(row.sender.storedBytes), .blob(row.id), .integer(Self.milliseconds(now))])
            self.usage.read.remove(row.weight)
            try self.countOneMore(of: row.sender)
        }
        return rows.count
    }

    private struct Forgotten {
        let place: Int64
        let sender: PeerID
        let id: [UInt8]
        let weight: UInt64
    }

    private func countOneMore(of sender: PeerID) throws(SQLiteError) {
        let count = (self.remembered[sender] ?? 0) + 1
        guard count > InboxLimits.rememberedPerSender else {
            self.remembered[sender] = count
            return
        }
        try self.database.run(
            "DELETE FROM remembered WHERE place = (SELECT min(place) FROM remembered WHERE sender = ?)", [.blob(sender.storedBytes)])
    }

    static func countRemembered(_ database: SQLiteDatabase) throws(SQLiteError) -> [PeerID: Int] {
        let rows = try database.query("SELECT sender, count(*) FROM remembered GROUP BY sender") { row throws(SQLiteError) in
            (try Self.peerID(row, 0), Int(row.integer(1)))
        }
        return Dictionary(rows) { $0 + $1 }
    }

    static func countUsage(_ database: SQLiteDatabase) throws(SQLiteError) -> InboxUsage {
        var usage = InboxUsage()
        let rows = try database.query(
            "SELECT sender, read_at IS NULL, count(*), sum(weight) FROM messages GROUP BY 1, 2"
        ) { row throws(SQLiteError) in
            (
                sender: try Self.peerID(row, 0), isUnread: row.integer(1) != 0, count: Int(row.integer(2)),
                weight: UInt64(clamping: row.integer(3))
            )
        }
        for row in rows {
            if row.isUnread {
                usage.unread.add(row.weight, count: row.count)
                usage.unreadBySender[row.sender, default: InboxUsage.Total()].add(row.weight, count: row.count)
            } else {
                usage.read.add(row.weight, count: row.count)
            }
        }
        return usage
    }
}
