internal import CSQLite
internal import EarshotWire
internal import NIOCore

/// Groups, whose records are stored in their wire format.
extension Store {
    /// Stores a group within a transaction. Its existing records are kept.
    func put(_ group: StoredGroup) throws(SQLiteError) {
        try self.database.run(
            """
            INSERT INTO groups (id, charter, is_over) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET charter = excluded.charter, is_over = excluded.is_over
            """,
            [.blob(group.id.bytes), .buffer(try Self.encoded(.charter(group.charter))), .integer(group.isOver ? 1 : 0)])
        for record in group.records { try self.put(record, of: group.id) }
    }

    /// Stores a record within a transaction.
    func put(_ record: GroupRecord, of group: GroupID) throws(SQLiteError) {
        try self.database.run(
            "INSERT OR REPLACE INTO group_records (group_id, hash, record) VALUES (?, ?, ?)",
            [.blob(group.bytes), .blob(record.hash(in: group).bytes), .buffer(try Self.encoded(record))])
    }

    private static func encoded(_ record: GroupRecord) throws(SQLiteError) -> ByteBuffer {
        var buffer = ByteBuffer()
        do throws(WireError) {
            try record.encode(into: &buffer)
        } catch {
            throw SQLiteError(code: SQLITE_MISMATCH, message: "a record of a group cannot be written: \(error)")
        }
        return buffer
    }

    func loadGroups() throws(SQLiteError) -> [StoredGroup] {
        var groups = try self.database.query("SELECT charter, is_over FROM groups ORDER BY id") { row throws(SQLiteError) -> StoredGroup in
            guard case .charter(let charter) = try Self.record(row, 0) else { throw SQLiteError.damaged("a group's charter") }
            return StoredGroup(charter: charter, records: [], isOver: row.integer(1) != 0)
        }
        for index in groups.indices {
            groups[index].records = try self.database.query(
                "SELECT record FROM group_records WHERE group_id = ? ORDER BY hash", [.blob(groups[index].id.bytes)]
            ) { row throws(SQLiteError) in try Self.record(row, 0) }
        }
        return groups
    }

    private static func record(_ row: SQLiteStatement, _ column: CInt) throws(SQLiteError) -> GroupRecord {
        do throws(WireError) {
            return try GroupRecord(decoding: row.buffer(column))
        } catch {
            throw SQLiteError.damaged("a record of a group")
        }
    }
}
