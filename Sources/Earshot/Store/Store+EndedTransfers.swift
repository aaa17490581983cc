internal import EarshotWire
internal import FoundationEssentials

/// What is remembered of transfers whose rows are gone.
extension Store {
    /// Within a transaction; the oldest of that peer's give way.
    func put(_ ended: EndedTransfer) throws(SQLiteError) {
        let peer = SQLiteValue.blob(ended.peerID.bytes)
        try self.database.run(
            "INSERT OR REPLACE INTO ended_transfers (id, peer_id, error, message, ended_at) VALUES (?, ?, ?, ?, ?)",
            [
                .blob(ended.id.bytes), peer, Self.optional(ended.error?.rawValue), .text(ended.message),
                .integer(Self.milliseconds(ended.endedAt.date)),
            ])
        try self.database.run(
            """
            DELETE FROM ended_transfers WHERE peer_id = ?1 AND place <=
                (SELECT place FROM ended_transfers WHERE peer_id = ?1 ORDER BY place DESC LIMIT 1 OFFSET \(EarshotLimits.rememberedTransfers))
            """, [peer])
    }

    /// Oldest first.
    func loadEndedTransfers() throws(SQLiteError) -> [EndedTransfer] {
        try self.database.query(
            "SELECT id, peer_id, error, message, ended_at FROM ended_transfers ORDER BY place"
        ) { row throws(SQLiteError) in
            EndedTransfer(
                id: try Self.wireID(row, 0), peerID: try Self.peerID(row, 1), error: row.isNull(2) ? nil : try Self.value(row, 2),
                message: row.text(3), endedAt: WallTime(Self.date(row.integer(4))))
        }
    }

    /// Their transfers ended with the session: no peer comes back to them.
    func dropEndedTransfers(of peer: PeerID) throws(SQLiteError) {
        try self.database.run("DELETE FROM ended_transfers WHERE peer_id = ?", [.blob(peer.bytes)])
    }
}
