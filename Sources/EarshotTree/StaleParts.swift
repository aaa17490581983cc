package import EarshotSafety
internal import Glibc

/// Removes what a killed process has left of files and trees that it was writing.
///
/// Only this user's own, of the name and with the mark of a part (`PartName`), that no process has locked, that have not changed for an hour,
/// and in a directory that no other user may write to: there no other user can put something else in their place.
package enum StaleParts {
    /// How long one must have stayed as it is, in seconds: for the moment between making and locking it, and for clocks that differ.
    package static let age: Int = 3600

    /// Returns how many there were. What cannot be looked at or removed stays: it is not what the caller has come for.
    @discardableResult
    package static func remove(from directory: SafeDirectory, now: Int = time(nil)) -> Int {
        guard let own = try? directory.status(), own.owner == geteuid(), own.mode & 0o022 == 0, let names = try? directory.entries() else {
            return 0
        }
        return names.count { PartName.isOne($0) && Self.remove($0, from: directory, now: now) }
    }

    /// Whether what was changed then has stayed as it is for long enough. A tree's root has its sender's time, which may be any.
    static func isOld(_ modified: Int, now: Int) -> Bool {
        let (age, isOverflow) = now.subtractingReportingOverflow(modified)
        return isOverflow ? modified < 0 : age >= Self.age
    }

    private static func remove(_ name: SafeName, from directory: SafeDirectory, now: Int) -> Bool {
        // Not blocking, in case that it is a pipe.
        guard let part = try? directory.open(name, flags: O_RDONLY | O_NONBLOCK), let status = try? part.status(),
            status.kind == .regular || status.kind == .directory, status.owner == geteuid(),
            PartName.isMarked(status), let modified = status.modified.first, Self.isOld(modified, now: now),
            PartName.tryLock(part.descriptor)
        else { return false }
        return (try? TreeRemoval.remove(name, from: directory)) ?? false
    }
}
