internal import CSQLite

/// A wrapper of SQLite's C API: one connection, used by one thread at a time, with cached prepared statements.
final class SQLiteDatabase {
    private let handle: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]

    /// Opens an existing database file. An empty file is a new database.
    init(path: String) throws(SQLiteError) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard let handle else { throw SQLiteError(code: code, message: "out of memory") }
        guard code == SQLITE_OK else {
            let error = Self.error(code, handle)
            sqlite3_close_v2(handle)
            throw error
        }
        self.handle = handle
    }

    deinit {
        // Releases the statements first, because an open one would keep the connection, and its lock.
        self.statements.removeAll()
        sqlite3_close_v2(self.handle)
    }

    static func error(_ code: CInt, _ handle: OpaquePointer) -> SQLiteError {
        SQLiteError(
            code: sqlite3_errcode(handle) == code & 0xFF ? sqlite3_extended_errcode(handle) : code,
            message: String(cString: sqlite3_errmsg(handle)), systemError: sqlite3_system_errno(handle))
    }

    /// Executes statements that are not cached, such as a schema.
    func execute(_ sql: String) throws(SQLiteError) {
        let code = sqlite3_exec(self.handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw Self.error(code, self.handle) }
    }

    /// Runs a statement to its end and returns the number of changed rows.
    @discardableResult
    func run(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) -> Int {
        let statement = try self.statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        while try statement.step() {}
        return Int(sqlite3_changes64(self.handle))
    }

    /// Returns the prepared statement, for loops that look it up once and run it many times.
    func prepared(_ sql: String) throws(SQLiteError) -> SQLiteStatement { try self.statement(sql) }

    /// Runs a statement to its end with values that `bind` sets, and returns the number of changed rows.
    func run(
        _ statement: SQLiteStatement, _ bind: (SQLiteStatement) throws(SQLiteError) -> Void
    ) throws(SQLiteError) -> Int {
        defer { statement.reset() }
        try bind(statement)
        while try statement.step() {}
        return Int(sqlite3_changes64(self.handle))
    }

    /// Runs a query and creates a value from each row.
    func query<Row>(
        _ sql: String, _ values: [SQLiteValue] = [], _ row: (SQLiteStatement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> [Row] {
        try self.query(sql, values, until: { _ in false }, row)
    }

    /// Runs a query and creates a value from each row, until `isEnough` returns true for a row.
    func query<Row>(
        _ sql: String, _ values: [SQLiteValue], until isEnough: (SQLiteStatement) -> Bool,
        _ row: (SQLiteStatement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> [Row] {
        let statement = try self.statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Row] = []
        while try statement.step(), !isEnough(statement) { rows.append(try row(statement)) }
        return rows
    }

    /// Returns the first column of the only row.
    func integer(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) -> Int64 {
        try self.query(sql, values) { statement in statement.integer(0) }.first ?? 0
    }

    /// Whether the database has a table of that name.
    func hasTable(_ name: String) throws(SQLiteError) -> Bool {
        try self.integer("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", [.text(name)]) == 1
    }

    /// Copies the database, in the state of one transaction, into an existing empty file. Others may continue to write meanwhile.
    func copy(to path: String) throws(SQLiteError) {
        let copy = try SQLiteDatabase(path: path)
        guard let backup = sqlite3_backup_init(copy.handle, "main", self.handle, "main") else {
            throw Self.error(sqlite3_errcode(copy.handle), copy.handle)
        }
        // Copies in one step, within one read transaction, so that the copy has none of the concurrent changes.
        _ = sqlite3_backup_step(backup, -1)
        let code = sqlite3_backup_finish(backup)
        guard code == SQLITE_OK else { throw Self.error(code, copy.handle) }
    }

    /// Runs `body` in a transaction. All its changes are committed and on disk, or, if it throws, none.
    func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
        try self.run("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try self.run("COMMIT")
            return result
        } catch {
            // A full disk rolls back automatically. After other errors, the rollback has to be done here, or no transaction could begin
            // again.
            if sqlite3_get_autocommit(self.handle) == 0 { sqlite3_exec(self.handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    private func statement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
        if let known = self.statements[sql] { return known }
        let new = try SQLiteStatement(sql, database: self.handle)
        self.statements[sql] = new
        return new
    }
}
