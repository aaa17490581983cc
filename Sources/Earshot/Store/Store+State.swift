internal import CSQLite
internal import EarshotWire
internal import FoundationEssentials

extension Store {
    /// Loads the persistent state for a start.
    package func load() throws(EarshotError) -> StoredState {
        try self.attempt { () throws(SQLiteError) in
            StoredState(
                peers: try self.loadPeers() + self.loadDevices(), sessions: try self.loadSessions(), resources: try self.loadResources(),
                transfers: try self.loadTransfers(), endedTransfers: try self.loadEndedTransfers(), groups: try self.loadGroups())
        }
    }

    /// Commits the changes in order, all or none.
    package func apply(_ changes: [StoreOperation]) throws(EarshotError) {
        guard !changes.isEmpty else { return }
        try self.transaction { () throws(SQLiteError) in
            for change in changes { try self.apply(change) }
        }
    }

    private func apply(_ change: StoreOperation) throws(SQLiteError) {
        switch change {
        case .putPeer(let peer): if peer.id.kind == .localsend { try self.put(device: peer) } else { try self.put(peer) }
        case .removePeer(let id) where id.kind == .localsend:
            try self.database.run("DELETE FROM devices WHERE id = ?", [.blob(id.storedBytes)])
        case .removePeer(let id):
            try self.database.run("DELETE FROM peers WHERE id = ?", [.blob(id.bytes)])
            try self.put(nil, for: id)
        case .putSession(let session): try self.put(session)
        case .removeSession(let peer):
            try self.removeSession(with: peer)
            try self.database.run("DELETE FROM peers WHERE id = ? AND decided = 0", [.blob(peer.bytes)])
        case .putResource(let resource): try self.put(resource)
        case .removeResource(let id): try self.database.run("DELETE FROM resources WHERE id = ?", [.blob(id.bytes)])
        case .putTransfer(let transfer): try self.put(transfer)
        case .removeTransfer(let id): try self.database.run("DELETE FROM transfers WHERE id = ?", [.blob(id.bytes)])
        case .putEndedTransfer(let ended): try self.put(ended)
        case .putGroup(let group): try self.put(group)
        case .removeGroup(let id): try self.database.run("DELETE FROM groups WHERE id = ?", [.blob(id.bytes)])
        case .putGroupRecord(let record, let group): try self.put(record, of: group)
        case .removeGroupRecord(let hash, let group):
            try self.database.run(
                "DELETE FROM group_records WHERE group_id = ? AND hash = ?", [.blob(group.bytes), .blob(hash.bytes)])
        }
    }

    private func put(_ peer: StoredPeer) throws(SQLiteError) {
        try self.database.run(
            """
            INSERT OR REPLACE INTO peers (id, name, trust, spoken_tls, proven, decided, trusted_until, verified, first_seen, last_seen)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                .blob(peer.id.bytes), .text(peer.name), .text(peer.trust.rawValue), .integer(peer.isTLSPinned ? 1 : 0),
                .integer(peer.isProven ? 1 : 0), .integer(peer.isDecided ? 1 : 0),
                peer.trustedUntil.map { .integer($0.milliseconds) } ?? .null,
                Self.optional(peer.verified?.rawValue),
                .integer(peer.firstSeen.milliseconds), .integer(peer.lastSeen.milliseconds),
            ])
        try self.put(peer.alias, for: peer.id)
    }

    private func put(_ alias: DisplayName?, for peer: PeerID) throws(SQLiteError) {
        if let alias {
            try self.database.run(
                "INSERT OR REPLACE INTO aliases (peer_id, alias) VALUES (?, ?)", [.blob(peer.bytes), .text(alias.description)])
        } else if self.hasAliases {
            try self.database.run("DELETE FROM aliases WHERE peer_id = ?", [.blob(peer.bytes)])
        }
    }

    private func loadAliases() throws(SQLiteError) -> [PeerID: DisplayName] {
        guard self.hasAliases else { return [:] }
        let rows = try self.database.query("SELECT peer_id, alias FROM aliases") { row throws(SQLiteError) -> (PeerID, DisplayName) in
            guard let alias = try? DisplayName(row.text(1)) else { throw SQLiteError.damaged("an alias") }
            return (try Self.peerID(row, 0), alias)
        }
        return Dictionary(rows) { first, _ in first }
    }

    private func put(_ session: StoredSession) throws(SQLiteError) {
        let id = SQLiteValue.blob(session.id.bytes)
        for peer in session.members.dropFirst() { try self.removeSession(with: peer, but: session.id) }
        try self.database.run(
            "INSERT INTO sessions (id, created_at) VALUES (?, ?)", [id, .integer(session.createdAt.milliseconds)])
        for (place, member) in session.members.enumerated() {
            try self.database.run(
                "INSERT INTO members (session_id, place, peer_id) VALUES (?, ?, ?)", [id, .integer(Int64(place)), .blob(member.bytes)])
        }
    }

    /// Deletes a session and its dependent data, within a transaction. If the session `kept` is about to be written again, only its rows
    /// are deleted.
    private func removeSession(with peer: PeerID, but kept: SessionID? = nil) throws(SQLiteError) {
        let peerID = SQLiteValue.blob(peer.bytes)
        let ids = try self.database.query("SELECT session_id FROM members WHERE peer_id = ? AND place > 0", [peerID]) {
            row throws(SQLiteError) -> SessionID in try Self.wireID(row, 0)
        }
        for id in ids { try self.database.run("DELETE FROM sessions WHERE id = ?", [.blob(id.bytes)]) }
        guard kept == nil || ids.contains(where: { $0 != kept }) else { return }
        try self.dropReceipts(of: peer)
        try self.dropEndedTransfers(of: peer)
    }

    private func loadPeers() throws(SQLiteError) -> [StoredPeer] {
        let aliases = try self.loadAliases()
        return try self.database.query(
            "SELECT id, name, trust, spoken_tls, first_seen, last_seen, trusted_until, verified, proven, decided FROM peers ORDER BY id"
        ) { row throws(SQLiteError) in
            let id = try Self.peerID(row, 0)
            return StoredPeer(
                id: id, name: row.text(1), alias: aliases[id], trust: try Self.value(row, 2), isTLSPinned: row.integer(3) != 0,
                isProven: row.integer(8) != 0, isDecided: row.integer(9) != 0,
                trustedUntil: row.isNull(6) ? nil : Self.time(row.integer(6)), verified: row.isNull(7) ? nil : try Self.value(row, 7),
                firstSeen: Self.time(row.integer(4)), lastSeen: Self.time(row.integer(5)))
        }
    }

    private func loadSessions() throws(SQLiteError) -> [StoredSession] {
        var sessions = try self.database.query("SELECT id, created_at FROM sessions ORDER BY created_at, id") { row throws(SQLiteError) in
            StoredSession(id: try Self.wireID(row, 0), members: [], createdAt: Self.time(row.integer(1)))
        }
        for index in sessions.indices {
            sessions[index].members = try self.database.query(
                "SELECT peer_id FROM members WHERE session_id = ? ORDER BY place", [.blob(sessions[index].id.bytes)]
            ) { row throws(SQLiteError) in try Self.peerID(row, 0) }
        }
        return sessions
    }

    static func peerID(_ row: SQLiteStatement, _ column: CInt) throws(SQLiteError) -> PeerID {
        guard let id = PeerID(storedBytes: row.bytes(column)) else { throw SQLiteError.damaged("a peer id") }
        return id
    }

    static func wireID<Kind>(_ row: SQLiteStatement, _ column: CInt) throws(SQLiteError) -> WireID<Kind> {
        guard let id = WireID<Kind>(bytes: row.bytes(column)) else { throw SQLiteError.damaged("an identifier") }
        return id
    }

    /// Returns a value of a closed set. An unknown word means damage, because the database of a later release is refused as a whole.
    static func value<Value: RawRepresentable<String>>(_ row: SQLiteStatement, _ column: CInt) throws(SQLiteError) -> Value {
        guard let value = Value(rawValue: row.text(column)) else { throw SQLiteError.damaged("the word \(row.text(column))") }
        return value
    }
}

extension SQLiteError {
    static func damaged(_ what: String) -> SQLiteError {
        SQLiteError(code: SQLITE_CORRUPT, message: "\(what) in it makes no sense")
    }
}
