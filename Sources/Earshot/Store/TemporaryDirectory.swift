internal import EarshotSafety
internal import EarshotTree
internal import Glibc

/// A private directory of its owner, which is deleted with the owner: below `TMPDIR`, else `/var/tmp`, which is meant for large files.
///
/// The directory is locked while it is used. If its process was killed, the lock is free. The directory is then removed when the same user
/// creates the next one.
package final class TemporaryDirectory: Sendable {
    /// The path of the directory.
    package var path: String { self.directory.path }
    private let parent: SafeDirectory
    private let name: SafeName
    private let directory: SafeDirectory

    /// Creates a directory (mode 0700), and removes those left by killed processes.
    /// - Throws: `no-space`, `storage`.
    package convenience init() throws(EarshotError) {
        let wanted = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        try self.init(below: wanted.hasPrefix("/") ? wanted : "/var/tmp")
    }

    init(below path: String) throws(EarshotError) {
        do {
            self.parent = try SafeDirectory(path: path)
            Self.sweep(self.parent)
            (self.name, self.directory) = try Self.make(in: self.parent)
        } catch {
            throw EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error); what is received is kept there", underlying: error)
        }
    }

    deinit {
        _ = try? TreeRemoval.remove(self.name, from: self.parent)
    }

    /// The prefix of the names of this user's directories.
    private static var prefix: String { "earshot-\(geteuid())-" }

    private static func make(in parent: SafeDirectory) throws(FileError) -> (SafeName, SafeDirectory) {
        while true {
            var template = Array("\(parent.path)/\(Self.prefix)XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { throw FileError("make a directory in", parent.path) }
            let path = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard let last = path.split(separator: "/").last, let name = try? SafeName(String(last)) else {
                throw FileError("make a directory in", parent.path, code: EINVAL)
            }
            // Another process may have removed the directory as left over, in the moment before it was locked.
            guard let directory = Self.claim(name, in: parent) else { continue }
            return (name, directory)
        }
    }

    /// Returns the locked directory with this name; `nil` if another process has it or it is gone.
    private static func claim(_ name: SafeName, in parent: SafeDirectory) -> SafeDirectory? {
        guard let directory = try? parent.subdirectory(name), flock(directory.descriptor, LOCK_EX | LOCK_NB) == 0,
            let opened = try? directory.status(), let named = try? parent.status(of: name), opened.inode == named.inode
        else { return nil }
        return directory
    }

    /// Removes the directories of killed processes. A directory that cannot be removed stays for the next call.
    private static func sweep(_ parent: SafeDirectory) {
        for name in (try? parent.entries()) ?? [] where name.description.hasPrefix(Self.prefix) {
            guard let status = try? parent.status(of: name), status.kind == .directory, status.owner == geteuid(),
                let left = Self.claim(name, in: parent)
            else { continue }
            withExtendedLifetime(left) { _ = try? TreeRemoval.remove(name, from: parent) }
        }
    }
}
