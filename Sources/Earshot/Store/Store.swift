internal import CSQLite
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials
internal import OrderedCollections

/// What must outlive the process: decisions about peers, sessions, transfers and the inbox, in one SQLite database.
///
/// What a call has returned from is on disk (WAL, `synchronous = FULL`); a call that throws has changed nothing, and the store goes on
/// working, so that a full disk costs the messages that did not fit and nothing else. Runs on a thread of its own, because every
/// commit waits for the disk. The caller batches: one transaction, and so one fsync, for as many changes or messages as are waiting.
package actor Store {
    /// The database's file name in the state directory.
    package static let fileName = "earshot.db"

    /// What SQLite calls a database in memory.
    private static let memory = ":memory:"

    let database: SQLiteDatabase
    let path: String
    var limits: InboxLimits
    var usage: InboxUsage
    /// How many ids are remembered of each sender.
    var remembered: [PeerID: Int]
    /// How many messages were read whose senders have not taken note.
    var receipts: Int
    /// Senders of whom a message was refused, and how: nothing of theirs is to overtake it until they know. The end of a session leaves it:
    /// that may be written when the next one has begun, the first message of which clears it in the order of deliveries. So the oldest give
    /// way.
    var refusing: OrderedDictionary<Conversation, DeliveryOutcome.Refusal> = [:]
    /// The running clock's time that is on disk, in milliseconds; `nil` where no daemon has noted one yet.
    var notedRunning: Int64?
    private let executor: ThreadExecutor

    /// The store's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Opens the database in the state directory, making both where they are missing (0700, 0600) and bringing the layout up to date.
    ///
    /// Without a directory the database is in memory, and goes with the store. Where it is made by this call, `whenNew` runs before that:
    /// until it has returned, the next call makes it too.
    ///
    /// Throws `storage` for a database that is damaged, another program's or of a later release: it is never replaced silently.
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
            self.notedRunning = try StoreSchema.addRunningTime(database)
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

    /// Makes directory and file where they are missing, and looks whether what is there may be opened.
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

    /// Has other limits count from now on; what is beyond them is not dropped for that, but nothing is added to it.
    package func use(_ limits: InboxLimits) {
        self.limits = limits
    }

    /// Does something on its thread, in order with what else is asked of it, and says there what came of it.
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

    /// Calls back from its thread once that gets round to it: a sign of life.
    package nonisolated func answer(_ heartbeat: @escaping @Sendable () -> Void) {
        self.executor.run(heartbeat)
    }

    deinit {
        self.executor.stop()
    }

    /// Whether the file is new, or begins as a database does: SQLite takes anything shorter than a page for empty and would overwrite it.
    private static func makeFile(in directory: SafeDirectory) throws -> Bool {
        let name = try SafeName(Self.fileName)
        // SQLite gives its journal the mode of the database, and so takes it from here.
        let file = try directory.open(name, flags: OpenFile.readWrite | OpenFile.create, mode: 0o600)
        try file.setMode(0o600)
        let magic = Array("SQLite format 3\0".utf8)
        let start = try file.bytes(at: 0, count: magic.count)
        // With a journal beside it, the first write of all was interrupted, and SQLite undoes it.
        return try start.isEmpty || start == magic || directory.size(of: SafeName(Self.fileName + "-journal")) != nil
    }

    private static func open(_ path: String) throws(StoreOpenError) -> SQLiteDatabase {
        do {
            let database = try SQLiteDatabase(path: path)
            try database.execute("PRAGMA busy_timeout = 5000")
            // Before anything is written: a foreign or damaged file stays as it is.
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
            // SQLite would take the journal of another database for this one's.
            let files = "\(Self.fileName), \(Self.fileName)-wal and \(Self.fileName)-shm"
            return EarshotError(
                .storage,
                "\(shown) is damaged (\(error.message)); move \(files) away together, then restore a backup or start without them",
                underlying: error)
        }
        return EarshotError(.storage, "cannot use \(shown): \(error.message)", underlying: error)
    }

    /// Runs a body and gives its failure the form that leaves the store.
    func attempt<Result>(_ body: () throws(SQLiteError) -> Result) throws(EarshotError) -> Result {
        do {
            return try body()
        } catch {
            throw Self.storageError(error, path: self.path)
        }
    }

    /// One transaction, all of it or none: where it fails, the receipts are counted as they were, which the end of a session counts down.
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

    /// A column's time; older versions have stored what a peer said, whatever that was.
    static func date(_ milliseconds: Int64) -> Date { Date(boundedMilliseconds: milliseconds) }

    /// The same for the core.
    static func time(_ milliseconds: Int64) -> WallTime { WallTime(Self.date(milliseconds)) }
}
