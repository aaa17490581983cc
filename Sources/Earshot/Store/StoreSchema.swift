/// The schema of the database, and its migrations.
enum StoreSchema {
    /// `PRAGMA application_id`: "Ears", by which file(1) and Earshot recognise the file.
    static let applicationID: Int64 = 0x4561_7273

    /// One migration per version, each in its own transaction. Published migrations never change; a schema change is a new migration.
    ///
    /// Times are milliseconds since 1970, ids and digests their bytes, sizes as signed 64-bit numbers (the protocol's limit).
    static let migrations: [String] = [
        """
        CREATE TABLE peers (
            id BLOB PRIMARY KEY, name TEXT NOT NULL, trust TEXT NOT NULL, spoken_tls INTEGER NOT NULL,
            first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sessions (
            id BLOB PRIMARY KEY, created_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE members (
            session_id BLOB NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, place INTEGER NOT NULL, peer_id BLOB NOT NULL,
            PRIMARY KEY (session_id, place)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE resources (
            id BLOB PRIMARY KEY, direction TEXT NOT NULL, peer_id BLOB NOT NULL, peer_name TEXT NOT NULL, name TEXT NOT NULL,
            kind TEXT NOT NULL, size INTEGER NOT NULL, transferred INTEGER NOT NULL, state TEXT NOT NULL, digest TEXT, path TEXT,
            error TEXT, error_message TEXT, created_at INTEGER NOT NULL, completed_at INTEGER, in_spool INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        -- In the order of delivery. The weight is what the limits count.
        CREATE TABLE messages (
            place INTEGER PRIMARY KEY, sender BLOB NOT NULL, id BLOB NOT NULL, weight INTEGER NOT NULL, sent_at INTEGER NOT NULL,
            received_at INTEGER NOT NULL, read_at INTEGER, sender_name TEXT NOT NULL, content_type TEXT NOT NULL, body BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX messages_by_id ON messages (id, sender);
        CREATE INDEX messages_unread ON messages (place) WHERE read_at IS NULL;
        CREATE INDEX messages_read ON messages (read_at) WHERE read_at IS NOT NULL;
        -- Ids of messages that are gone, so that a late repeat is still known for one.
        CREATE TABLE remembered (
            place INTEGER PRIMARY KEY, sender BLOB NOT NULL, id BLOB NOT NULL, received_at INTEGER NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX remembered_by_id ON remembered (id, sender);
        CREATE INDEX remembered_by_sender ON remembered (sender, place);
        CREATE INDEX remembered_by_time ON remembered (received_at);
        """,
        """
        -- Messages of ours that wait for absent peers, in the order in which they were given, and the latest of those that are done with.
        CREATE TABLE outbox (
            place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, fingerprint BLOB NOT NULL, sent_at INTEGER NOT NULL,
            deadline INTEGER NOT NULL, content_type TEXT NOT NULL, body BLOB NOT NULL
        ) STRICT;
        CREATE TABLE outbox_recipients (
            message INTEGER NOT NULL REFERENCES outbox (place) ON DELETE CASCADE, place INTEGER NOT NULL, peer_id BLOB NOT NULL,
            status TEXT NOT NULL, error TEXT, error_message TEXT, PRIMARY KEY (message, place)
        ) STRICT, WITHOUT ROWID;
        -- Messages that were read here and whose senders have not taken note of it, oldest first.
        CREATE TABLE receipts (
            place INTEGER PRIMARY KEY, sender BLOB NOT NULL, id BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX receipts_by_sender ON receipts (sender, id);
        """,
        """
        -- What unfinished transfers need to go on after a restart.
        CREATE TABLE transfers (
            id BLOB PRIMARY KEY REFERENCES resources (id) ON DELETE CASCADE, source TEXT NOT NULL, stamp TEXT NOT NULL,
            digest INTEGER NOT NULL, is_queued INTEGER NOT NULL, is_taken INTEGER NOT NULL, is_offered INTEGER NOT NULL,
            expires_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """,
        """
        -- Trust that ends by itself, and what came of comparing digits.
        ALTER TABLE peers ADD COLUMN trusted_until INTEGER;
        ALTER TABLE peers ADD COLUMN verified TEXT;
        """,
        """
        -- How incoming transfers ended whose rows are gone, so that one which is offered again is still known for over.
        CREATE TABLE ended_transfers (
            place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, peer_id BLOB NOT NULL, error TEXT, message TEXT NOT NULL,
            ended_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX ended_transfers_by_peer ON ended_transfers (peer_id, place);
        CREATE INDEX ended_transfers_by_time ON ended_transfers (ended_at);
        """,
        """
        -- Whether a peer has ever proven its key. Of those kept so far, a peer that was only trusted or blocked may have been so by its id.
        ALTER TABLE peers ADD COLUMN proven INTEGER NOT NULL DEFAULT 1;
        UPDATE peers SET proven = 0 WHERE spoken_tls = 0 AND trust <> 'unknown' AND id NOT IN (SELECT peer_id FROM members);
        """,
        """
        -- One session a peer: of several the latest stays, which is the one that counted. This machine itself is the member at place 0.
        DELETE FROM sessions WHERE id IN (
            SELECT s.id FROM sessions s JOIN members m ON m.session_id = s.id AND m.place > 0
                JOIN members o ON o.peer_id = m.peer_id AND o.place > 0 JOIN sessions t ON t.id = o.session_id
                WHERE (t.created_at, t.id) > (s.created_at, s.id));
        CREATE UNIQUE INDEX members_by_peer ON members (peer_id) WHERE place > 0;
        -- Whether a person has decided about a peer. One that only the settings let in goes with its session.
        ALTER TABLE peers ADD COLUMN decided INTEGER NOT NULL DEFAULT 1;
        """,
        """
        -- Groups by their charters, and the signed records of each, as they travel. One that is over is kept for its other members to hear of it.
        CREATE TABLE groups (
            id BLOB PRIMARY KEY, charter BLOB NOT NULL, is_over INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE group_records (
            group_id BLOB NOT NULL REFERENCES groups (id) ON DELETE CASCADE, hash BLOB NOT NULL, record BLOB NOT NULL,
            PRIMARY KEY (group_id, hash)
        ) STRICT, WITHOUT ROWID;
        -- The group that a message or a resource was sent to, and what it was called then; none in a session of two.
        ALTER TABLE messages ADD COLUMN group_id BLOB;
        ALTER TABLE messages ADD COLUMN group_name TEXT;
        ALTER TABLE outbox ADD COLUMN group_id BLOB;
        ALTER TABLE resources ADD COLUMN group_id BLOB;
        ALTER TABLE resources ADD COLUMN group_name TEXT;
        -- What the transfers of one thing to a group have in common.
        ALTER TABLE resources ADD COLUMN share_id BLOB;
        """,
    ]

    /// Returns the schema version, without changing anything.
    /// - Throws: an error if the file is another program's or of a later release.
    @discardableResult
    static func check(_ database: SQLiteDatabase) throws(StoreOpenError) -> Int {
        let (version, application, isEmpty) = try Self.read(database)
        guard application == Self.applicationID || (isEmpty && version == 0 && application == 0) else { throw .foreign }
        guard version >= 0, version <= Int64(Self.migrations.count) else { throw .newer(version: version) }
        return Int(version)
    }

    private static func read(_ database: SQLiteDatabase) throws(StoreOpenError) -> (version: Int64, application: Int64, isEmpty: Bool) {
        do {
            return (
                try database.integer("PRAGMA user_version"), try database.integer("PRAGMA application_id"),
                try database.integer("SELECT count(*) FROM sqlite_master") == 0
            )
        } catch {
            throw .sqlite(error)
        }
    }

    /// Creates the tables of the running clock, of aliases, of transfers' limits, of devices and of replies if they are missing, and reads the clock. They
    /// are not part of a migration, so an earlier release with the same schema version, which ignores them, can still use the database.
    ///
    /// If the disk is full, a later start creates the tables.
    static func addTables(_ database: SQLiteDatabase) throws(StoreOpenError) -> Int64? {
        do {
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS running_time (
                    place INTEGER PRIMARY KEY CHECK (place = 0), milliseconds INTEGER NOT NULL
                ) STRICT;
                CREATE TABLE IF NOT EXISTS aliases (
                    peer_id BLOB PRIMARY KEY, alias TEXT NOT NULL
                ) STRICT, WITHOUT ROWID;
                -- An earlier release removes peers without their aliases.
                DELETE FROM aliases WHERE peer_id NOT IN (SELECT id FROM peers);
                -- In bytes per second. A transfer that an earlier release has written again has none.
                CREATE TABLE IF NOT EXISTS transfer_limits (
                    id BLOB PRIMARY KEY REFERENCES transfers (id) ON DELETE CASCADE, rate INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                -- The messages that reply, and those to which they reply. An earlier release deletes these rows with their messages too.
                CREATE TABLE IF NOT EXISTS replies (
                    id BLOB NOT NULL, sender BLOB NOT NULL, in_reply_to BLOB NOT NULL, PRIMARY KEY (id, sender),
                    FOREIGN KEY (id, sender) REFERENCES messages (id, sender) ON DELETE CASCADE
                ) STRICT, WITHOUT ROWID;
                -- LocalSend devices about which a user has decided, and the folders of their files. An id is a 1 and the 32 bytes.
                CREATE TABLE IF NOT EXISTS devices (
                    id BLOB PRIMARY KEY, name TEXT NOT NULL, alias TEXT, trust TEXT NOT NULL, trusted_until INTEGER,
                    proven INTEGER NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS resource_folders (
                    id BLOB PRIMARY KEY REFERENCES resources (id) ON DELETE CASCADE, folder TEXT NOT NULL
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS outbox_replies (
                    id BLOB PRIMARY KEY REFERENCES outbox (id) ON DELETE CASCADE, in_reply_to BLOB NOT NULL
                ) STRICT, WITHOUT ROWID;
                """)
            return try database.query("SELECT milliseconds FROM running_time") { row in row.integer(0) }.first
        } catch {
            guard error.isNoSpace else { throw .sqlite(error) }
            return nil
        }
    }

    /// Migrates a database to the newest version.
    static func migrate(_ database: SQLiteDatabase) throws(StoreOpenError) {
        for (index, step) in self.migrations.enumerated().dropFirst(try Self.check(database)) {
            do {
                try database.transaction { () throws(SQLiteError) in
                    try database.execute(step)
                    try database.execute("PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(index + 1)")
                }
            } catch {
                throw .sqlite(error)
            }
        }
    }
}

/// The reason why a database cannot be used.
enum StoreOpenError: Error {
    /// The file belongs to another program.
    case foreign
    /// A later release of Earshot has written the file.
    case newer(version: Int64)
    case sqlite(SQLiteError)
}
