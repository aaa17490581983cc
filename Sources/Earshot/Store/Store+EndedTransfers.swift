internal import EarshotWire
internal import FoundationEssentials

/// Records of transfers whose rows were removed.
extension Store {
    /// Stores a record within a transaction. The oldest records of that peer are evicted.
    func put(_ ended: EndedTransfer) throws(SQLiteError) {
        let peer = SQLiteValue.blob(ended.peerID.storedBytes)
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

    /// Loads the records, oldest first.
    func loadEndedTransfers() throws(SQLiteError) -> [EndedTransfer] {
        try self.database.query(
            "SELECT id, peer_id, error, message, ended_at FROM ended_transfers ORDER BY place"
        ) { row throws(SQLiteError) in
            EndedTransfer(
                id: try Self.wireID(row, 0), peerID: try Self.peerID(row, 1), error: row.isNull(2) ? nil : try Self.value(row, 2),
                message: row.text(3), endedAt: WallTime(Self.date(row.integer(4))))
        }
    }

    /// Deletes the records of a peer whose session has ended. The peer can no longer ask about these transfers.
    func dropEndedTransfers(of peer: PeerID) throws(SQLiteError) {
        try self.database.run("DELETE FROM ended_transfers WHERE peer_id = ?", [.blob(peer.storedBytes)])
    }
}
