internal import Glibc

internal import CLinux

/// New content on its way into a directory. It has no name there, or a random one, until it is published as a whole.
///
/// The content may also be a file in another directory of the same file system, which gets a second name.
///
/// If it is dropped without having been published, it leaves nothing behind. On file systems without unnamed files, it leaves a part if the
/// process is killed: see `StaleParts`.
package final class TemporaryFile: Sendable {
    /// The content's name until it is published.
    private enum Source: Sendable {
        case nothing
        /// A random name in the directory, on file systems that require a name.
        case name(SafeName)
        /// A name in another directory, which is kept.
        case elsewhere(SafeDirectory, SafeName)
    }

    /// The file to write to.
    package let file: OpenFile
    /// The directory in which the content will appear.
    package let directory: SafeDirectory
    private let source: Source
    /// The temporary name, if one is needed; `nil` for a random one.
    private let part: SafeName?
    /// Whether the file system is treated as one that can neither rename without replacing nor link.
    private let isCopied: Bool

    /// Creates a new file in the directory, with permissions by `mode` and the process's umask once it is published.
    ///
    /// `part` is its temporary name if one is needed, for a caller that has to remember it. With `named` it is published as on file systems
    /// without unnamed files, with `copied` as on file systems with nothing but `O_EXCL`.
    package init(
        in directory: SafeDirectory, mode: UInt32 = 0o666, named: Bool = false, copied: Bool = false, part: SafeName? = nil
    ) throws(FileError) {
        self.directory = directory
        self.part = part
        self.isCopied = copied
        // Without /proc an unnamed file could not be given a name.
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

    /// Uses the content of `name` in `other`, which keeps it: publishing creates a hard link. If the file systems do not support that, it
    /// fails with one of `linkFailures`.
    package init(
        in directory: SafeDirectory, linking name: SafeName, of other: SafeDirectory, part: SafeName? = nil
    ) throws(FileError) {
        self.directory = directory
        self.part = part
        self.isCopied = false
        self.file = try other.open(name, flags: O_RDWR)
        self.source = .elsewhere(other, name)
    }

    /// Uses the content of an open file that has a name: publishing creates a hard link. If the file systems do not support that, it fails
    /// with one of `linkFailures`.
    package init(in directory: SafeDirectory, linking file: OpenFile) {
        self.directory = directory
        self.part = nil
        self.isCopied = false
        self.file = file
        self.source = .nothing
    }

    /// The errnos of an impossible hard link, after which a copy may work.
    package static let linkFailures: Set<CInt> = [EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS]

    deinit { self.drop() }

    /// Removes the content, unless it was published. A content with a temporary name cannot be published afterwards.
    package func drop() {
        // After publishing, this name no longer exists.
        if case .name(let name) = self.source { _ = unlinkat(self.directory.descriptor, name.description, 0) }
    }

    /// Gives the content its name, durably and atomically: a reader sees all of it or nothing. Called once.
    ///
    /// If the file system can neither rename without replacing nor link (FAT by some drivers, vboxsf, rclone), the content is copied to its
    /// name, and a reader may see it grow.
    ///
    /// - Returns: The name that it got, or `nil` if `conflict` is `.skip` and the name was taken.
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

    /// Gives the content that name if it is free. Returns whether it did.
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

    /// The errnos of a rename without replacing that the file system does not support, after which creating a file may work.
    private static let renamingFailures = TemporaryFile.linkFailures.union([EINVAL]).subtracting([EXDEV])

    /// Copies the content to that name if it is free, and removes its temporary name. Returns whether it did; if not, errno is set.
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
            _ = try copy.copyContent(of: self.file)
            // Permissions that the file system does not keep are not retried.
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
            // A link cannot replace: the content first gets a temporary name, which is renamed over the target.
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
