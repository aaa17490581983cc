internal import CLinux
package import EarshotSafety
internal import Glibc

/// Removes an entry of a directory of any kind, with everything below it, without following a link.
///
/// Works at any depth with a few descriptors and without recursion: the content of a subdirectory is moved up into the entry itself, so
/// nothing is ever deeper than one level.
package enum TreeRemoval {
    /// Removes an entry and returns whether it existed. Content that cannot be removed stays, and the first error is thrown.
    @discardableResult
    package static func remove(_ name: SafeName, from directory: SafeDirectory) throws(FileError) -> Bool {
        if unlinkat(directory.descriptor, name.description, 0) == 0 { return true }
        guard errno != ENOENT else { return false }
        guard errno == EISDIR || errno == EPERM else { throw FileError("remove", directory.subject(name)) }
        let subject = directory.subject(name)
        Self.unlock(name.description, in: directory.descriptor)
        let root = try directory.subdirectory(name)
        var number = 0
        while true {
            let names = try Self.clear(root.descriptor, subject)
            guard !names.isEmpty else { break }
            for child in names {
                try Self.lift(child, in: root.descriptor, subject, &number)
            }
        }
        guard unlinkat(directory.descriptor, name.description, AT_REMOVEDIR) == 0 else { throw FileError("remove", subject) }
        return true
    }

    /// Gives the owner full permissions for a directory, so that they do not prevent its removal. If a link has replaced it meanwhile, the
    /// link's target is unchanged.
    package static func unlock(_ name: SafeName, in directory: SafeDirectory) {
        Self.unlock(name.description, in: directory.descriptor)
    }

    static func unlock(_ name: UnsafePointer<CChar>, in directory: CInt) {
        _ = fchmodat(directory, name, 0o700, AT_SYMLINK_NOFOLLOW)
    }

    /// Removes files and empty directories. Returns the names of the other directories.
    private static func clear(_ directory: CInt, _ subject: String) throws(FileError) -> [[UInt8]] {
        var rest: [[UInt8]] = []
        for name in try Self.names(directory, subject) {
            if name.withCString({ unlinkat(directory, $0, 0) }) == 0 || errno == ENOENT { continue }
            if name.withCString({ unlinkat(directory, $0, AT_REMOVEDIR) }) == 0 { continue }
            guard [ENOTEMPTY, EEXIST, EACCES].contains(errno) else {
                throw FileError("remove", "\(subject)/\(String(decoding: name, as: UTF8.self))")
            }
            rest.append(name)
        }
        return rest
    }

    /// Empties a directory of the root: its subdirectories move into the root, with numbers as names.
    private static func lift(_ name: [UInt8], in root: CInt, _ subject: String, _ number: inout Int) throws(FileError) {
        let subject = "\(subject)/\(String(decoding: name, as: UTF8.self))"
        name.withCString { Self.unlock($0, in: root) }
        let descriptor = name.withCString { openat(root, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileError("open", subject) }
        let directory = OpenFile(descriptor: descriptor, subject: subject)
        for child in try Self.clear(descriptor, subject) {
            child.withCString { Self.unlock($0, in: descriptor) }
            var result: CInt
            repeat {
                number += 1
                result = child.withCString { earshot_rename_no_replace(descriptor, $0, root, ".\(number)") }
            } while result != 0 && errno == EEXIST
            guard result == 0 else { throw FileError("remove", "\(directory.subject)/\(String(decoding: child, as: UTF8.self))") }
        }
        guard name.withCString({ unlinkat(root, $0, AT_REMOVEDIR) }) == 0 else { throw FileError("remove", subject) }
    }

    private static func names(_ directory: CInt, _ subject: String) throws(FileError) -> [[UInt8]] {
        try DirectoryNames.list(directory, subject, limit: .max)
    }
}
