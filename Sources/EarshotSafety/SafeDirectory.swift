internal import Glibc

internal import CLinux

/// A directory held by descriptor. All operations below it are by name and follow no symbolic link.
///
/// An operation stays in this directory even if another process plants something in it meanwhile. Names are `SafeName`s, files are opened
/// with `openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)`. New content is written to a file without a name (or with
/// a random one) and then published atomically under its own, by calls that replace nothing unless told to.
package final class SafeDirectory: Sendable {
    /// The action if the name is taken.
    package enum Conflict: String, Sendable, Hashable, CaseIterable {
        /// `name (2).ext`, and so on.
        case rename
        /// Replace the entry. A symbolic link is replaced itself, not its target.
        case overwrite
        /// Keep the existing entry, and publish nothing.
        case skip
    }

    /// The most numbers that `rename` tries before it fails.
    package static let numberingLimit = 10_000

    /// The path by which it was opened, for messages.
    package let path: String
    /// The descriptor, valid while this object lives.
    package let descriptor: CInt

    /// Opens a directory that the user or the configuration chose: the path itself may contain symbolic links.
    ///
    /// With `create`, missing directories of the path are created with that mode.
    package init(path: String, create mode: UInt32? = nil) throws(FileError) {
        guard !path.utf8.isEmpty, !path.utf8.contains(0) else { throw FileError("open", path, code: EINVAL) }
        if let mode { try Self.makeDirectories(path, mode: mode) }
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError("open", path) }
        self.path = path
        self.descriptor = descriptor
    }

    private init(path: String, descriptor: CInt) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        close(self.descriptor)
    }

    private static func makeDirectories(_ path: String, mode: UInt32) throws(FileError) {
        let bytes = Array(path.utf8)
        let slashes = bytes.indices.dropFirst().filter { bytes[$0] == UInt8(ascii: "/") }
        for end in slashes + [bytes.count] {
            let partial = String(decoding: bytes[..<end], as: UTF8.self)
            if mkdir(partial, mode) != 0, errno != EEXIST {
                // A parent that is not writable, or read-only, may already exist.
                let code = errno
                var status = stat()
                guard stat(partial, &status) == 0 else { throw FileError("make the directory", partial, code: code) }
            }
        }
    }

    /// Opens the directory of that name below this one, creating it first if it is missing.
    package func subdirectory(_ name: SafeName, create mode: UInt32? = nil) throws(FileError) -> SafeDirectory {
        if let mode, mkdirat(self.descriptor, name.description, mode) != 0, errno != EEXIST {
            throw FileError("make the directory", self.subject(name))
        }
        let descriptor = try self.openBeneath(name, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        return SafeDirectory(path: self.subject(name), descriptor: descriptor)
    }

    /// Opens the file of that name, never through a symbolic link (ELOOP).
    package func open(_ name: SafeName, flags: CInt = O_RDONLY, mode: UInt32 = 0o600) throws(FileError) -> OpenFile {
        OpenFile(descriptor: try self.openBeneath(name, flags: flags | O_NOCTTY, mode: mode), subject: self.subject(name))
    }

    private func openBeneath(_ name: SafeName, flags: CInt, mode: UInt32) throws(FileError) -> CInt {
        var descriptor = earshot_open_beneath(self.descriptor, name.description, flags, mode)
        if descriptor < 0, errno == ENOSYS {
            // For old kernels and narrow sandboxes. O_NOFOLLOW gives the same guarantee for a single component, which a SafeName is.
            descriptor = openat(self.descriptor, name.description, flags | O_NOFOLLOW | O_CLOEXEC, mode)
        }
        guard descriptor >= 0 else { throw FileError("open", self.subject(name)) }
        return descriptor
    }

    /// Removes the file or link of that name. Returns whether it existed.
    @discardableResult
    package func remove(_ name: SafeName) throws(FileError) -> Bool {
        if unlinkat(self.descriptor, name.description, 0) == 0 { return true }
        guard errno == ENOENT else { throw FileError("remove", self.subject(name)) }
        return false
    }

    /// Returns the size in bytes of the regular file of that name; `nil` if there is none. Does not follow a link or wait for a pipe.
    package func size(of name: SafeName) throws(FileError) -> UInt64? {
        guard let status = try self.status(of: name), status.kind == .regular else { return nil }
        return status.size
    }

    /// Moves an entry into another directory of the same file system; fails with EEXIST if the name is taken there.
    package func move(_ name: SafeName, to other: SafeDirectory, as newName: SafeName) throws(FileError) {
        guard Self.renameWithoutReplacing(self, name, other, newName) else { throw FileError("move", self.subject(name)) }
    }

    /// Gives a file a second name; fails with EEXIST if that is taken.
    package func link(_ name: SafeName, as newName: SafeName) throws(FileError) {
        guard linkat(self.descriptor, name.description, self.descriptor, newName.description, 0) == 0 else {
            throw FileError("link", self.subject(newName))
        }
    }

    /// Whether an entry has that name. A link counts regardless of its target.
    package func has(_ name: SafeName) throws(FileError) -> Bool { try self.status(of: name) != nil }

    /// Returns the kernel's status of the entry of that name, without following a link; `nil` if there is none.
    package func status(of name: SafeName) throws(FileError) -> FileStatus? {
        if let status = FileStatus(of: name.description, in: self.descriptor) { return status }
        guard errno == ENOENT else { throw FileError("look at", self.subject(name)) }
        return nil
    }

    /// Returns the kernel's status of the directory itself.
    package func status() throws(FileError) -> FileStatus {
        guard let status = FileStatus(descriptor: self.descriptor) else { throw FileError("look at", self.path) }
        return status
    }

    /// Checks with the kernel that this process may create files here. A read-only file system fails too.
    package func checkWritable() throws(FileError) {
        guard faccessat(self.descriptor, ".", W_OK | X_OK, AT_EACCESS) == 0 else { throw FileError("write to", self.path) }
    }

    /// Returns the names in the directory except `.` and `..`, in no order. Names that are not valid `SafeName`s are left out.
    package func entries() throws(FileError) -> [SafeName] {
        // A new file description: a duplicated descriptor would share its position with the next reader.
        let copy = openat(self.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { throw FileError("list", self.path) }
        guard let stream = fdopendir(copy) else {
            let error = FileError("list", self.path)
            close(copy)
            throw error
        }
        defer { closedir(stream) }
        var names: [SafeName] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw FileError("list", self.path) }
                return names
            }
            let text = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
            if let name = try? SafeName(text) { names.append(name) }
        }
    }

    /// Waits until the directory's entries are on disk.
    package func sync() throws(FileError) {
        // Some network and FUSE file systems do not support fsync of a directory, and offer no alternative.
        guard fsync(self.descriptor) == 0 || errno == EINVAL else { throw FileError("save", self.path) }
    }

    /// The size of a file system, and the part that is free for an ordinary user, in bytes or in entries.
    package struct Space: Sendable, Hashable {
        package let total: UInt64
        package let free: UInt64

        /// Creates a space from its parts.
        package init(total: UInt64, free: UInt64) {
            self.total = total
            self.free = free
        }
    }

    /// Returns the space of the file system that holds the directory.
    package func space() throws(FileError) -> Space {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        let unit = UInt64(status.f_frsize)
        return Space(
            total: UInt64(status.f_blocks).multipliedClamped(by: unit), free: UInt64(status.f_bavail).multipliedClamped(by: unit))
    }

    /// Returns the file system's allocation unit, in bytes, as reported.
    package func blockSize() throws(FileError) -> UInt64 {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        return UInt64(status.f_frsize)
    }

    /// Whether the file system is in memory (tmpfs). Reserving blocks there allocates every page, which takes as long as writing.
    package var isInMemory: Bool { earshot_is_in_memory(self.descriptor) != 0 }

    /// Whether each entry must be synced separately, because one call for the whole file system has no effect (FUSE, eCryptfs).
    package var isSavedByEntry: Bool { earshot_is_saved_by_entry(self.descriptor) != 0 }

    /// Returns the number of entries that the file system has room for; `nil` if it has no such limit, like btrfs.
    package func entrySpace() throws(FileError) -> Space? {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        return status.f_files == 0 ? nil : Space(total: UInt64(status.f_files), free: UInt64(status.f_favail))
    }

    /// Whether the two directories are on different mounts, between which entries cannot be linked or moved, even on one file system
    /// (link(2)). A kernel before Linux 5.8 does not tell; the directories then count as on one mount.
    package func isMountedApart(from other: SafeDirectory) -> Bool {
        var (own, others): (UInt64, UInt64) = (0, 0)
        guard earshot_mount(self.descriptor, &own) == 0, earshot_mount(other.descriptor, &others) == 0 else { return false }
        return own != others
    }

    /// Returns an entry's name for errors.
    package func subject(_ name: SafeName) -> String { "\(self.path)/\(name.description)" }

    /// Moves an entry without replacing another. Returns whether it was moved; if not, errno is set.
    static func renameWithoutReplacing(_ from: SafeDirectory, _ name: SafeName, _ to: SafeDirectory, _ newName: SafeName) -> Bool {
        earshot_rename_no_replace(from.descriptor, name.description, to.descriptor, newName.description) == 0
    }
}

extension UInt64 {
    fileprivate func multipliedClamped(by other: UInt64) -> UInt64 {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
