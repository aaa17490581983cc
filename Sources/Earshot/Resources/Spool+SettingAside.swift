internal import EarshotSafety
internal import EarshotWire
internal import Glibc

/// Content that is unknown to the database.
extension Spool {
    /// Renames the completed and the outgoing content of a state directory to new names beside the spool's own, before the spool is
    /// opened. Calls `moved` with the new path of each, unless it is empty. When this returns, the renames are on disk.
    ///
    /// Used before a new database is created. The content was acknowledged under the lost database, to its sender or to the caller that
    /// queued it. It may be the only copy, but a sweep would treat it as left over. The moved content belongs to the user: no later start
    /// touches it, and it does not count towards the quota.
    static func setAside(in directory: String, _ moved: (String) -> Void) throws(EarshotError) {
        do {
            let spool = try SafeDirectory(path: "\(directory)/spool", create: 0o700)
            for name in ["complete", "outgoing"] {
                if let place = try Self.setAside(name, in: spool) { moved(place) }
            }
        } catch {
            throw Self.error(error)
        }
    }

    private static func setAside(_ text: String, in spool: SafeDirectory) throws -> String? {
        let name = try SafeName(text)
        guard try !SafeDirectory(path: spool.subject(name), create: 0o700).entries().isEmpty else { return nil }
        for number in 1...SafeDirectory.numberingLimit {
            let numbered = try SafeName("\(text)-\(number)")
            guard try !spool.has(numbered) else { continue }
            try spool.move(name, to: spool, as: numbered)
            try spool.sync()
            return spool.subject(numbered)
        }
        throw FileError("find a free name for", spool.subject(name), code: EEXIST)
    }
}
