internal import EarshotSafety
internal import EarshotWire
internal import Glibc

/// Content that no database knows of.
extension Spool {
    /// Gives the completed content of a state directory another name beside the spool's own, before that is opened, and returns where it is
    /// then; `nil` where there is none. On disk when this returns.
    ///
    /// For a database that is about to be made: what is there was acknowledged under one that is gone, and may be the only copy, while a
    /// sweep would take it for left over. From then on it is the person's: no start looks at it, and it counts for no quota.
    static func setAside(in directory: String) throws(EarshotError) -> String? {
        do {
            let spool = try SafeDirectory(path: "\(directory)/spool", create: 0o700)
            let complete = try SafeName("complete")
            guard try !SafeDirectory(path: spool.subject(complete), create: 0o700).entries().isEmpty else { return nil }
            for number in 1...SafeDirectory.numberingLimit {
                let name = try SafeName("complete-\(number)")
                guard try !spool.has(name) else { continue }
                try spool.move(complete, to: spool, as: name)
                try spool.sync()
                return spool.subject(name)
            }
            throw FileError("find a free name for", spool.subject(complete), code: EEXIST)
        } catch {
            throw Self.error(error)
        }
    }
}
