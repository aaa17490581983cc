internal import CSQLite
internal import NIOCore

/// A value for a statement's parameter.
enum SQLiteValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    case buffer(ByteBuffer)
}

/// A prepared statement; used by one thread at a time, and reset after each use.
final class SQLiteStatement {
    private let handle: OpaquePointer
    private let database: OpaquePointer

    init(_ sql: String, database: OpaquePointer) throws(SQLiteError) {
        var handle: OpaquePointer?
        let code = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
        guard code == SQLITE_OK, let handle else { throw SQLiteDatabase.error(code, database) }
        self.handle = handle
        self.database = database
    }

    deinit {
        sqlite3_finalize(self.handle)
    }

    /// Binds the values to the parameters, in order.
    func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
        for (index, value) in values.enumerated() {
            let position = CInt(truncatingIfNeeded: index + 1)
            let code =
                switch value {
                case .null: sqlite3_bind_null(self.handle, position)
                case .integer(let number): sqlite3_bind_int64(self.handle, position, number)
                case .text(let text): Self.bind(text, to: self.handle, at: position)
                case .blob(let bytes): bytes.withUnsafeBytes { Self.bind($0, to: self.handle, at: position) }
                case .buffer(let buffer): buffer.withUnsafeReadableBytes { Self.bind($0, to: self.handle, at: position) }
                }
            guard code == SQLITE_OK else { throw SQLiteDatabase.error(code, self.database) }
        }
    }

    /// Binds NULL to the parameter with this number, from 1.
    func bindNull(_ position: CInt) throws(SQLiteError) {
        try self.check(sqlite3_bind_null(self.handle, position))
    }

    /// Binds a value to the parameter with this number, from 1.
    func bind(_ position: CInt, _ number: Int64) throws(SQLiteError) {
        try self.check(sqlite3_bind_int64(self.handle, position, number))
    }

    /// Binds a value to the parameter with this number, from 1.
    func bind(_ position: CInt, _ text: String) throws(SQLiteError) {
        try self.check(Self.bind(text, to: self.handle, at: position))
    }

    /// Binds a value to the parameter with this number, from 1.
    func bind(_ position: CInt, _ bytes: [UInt8]) throws(SQLiteError) {
        try self.check(bytes.withUnsafeBytes { Self.bind($0, to: self.handle, at: position) })
    }

    /// Binds a value to the parameter with this number, from 1.
    func bind(_ position: CInt, _ buffer: ByteBuffer) throws(SQLiteError) {
        try self.check(buffer.withUnsafeReadableBytes { Self.bind($0, to: self.handle, at: position) })
    }

    private func check(_ code: CInt) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw SQLiteDatabase.error(code, self.database) }
    }

    private static func bind(_ text: String, to handle: OpaquePointer, at position: CInt) -> CInt {
        var text = text
        return text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                // The length is given, so that SQLite does not stop at a NUL. An empty buffer may have no address, which would bind NULL.
                guard let start = characters.baseAddress else { return sqlite3_bind_text(handle, position, "", 0, transient) }
                return sqlite3_bind_text64(handle, position, start, UInt64(characters.count), transient, UInt8(SQLITE_UTF8))
            }
        }
    }

    private static func bind(_ bytes: UnsafeRawBufferPointer, to handle: OpaquePointer, at position: CInt) -> CInt {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(handle, position, 0) }
        return sqlite3_bind_blob64(handle, position, start, UInt64(bytes.count), transient)
    }

    /// Advances to the next row, and returns whether there is one.
    func step() throws(SQLiteError) -> Bool {
        let code = sqlite3_step(self.handle)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw SQLiteDatabase.error(code, self.database)
        }
    }

    /// Resets the statement: releases the read lock and clears the bound values.
    func reset() {
        sqlite3_reset(self.handle)
        sqlite3_clear_bindings(self.handle)
    }

    /// Returns a column of the current row, from 0.
    func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(self.handle, column) }

    /// Returns the size of a column of the current row, in bytes.
    func size(_ column: CInt) -> Int { Int(sqlite3_column_bytes(self.handle, column)) }

    /// Returns whether a column of the current row is NULL.
    func isNull(_ column: CInt) -> Bool { sqlite3_column_type(self.handle, column) == SQLITE_NULL }

    /// Returns a column of the current row.
    func text(_ column: CInt) -> String {
        guard let start = sqlite3_column_text(self.handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(self.handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns a column of the current row.
    func bytes(_ column: CInt) -> [UInt8] {
        guard let start = sqlite3_column_blob(self.handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(self.handle, column))))
    }

    /// Returns a column of the current row.
    func buffer(_ column: CInt) -> ByteBuffer {
        guard let start = sqlite3_column_blob(self.handle, column) else { return ByteBuffer() }
        return ByteBuffer(bytes: UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(self.handle, column))))
    }
}

/// SQLITE_TRANSIENT, a cast that Swift does not import: SQLite copies what is bound.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
