internal import CSQLite
internal import Glibc

/// A failed call of SQLite.
package struct SQLiteError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The extended result code (sqlite.org/rescode.html).
    package let code: CInt
    /// The message from SQLite.
    package let message: String
    /// The underlying errno, or 0.
    package let systemError: CInt

    package init(code: CInt, message: String, systemError: CInt = 0) {
        self.code = code
        self.message = message
        self.systemError = systemError
    }

    /// The result code without its extension.
    package var primaryCode: CInt { self.code & 0xFF }

    /// The message and code from SQLite, for the log.
    package var description: String { "\(self.message) (\(self.code))" }

    /// Whether the disk, a quota or a limit on file sizes was exceeded.
    package var isNoSpace: Bool {
        self.primaryCode == SQLITE_FULL || (self.primaryCode == SQLITE_IOERR && [ENOSPC, EDQUOT, EFBIG].contains(self.systemError))
    }

    /// Whether the file is not a database, or is damaged.
    package var isCorrupt: Bool { self.primaryCode == SQLITE_CORRUPT || self.primaryCode == SQLITE_NOTADB }
}
