internal import EarshotSafety
internal import EarshotTree
internal import Glibc

/// What the publisher makes in people's directories before it is whole, remembered in the spool: a note for each such part, named as the
/// part is, with the path of its directory.
///
/// A note is on disk before its part is made, and goes once the part has gone or has got its own name. So a daemon that was killed in
/// between finds at its next start what it has left, in whatever directory its settings named then, and nothing that is not its own.
struct PartNotes: Sendable {
    /// Where the notes lie.
    let directory: SafeDirectory

    /// A random name for a part that is to be made in `place`; noted.
    func add(in place: SafeDirectory) throws(FileError) -> SafeName {
        let name = try PartName.random()
        let note = try self.directory.open(name, flags: O_RDWR | O_CREAT | O_EXCL)
        do {
            try note.write(Array(place.path.utf8), at: 0)
            try note.sync()
            try self.directory.sync()
        } catch {
            _ = try? self.directory.remove(name)
            throw error
        }
        return name
    }

    /// Forgets a part that has got its own name or was removed; of one that is still there, the next start has to know.
    func settle(_ name: SafeName, in place: SafeDirectory) {
        guard (try? place.has(name)) == false else { return }
        _ = try? self.directory.remove(name)
    }

    /// Removes what killed runs have left, and returns how much that was. Called at the start, before anything is noted.
    ///
    /// Only what is noted, by its random name, and belongs to this user. Where nothing of it is found its directory may be away, such as a
    /// disk that is not mounted: the note waits for `EarshotLimits.partNoteAge`.
    func removeParts(now: Int = time(nil)) -> Int {
        let names = (try? self.directory.entries()) ?? []
        return names.count { PartName.isOne($0) && self.removePart($0, now: now) }
    }

    private func removePart(_ name: SafeName, now: Int) -> Bool {
        guard let note = try? self.directory.open(name), let status = try? note.status(), let noted = status.modified.first else {
            return false
        }
        let isOver = now - noted >= Int(EarshotLimits.partNoteAge / .seconds(1))
        guard let place = try? Self.place(note), let owner = try? place.status(of: name)?.owner else {
            if isOver { _ = try? self.directory.remove(name) }
            return false
        }
        let isRemoved =
            owner == geteuid() && (try? Confinement.reaching([place]) { try TreeRemoval.remove(name, from: place) }) == true
        if isRemoved || isOver { _ = try? self.directory.remove(name) }
        return isRemoved
    }

    private static func place(_ note: OpenFile) throws(FileError) -> SafeDirectory {
        try SafeDirectory(path: String(decoding: try note.bytes(at: 0, count: Int(PATH_MAX)), as: UTF8.self))
    }
}
