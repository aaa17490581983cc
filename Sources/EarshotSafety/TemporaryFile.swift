internal import Glibc

internal import CLinux

/// New content on its way into a directory: it has no name there, or a random one, until it is published whole.
///
/// Dropped without having been published, it leaves nothing behind (where the file system knows no unnamed files: nothing unless the
/// process is killed).
package final class TemporaryFile: Sendable {
    /// Where to write.
    package let file: OpenFile
    /// The directory in which it will appear.
    package let directory: SafeDirectory
    /// Its random name, where the file system cannot do without one.
    private let name: SafeName?

    /// A new file in the directory, readable and writable as `mode` and the process's umask say once it is published.
    package init(in directory: SafeDirectory, mode: UInt32 = 0o666, named: Bool = false) throws(FileError) {
        self.directory = directory
        // Without /proc an unnamed file could not be given its name.
        if !named, access("/proc/self/fd", X_OK) == 0 {
            let descriptor = earshot_open_unnamed(directory.descriptor, mode)
            if descriptor >= 0 {
                self.name = nil
                self.file = OpenFile(descriptor: descriptor, subject: "a new file in \(directory.path)")
                return
            }
            guard [EOPNOTSUPP, EISDIR, ENOENT, EINVAL].contains(errno) else { throw FileError("make a file in", directory.path) }
        }
        let name = try Self.randomName()
        self.file = try directory.open(name, flags: O_RDWR | O_CREAT | O_EXCL, mode: mode)
        self.name = name
    }

    deinit {
        // Gone already once it was published under its own name.
        if let name = self.name { _ = unlinkat(self.directory.descriptor, name.description, 0) }
    }

    /// Gives the content its name, durably and at once: a reader sees all of it or nothing. Called once.
    ///
    /// Returns the name that it got, or `nil` when `conflict` is `.skip` and something was there.
    package func publish(as wanted: SafeName, onConflict conflict: SafeDirectory.Conflict) throws(FileError) -> SafeName? {
        try self.file.sync()
        let result = try self.place(as: wanted, onConflict: conflict)
        if result != nil { try self.directory.sync() }
        return result
    }

    private func place(as wanted: SafeName, onConflict conflict: SafeDirectory.Conflict) throws(FileError) -> SafeName? {
        switch conflict {
        case .overwrite:
            try self.replace(wanted)
            return wanted
        case .skip:
            return try self.tryPlace(wanted) ? wanted : nil
        case .rename:
            if try self.tryPlace(wanted) { return wanted }
            for number in 2...SafeDirectory.numberingLimit {
                let candidate = wanted.numbered(number)
                if try self.tryPlace(candidate) { return candidate }
            }
            throw FileError("find a free name for", self.directory.subject(wanted), code: EEXIST)
        }
    }

    /// Whether the name was free and is now ours.
    private func tryPlace(_ target: SafeName) throws(FileError) -> Bool {
        let placed =
            if let name = self.name {
                SafeDirectory.renameWithoutReplacing(self.directory, name, self.directory, target)
            } else {
                earshot_link_unnamed(self.file.descriptor, self.directory.descriptor, target.description) == 0
            }
        if placed { return true }
        guard errno == EEXIST else { throw FileError("create", self.directory.subject(target)) }
        return false
    }

    private func replace(_ target: SafeName) throws(FileError) {
        let directory = self.directory.descriptor
        var source = self.name
        if source == nil {
            // A link cannot replace: it goes in under a random name, and that is renamed over the target.
            let name = try Self.randomName()
            guard try self.tryPlace(name) else { throw FileError("create", self.directory.subject(target), code: EEXIST) }
            source = name
        }
        guard let source else { return }
        guard renameat(directory, source.description, directory, target.description) == 0 else {
            let error = FileError("replace", self.directory.subject(target))
            _ = unlinkat(directory, source.description, 0)
            throw error
        }
    }

    private static func randomName() throws(FileError) -> SafeName {
        var generator = SystemRandomNumberGenerator()
        let text = ".earshot-" + String(generator.next(), radix: 36) + String(generator.next(), radix: 36) + ".part"
        guard let name = try? SafeName(text) else { throw FileError("name", text, code: EINVAL) }
        return name
    }
}
