package import EarshotSafety
internal import Glibc

/// Removes the files and trees that a killed process was writing.
///
/// Only removes entries of this user with the name and mark of a part (`PartName`), that no process has locked, that have not changed for
/// an hour, and that are in a directory that only this user may write to. In such a directory no other user can replace them.
package enum StaleParts {
    /// The age from which a part is removed, in seconds. It covers the moment between creating and locking a part, and clocks that differ.
    package static let age: Int = 3600

    /// Removes stale parts and returns their number. Parts that cannot be read or removed are left, because the caller's own work does not
    /// depend on them.
    @discardableResult
    package static func remove(from directory: SafeDirectory, now: Int = time(nil)) -> Int {
        guard let own = try? directory.status(), own.owner == geteuid(), own.mode & 0o022 == 0, let names = try? directory.entries() else {
            return 0
        }
        return names.count { PartName.isOne($0) && Self.remove($0, from: directory, now: now) }
    }

    /// Whether a part with that time of change is old enough. The root of a tree has its sender's time, which may be any.
    static func isOld(_ modified: Int, now: Int) -> Bool {
        let (age, isOverflow) = now.subtractingReportingOverflow(modified)
        return isOverflow ? modified < 0 : age >= Self.age
    }

    private static func remove(_ name: SafeName, from directory: SafeDirectory, now: Int) -> Bool {
        // Non-blocking, in case the entry is a pipe.
        guard let part = try? directory.open(name, flags: O_RDONLY | O_NONBLOCK), let status = try? part.status(),
            status.kind == .regular || status.kind == .directory, status.owner == geteuid(),
            PartName.isMarked(status), let modified = status.modified.first, Self.isOld(modified, now: now),
            PartName.tryLock(part.descriptor)
        else { return false }
        return (try? TreeRemoval.remove(name, from: directory)) ?? false
    }
}
