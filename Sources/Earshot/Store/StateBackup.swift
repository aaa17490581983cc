import CSQLite
import EarshotSafety
import EarshotWire

#if canImport(Glibc)
    import Glibc
#endif

/// Copies the content of a state directory into another directory, also while a daemon uses it.
///
/// The copy is itself a state directory: the store in the state of one transaction, and the identity. The content of files (`spool`) is
/// not copied.
package enum StateBackup {
    /// Copies the store and the identity of `state` into `place`, which is created, or is empty.
    ///
    /// - Throws: `storage`, `no-space`. A partial copy is then removed.
    package static func write(of state: String, to place: String) throws(EarshotError) {
        guard let status = FileStatus(path: state), status.kind == .directory else {
            throw EarshotError(.storage, "there is no state directory \(state.escapedForDisplay); give --state-directory")
        }
        let source = "\(state)/\(Store.fileName)"
        // Checked first, because SQLite would create a missing store.
        guard FileStatus(path: source)?.kind == .regular else {
            throw EarshotError(.storage, "there is no store \(source.escapedForDisplay) to copy")
        }
        let directory: SafeDirectory
        do {
            directory = try SafeDirectory(path: place, create: 0o700)
            guard try directory.entries().isEmpty else {
                throw EarshotError(.storage, "\(place.escapedForDisplay) is not empty; name a directory of its own for each backup")
            }
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.storage, "cannot use \(place.escapedForDisplay): \(error)", underlying: error)
        }
        do {
            try self.copy(source, into: directory, at: place)
            if let pem = try Identity.pem(in: state) {
                try DurableFile.write(Array(pem.utf8), to: "\(place)/\(Identity.fileName)")
            }
            try directory.sync()
        } catch {
            for name in (try? directory.entries()) ?? [] { _ = try? directory.remove(name) }
            throw (error as? EarshotError) ?? EarshotError(.storage, "cannot write \(place.escapedForDisplay): \(error)", underlying: error)
        }
    }

    private static func copy(_ source: String, into directory: SafeDirectory, at place: String) throws {
        let path = "\(place)/\(Store.fileName)"
        let file = try directory.open(SafeName(Store.fileName), flags: OpenFile.readWrite | OpenFile.create, mode: 0o600)
        try file.setMode(0o600)
        do {
            let database = try SQLiteDatabase(path: source)
            try database.execute("PRAGMA busy_timeout = 5000")
            _ = try StoreSchema.check(database)
            try database.copy(to: path)
            let copy = try SQLiteDatabase(path: path)
            let damage = try copy.query("PRAGMA quick_check(1)") { row in row.text(0) }.first ?? "no answer"
            guard damage == "ok" else { throw SQLiteError(code: SQLITE_CORRUPT, message: damage) }
        } catch let error as SQLiteError {
            throw Store.storageError(error, path: error.isNoSpace ? path : source)
        } catch let error as StoreOpenError {
            throw EarshotError(.storage, "this release of earshot cannot read \(source.escapedForDisplay)", underlying: error)
        }
        guard fsync(file.descriptor) == 0 else { throw FileError("write to", path) }
    }
}
