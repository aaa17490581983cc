internal import CSQLite
internal import EarshotWire
internal import FoundationEssentials

/// Resources and their transfers.
extension Store {
    func put(_ resource: Resource) throws(SQLiteError) {
        // Not INSERT OR REPLACE, which would delete the row first, and its transfer with it.
        try self.database.run(
            """
            INSERT INTO resources (id, direction, peer_id, peer_name, name, kind, size, transferred, state, digest, path,
                error, error_message, created_at, completed_at, in_spool, group_id, group_name, share_id)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET (direction, peer_id, peer_name, name, kind, size, transferred, state, digest, path,
                error, error_message, created_at, completed_at, in_spool, group_id, group_name, share_id) = (excluded.direction, excluded.peer_id, excluded.peer_name,
                excluded.name, excluded.kind, excluded.size, excluded.transferred, excluded.state, excluded.digest, excluded.path,
                excluded.error, excluded.error_message, excluded.created_at, excluded.completed_at, excluded.in_spool,
                excluded.group_id, excluded.group_name, excluded.share_id)
            """,
            [
                .blob(resource.id.bytes), .text(resource.direction.rawValue), .blob(resource.peerID.storedBytes), .text(resource.peerName),
                .text(resource.name), .text(resource.kind.rawValue), .integer(Int64(clamping: resource.size)),
                .integer(Int64(clamping: resource.transferred)), .text(resource.state.rawValue), Self.optional(resource.digest),
                Self.optional(resource.path), Self.optional(resource.error?.rawValue), Self.optional(resource.errorMessage),
                .integer(Self.milliseconds(resource.createdAt)),
                resource.completedAt.map { .integer(Self.milliseconds($0)) } ?? .null, .integer(resource.inSpool ? 1 : 0),
                resource.group.map { .blob($0.id.bytes) } ?? .null, Self.optional(resource.group?.name),
                resource.shareID.map { .blob($0.bytes) } ?? .null,
            ])
        if let folder = resource.folder { try self.put(folder, of: resource.id) }
    }

    static func optional(_ text: String?) -> SQLiteValue { text.map { .text($0) } ?? .null }

    func loadResources() throws(SQLiteError) -> [Resource] {
        let folders = try self.loadFolders()
        return try self.database.query(
            """
            SELECT id, direction, peer_id, peer_name, name, kind, size, transferred, state, digest, path, error, error_message,
                created_at, completed_at, in_spool, group_id, group_name, share_id FROM resources ORDER BY created_at, id
            """
        ) { row throws(SQLiteError) in
            let id: ResourceID = try Self.wireID(row, 0)
            return Resource(
                id: id, direction: try Self.value(row, 1), peerID: try Self.peerID(row, 2), peerName: row.text(3),
                group: row.isNull(16) ? nil : GroupLabel(id: try Self.wireID(row, 16), name: row.text(17)),
                shareID: row.isNull(18) ? nil : try Self.wireID(row, 18), name: row.text(4), folder: folders[id],
                kind: try Self.value(row, 5),
                size: UInt64(clamping: row.integer(6)),
                transferred: UInt64(clamping: row.integer(7)), state: try Self.value(row, 8), digest: Self.optionalText(row, 9),
                path: Self.optionalText(row, 10), error: Self.optionalText(row, 11).flatMap { EarshotError.Code(rawValue: $0) },
                errorMessage: Self.optionalText(row, 12), created: WallTime(Self.date(row.integer(13))),
                completed: row.isNull(14) ? nil : WallTime(Self.date(row.integer(14))), inSpool: row.integer(15) != 0)
        }
    }

    private static func optionalText(_ row: SQLiteStatement, _ column: CInt) -> String? { row.isNull(column) ? nil : row.text(column) }

    func put(_ transfer: StoredTransfer) throws(SQLiteError) {
        // If the resource is gone, its transfer cannot be resumed. `is_offered` is not used: every outgoing transfer may have been
        // offered.
        try self.database.run(
            """
            INSERT OR REPLACE INTO transfers (id, source, stamp, digest, is_queued, is_taken, is_offered, expires_at)
            SELECT ?, ?, ?, ?, ?, ?, 0, ? WHERE EXISTS (SELECT 1 FROM resources WHERE id = ?)
            """,
            [
                .blob(transfer.id.bytes), .text(Self.source(transfer)), .text(transfer.stamp), .integer(Int64(transfer.digest.rawValue)),
                .integer(transfer.isQueued ? 1 : 0), .integer(transfer.isTaken ? 1 : 0),
                .integer(Self.milliseconds(transfer.expiry.date)), .blob(transfer.id.bytes),
            ])
        // Replacing the row has removed its limit.
        guard let limit = transfer.limit, self.hasTransferLimits else { return }
        try self.database.run(
            "INSERT OR REPLACE INTO transfer_limits (id, rate) SELECT id, ? FROM transfers WHERE id = ?",
            [.integer(Int64(clamping: limit)), .blob(transfer.id.bytes)])
    }

    /// After a restart, a file that a caller held open is gone like a body. Earlier versions know no other word for it.
    private static func source(_ transfer: StoredTransfer) -> String {
        (transfer.source == .held ? StoredTransfer.Source.body : transfer.source).rawValue
    }

    func loadTransfers() throws(SQLiteError) -> [StoredTransfer] {
        let limits = try self.loadTransferLimits()
        return try self.database.query(
            "SELECT id, source, stamp, digest, is_queued, is_taken, expires_at FROM transfers ORDER BY id"
        ) { row throws(SQLiteError) in
            guard let digest = ResourceEnd.DigestAlgorithm(rawValue: UInt8(clamping: row.integer(3))) else {
                throw SQLiteError.damaged("a transfer's digest")
            }
            let id: ResourceID = try Self.wireID(row, 0)
            return StoredTransfer(
                id: id, source: try Self.value(row, 1), stamp: row.text(2), digest: digest,
                isQueued: row.integer(4) != 0, isTaken: row.integer(5) != 0, expiry: WallTime(Self.date(row.integer(6))),
                limit: limits[id])
        }
    }

    private func loadTransferLimits() throws(SQLiteError) -> [ResourceID: UInt64] {
        guard self.hasTransferLimits else { return [:] }
        let rows = try self.database.query("SELECT id, rate FROM transfer_limits") { row throws(SQLiteError) -> (ResourceID, UInt64) in
            (try Self.wireID(row, 0), UInt64(clamping: row.integer(1)))
        }
        return Dictionary(rows) { first, _ in first }
    }
}
