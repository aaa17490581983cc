internal import CSQLite
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials
internal import OrderedCollections

/// The persistent state in one SQLite database: decisions about peers, sessions and transfers, and the inbox.
///
/// When a call has returned, its changes are on disk (WAL, `synchronous = FULL`). A call that throws has changed nothing, and the store
/// continues to work, so a full disk only affects the messages that did not fit. The store has a thread of its own, because every commit
/// waits for the disk. The caller batches: all waiting changes or messages take one transaction, and therefore one fsync.
package actor Store {
    /// The database's file name in the state directory.
    package static let fileName = "earshot.db"

    /// SQLite's name for a database in memory.
    private static let memory = ":memory:"

    let database: SQLiteDatabase
    let path: String
    var limits: InboxLimits
    var usage: InboxUsage
    /// The number of remembered ids, by sender.
    var remembered: [PeerID: Int]
    /// The number of receipts that senders have not acknowledged.
    var receipts: Int
    /// The conversations of which a message was refused, with the reason. No later message may overtake it until the sender knows of the
    /// refusal. The end of a session does not clear its entry, because the end may be written after the next session has begun. The first
    /// message of the next session clears the entry in the order of deliveries. Entries may therefore be left over, and the oldest are
    /// evicted.
    var refusing: OrderedDictionary<Conversation, DeliveryOutcome.Refusal> = [:]
    /// The running clock's time on disk, in milliseconds; `nil` if no daemon has noted one yet.
    var notedRunning: Int64?
    /// Whether the table of aliases exists: the disk may have been full at every start since this release.
    let hasAliases: Bool
    /// Whether the table of transfers' limits exists, for the same reason.
    let hasTransferLimits: Bool
    /// Whether the tables of replies exist, for the same reason. Without them, a reply is stored like any other message.
    let hasReplies: Bool
    /// Whether the tables of devices exist, for the same reason.
    let hasDevices: Bool
    private let executor: ThreadExecutor

    /// The executor of the store's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Opens the database in the state directory, and migrates it to the current schema. A missing directory or database is created (modes
    /// 0700 and 0600).
    ///
    /// Without a directory, the database is in memory and ends with the store. If this call creates the database, `whenNew` runs first. If
    /// `whenNew` fails, the next call creates the database again.
    ///
    /// - Throws: `storage` for a database that is damaged, another program's or of a later release. Such a database is never replaced
    ///   silently.
    package init(
        directory: String?, inbox: InboxLimits = InboxLimits(), whenNew: @Sendable () throws(EarshotError) -> Void = {}
    ) throws(EarshotError) {
        let path = directory.map { "\($0)/\(Self.fileName)" } ?? Self.memory
        if let directory { try Self.prepare(directory, path) }
        self.path = path
        do {
            let database = try Self.open(path)
            if try StoreSchema.check(database) == 0 { try whenNew() }
            try StoreSchema.migrate(database)
            self.notedRunning = try StoreSchema.addTables(database)
            self.hasAliases = try database.hasTable("aliases")
            self.hasTransferLimits = try database.hasTable("transfer_limits")
            self.hasReplies = try database.hasTable("replies") && database.hasTable("outbox_replies")
            self.hasDevices = try database.hasTable("devices") && database.hasTable("resource_folders")
            self.usage = try Self.countUsage(database)
            self.remembered = try Self.countRemembered(database)
            self.receipts = Int(clamping: try database.integer("SELECT count(*) FROM receipts"))
            self.database = database
        } catch {
            throw Self.openError(error, path: path)
        }
        self.limits = inbox
        self.executor = try ThreadExecutor(name: "earshot-store")
    }

    /// Creates a missing directory and file, and checks whether an existing file may be opened.
    private static func prepare(_ directory: String, _ path: String) throws(EarshotError) {
        do {
            let opened = try SafeDirectory(path: directory, create: 0o700)
            guard try Self.makeFile(in: opened) else {
                throw SQLiteError(code: SQLITE_NOTADB, message: "file is not a database")
            }
            let journal = try WriteAheadLog.name(of: Self.fileName)
            guard try WriteAheadLog.isSound(journal, in: opened) else {
                let error = SQLiteError(code: SQLITE_CORRUPT, message: "it holds what was stored last, and does not begin as it should")
                throw Self.storageError(error, path: "\(directory)/\(journal)")
            }
        } catch let error as EarshotError {
            throw error
        } catch let error as SQLiteError {
            throw Self.storageError(error, path: path)
        } catch let error as FileError {
            throw EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error); the peer's state is kept there", underlying: error)
        } catch {
            throw EarshotError(.storage, "cannot open \(path.escapedForDisplay)", underlying: error)
        }
    }

    /// Sets new limits. Existing messages beyond them are kept, but no more are added.
    package func use(_ limits: InboxLimits) {
        self.limits = limits
    }

    /// Runs work on the store's thread, in order with other work, and passes the outcome to `then` there.
    package nonisolated func perform<Outcome: Sendable>(
        _ work: @escaping @Sendable (isolated Store) throws(EarshotError) -> Outcome,
        then: @escaping @Sendable (Result<Outcome, EarshotError>) -> Void
    ) {
        self.executor.run {
            then(
                self.assumeIsolated { store in
                    do throws(EarshotError) { return .success(try work(store)) } catch { return .failure(error) }
                })
        }
    }

    /// Calls `heartbeat` from the store's thread, after its pending work.
    package nonisolated func answer(_ heartbeat: @escaping @Sendable () -> Void) {
        self.executor.run(heartbeat)
    }

    deinit {
        self.executor.stop()
    }

    /// Creates a missing file, and returns whether the file is new or begins like a database. SQLite treats a file shorter than a page as
    /// empty, and would overwrite it.
    private static func makeFile(in directory: SafeDirectory) throws -> Bool {
        let name = try SafeName(Self.fileName)
        // SQLite gives its journal the mode of the database, which is set here.
        let file = try directory.open(name, flags: OpenFile.readWrite | OpenFile.create, mode: 0o600)
        try file.setMode(0o600)
        let magic = Array("SQLite format 3\0".utf8)
        let start = try file.bytes(at: 0, count: magic.count)
        // If there is a journal, the very first write was interrupted, and SQLite rolls it back.
        return try start.isEmpty || start == magic || directory.size(of: SafeName(Self.fileName + "-journal")) != nil
    }

    private static func open(_ path: String) throws(StoreOpenError) -> SQLiteDatabase {
        do {
            let database = try SQLiteDatabase(path: path)
            try database.execute("PRAGMA busy_timeout = 5000")
            // Checked before the first write, so that a foreign or damaged file stays unchanged.
            let damage = try database.query("PRAGMA quick_check(1)") { row in row.text(0) }.first ?? "no answer"
            guard damage == "ok" else { throw SQLiteError(code: SQLITE_CORRUPT, message: damage) }
            try StoreSchema.check(database)
            try database.execute(
                """
                PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 16777216;
                PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY
                """)
            return database
        } catch let error as StoreOpenError {
            throw error
        } catch let error as SQLiteError {
            throw .sqlite(error)
        } catch {
            throw .foreign
        }
    }

    private static func openError(_ error: any Error, path: String) -> EarshotError {
        if let error = error as? EarshotError { return error }
        let shown = path.escapedForDisplay
        switch error as? StoreOpenError {
        case .foreign: return EarshotError(.storage, "\(shown) belongs to another program; move it away to start without it")
        case .newer(let version):
            return EarshotError(
                .versionUnsupported, "\(shown) was written by a later release of earshot (layout \(version)); install that release again")
        case .sqlite(let error): return Self.storageError(error, path: path)
        case nil: return Self.storageError(error as? SQLiteError ?? SQLiteError(code: SQLITE_ERROR, message: "\(error)"), path: path)
        }
    }

    static func storageError(_ error: SQLiteError, path: String) -> EarshotError {
        let shown = path.escapedForDisplay
        if error.isNoSpace { return EarshotError(.noSpace, "no space to write \(shown); free some space on that disk", underlying: error) }
        if error.isCorrupt {
            // SQLite would use the journal of another database for this one.
            let files = "\(Self.fileName), \(Self.fileName)-wal and \(Self.fileName)-shm"
            return EarshotError(
                .storage,
                "\(shown) is damaged (\(error.message)); move \(files) away together, then restore a backup or start without them",
                underlying: error)
        }
        return EarshotError(.storage, "cannot use \(shown): \(error.message)", underlying: error)
    }

    /// Runs `body`, and converts its error to the store's public errors.
    func attempt<Result>(_ body: () throws(SQLiteError) -> Result) throws(EarshotError) -> Result {
        do {
            return try body()
        } catch {
            throw Self.storageError(error, path: self.path)
        }
    }

    /// Runs one transaction. If it fails, the count of receipts, which the end of a session reduces, is restored.
    func transaction(_ body: () throws(SQLiteError) -> Void) throws(EarshotError) {
        let receipts = self.receipts
        do {
            try self.attempt { () throws(SQLiteError) in try self.database.transaction(body) }
        } catch {
            self.receipts = receipts
            throw error
        }
    }

    static func milliseconds(_ date: Date) -> Int64 { date.boundedMilliseconds }

    /// Returns the time of a column within the bounds. Older versions have stored any value that a peer sent.
    static func date(_ milliseconds: Int64) -> Date { Date(boundedMilliseconds: milliseconds) }

    /// Returns the time of a column for the core.
    static func time(_ milliseconds: Int64) -> WallTime { WallTime(Self.date(milliseconds)) }
}
