internal import EarshotSafety
internal import EarshotWire
internal import Glibc

/// Content that no database knows of.
extension Spool {
    /// Gives the completed and the outgoing content of a state directory other names beside the spool's own, before that is opened, and tells
    /// `moved` where each of the two is then, unless there is none of it. On disk when this returns.
    ///
    /// For a database that is about to be made: what is there was acknowledged under one that is gone, to its sender or to the caller who
    /// has queued it, and may be the only copy, while a sweep would take it for left over. From then on it is the person's: no start looks at
    /// it, and it counts for no quota.
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
