internal import Glibc

internal import CLinux

/// New content on its way into a directory: it has no name there, or a random one, until it is published whole.
///
/// Or content that lies in another directory of the same file system already, and gets a second name.
///
/// Dropped without having been published, it leaves nothing behind (where the file system knows no unnamed files: nothing unless the
/// process is killed: see `StaleParts`).
package final class TemporaryFile: Sendable {
    /// What names the content until it is published.
    private enum Source: Sendable {
        case nothing
        /// A random name in the directory, where the file system cannot do without one.
        case name(SafeName)
        /// A name in another directory, which stays.
        case elsewhere(SafeDirectory, SafeName)
    }

    /// Where to write.
    package let file: OpenFile
    /// The directory in which it will appear.
    package let directory: SafeDirectory
    private let source: Source
    /// What it is called where it cannot do without a name; `nil` for a random one.
    private let part: SafeName?
    /// Whether the file system is taken for one that can neither rename without replacing nor link.
    private let isCopied: Bool

    /// A new file in the directory, readable and writable as `mode` and the process's umask say once it is published.
    ///
    /// `part` is its name for as long as it needs one that is not its own, for a caller that has to remember it. With `named` and `copied` it is
    /// published as on file systems that know no unnamed files, and on those that have nothing but `O_EXCL`.
    package init(
        in directory: SafeDirectory, mode: UInt32 = 0o666, named: Bool = false, copied: Bool = false, part: SafeName? = nil
    ) throws(FileError) {
        self.directory = directory
        self.part = part
        self.isCopied = copied
        // Without /proc an unnamed file could not be given its name.
        if !named, !copied, access("/proc/self/fd", X_OK) == 0 {
            let descriptor = earshot_open_unnamed(directory.descriptor, mode)
            if descriptor >= 0 {
                self.source = .nothing
                self.file = OpenFile(descriptor: descriptor, subject: "a new file in \(directory.path)")
                return
            }
            guard [EOPNOTSUPP, EISDIR, ENOENT, EINVAL].contains(errno) else { throw FileError("make a file in", directory.path) }
        }
        // Not by `??`: a typed error does not pass through its closure.
        let name = if let part { part } else { try PartName.random() }
        self.file = try directory.open(name, flags: O_RDWR | O_CREAT | O_EXCL, mode: mode)
        self.source = .name(name)
        PartName.lock(self.file.descriptor)
        PartName.mark(self.file.descriptor)
    }

    /// The content of `name` in `other`, which stays there too: publishing makes a hard link. It fails with one of `linkFailures` where
    /// the two directories' file systems have no such thing.
    package init(
        in directory: SafeDirectory, linking name: SafeName, of other: SafeDirectory, part: SafeName? = nil
    ) throws(FileError) {
        self.directory = directory
        self.part = part
        self.isCopied = false
        self.file = try other.open(name, flags: O_RDWR)
        self.source = .elsewhere(other, name)
    }

    /// The errnos of a hard link that cannot be, where a copy can.
    package static let linkFailures: Set<CInt> = [EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS]

    deinit { self.drop() }

    /// Removes what was written, unless it was published; it cannot be published afterwards, where it needs a name until then.
    package func drop() {
        // Gone already once it was published under its own name.
        if case .name(let name) = self.source { _ = unlinkat(self.directory.descriptor, name.description, 0) }
    }

    /// Gives the content its name, durably and at once: a reader sees all of it or nothing. Called once.
    ///
    /// Where the file system can neither rename without replacing nor link (FAT by some drivers, vboxsf, rclone), the content is copied to its
    /// name, and a reader may see it grow.
    ///
    /// Returns the name that it got, or `nil` when `conflict` is `.skip` and something was there.
    package func publish(as wanted: SafeName, onConflict conflict: SafeDirectory.Conflict) throws(FileError) -> SafeName? {
        if case .name = self.source { try PartName.unmark(self.file.descriptor) }
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
            switch self.source {
            case .name(let name):
                if self.isCopied {
                    try self.copy(name, to: target)
                } else if SafeDirectory.renameWithoutReplacing(self.directory, name, self.directory, target) {
                    true
                } else if Self.renamingFailures.contains(errno) {
                    try self.copy(name, to: target)
                } else {
                    false
                }
            case .nothing: earshot_link_unnamed(self.file.descriptor, self.directory.descriptor, target.description) == 0
            case .elsewhere(let other, let name):
                linkat(other.descriptor, name.description, self.directory.descriptor, target.description, 0) == 0
            }
        if placed { return true }
        guard errno == EEXIST else { throw FileError("create", self.directory.subject(target)) }
        return false
    }

    /// The errnos of a rename without replacing that the file system cannot do, where it can make a new file.
    private static let renamingFailures = TemporaryFile.linkFailures.union([EINVAL]).subtracting([EXDEV])
    /// How much is copied at once, in bytes.
    private static let copySize = 1024 * 1024

    /// Whether the name was free and has a copy of the content; errno when not. The content's own name goes then.
    private func copy(_ name: SafeName, to target: SafeName) throws(FileError) -> Bool {
        var status = stat()
        guard fstat(self.file.descriptor, &status) == 0 else { throw FileError("look at", self.file.subject) }
        let copy: OpenFile
        do throws(FileError) {
            copy = try self.directory.open(target, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
        } catch {
            errno = error.code
            return false
        }
        do throws(FileError) {
            let hasHoles = try self.file.attributes().hasHoles
            var offset: UInt64 = 0
            while case let bytes = try self.file.bytes(at: offset, count: Self.copySize), !bytes.isEmpty {
                try copy.write(bytes, at: offset, leavingHoles: hasHoles)
                offset += UInt64(bytes.count)
            }
            // Permissions that the file system does not keep are not asked for again.
            _ = fchmod(copy.descriptor, status.st_mode & 0o777)
            var times = [status.st_atim, status.st_mtim]
            _ = futimens(copy.descriptor, &times)
            try copy.sync()
        } catch {
            _ = unlinkat(self.directory.descriptor, target.description, 0)
            throw error
        }
        _ = unlinkat(self.directory.descriptor, name.description, 0)
        return true
    }

    private func replace(_ target: SafeName) throws(FileError) {
        let directory = self.directory.descriptor
        let source: SafeName
        switch self.source {
        case .name(let name): source = name
        case .nothing, .elsewhere:
            // A link cannot replace: it goes in under a random name, and that is renamed over the target.
            source = if let part = self.part { part } else { try PartName.random() }
            guard try self.tryPlace(source) else { throw FileError("create", self.directory.subject(target), code: EEXIST) }
        }
        guard renameat(directory, source.description, directory, target.description) == 0 else {
            let error = FileError("replace", self.directory.subject(target))
            _ = unlinkat(directory, source.description, 0)
            throw error
        }
    }
}
