internal import EarshotSafety
internal import EarshotTree
internal import Glibc

/// Notes in the spool about the publisher's unfinished parts in users' directories. Each part has a note that is named like the part and
/// contains the path of its directory.
///
/// A note is on disk before its part is created, and is removed when the part is removed or has its final name. If the daemon is killed in
/// between, the next start finds the part, whatever directory the settings named at the time, and removes nothing else.
struct PartNotes: Sendable {
    /// The directory of the notes.
    let directory: SafeDirectory

    /// Returns a random name for a new part in `place`, and writes its note.
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

    /// Removes the note of a part that has its final name or was removed. If the part still exists, the note stays for the next start.
    func settle(_ name: SafeName, in place: SafeDirectory) {
        guard (try? place.has(name)) == false else { return }
        _ = try? self.directory.remove(name)
    }

    /// Removes the parts that killed runs have left, and returns their number. Called at the start, before the first note is written.
    ///
    /// Only parts that are noted by their random names and belong to this user are removed. If a part is not found, its directory may be
    /// absent, such as a disk that is not mounted. The note then stays for `EarshotLimits.partNoteAge`.
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
