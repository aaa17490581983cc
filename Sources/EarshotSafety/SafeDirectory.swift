internal import Glibc

internal import CLinux

/// A directory held by descriptor, below which everything happens by name and nothing follows a symbolic link.
///
/// An operation stays in this directory even where something is planted in it while we work: names are `SafeName`s, files are opened with
/// `openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)`, and new content is written to a file that has no name
/// (or a random one) and then published at once under its own, by calls that replace nothing unless told to.
package final class SafeDirectory: Sendable {
    /// What to do when the name is taken.
    package enum Conflict: String, Sendable, Hashable, CaseIterable {
        /// `name (2).ext`, and so on.
        case rename
        /// Replace the entry; a symbolic link is itself replaced, not what it points to.
        case overwrite
        /// Leave what is there, and publish nothing.
        case skip
    }

    /// How many numbers `rename` tries before it gives up.
    package static let numberingLimit = 10_000

    /// The path that it was opened by, for messages.
    package let path: String
    /// The descriptor; valid while this object lives.
    package let descriptor: CInt

    /// Opens a directory that a person or the configuration chose: the path itself may lead through symbolic links.
    ///
    /// With `create`, missing directories on the way are made with that mode.
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
                // A parent that may not be written to, or a read-only one, may well exist already.
                let code = errno
                var status = stat()
                guard stat(partial, &status) == 0 else { throw FileError("make the directory", partial, code: code) }
            }
        }
    }

    /// Opens the directory of that name below this one, making it first if it is missing.
    package func subdirectory(_ name: SafeName, create mode: UInt32? = nil) throws(FileError) -> SafeDirectory {
        if let mode, mkdirat(self.descriptor, name.description, mode) != 0, errno != EEXIST {
            throw FileError("make the directory", self.subject(name))
        }
        let descriptor = try self.openBeneath(name, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        return SafeDirectory(path: self.subject(name), descriptor: descriptor)
    }

    /// Opens the file of that name; never through a symbolic link (ELOOP).
    package func open(_ name: SafeName, flags: CInt = O_RDONLY, mode: UInt32 = 0o600) throws(FileError) -> OpenFile {
        OpenFile(descriptor: try self.openBeneath(name, flags: flags | O_NOCTTY, mode: mode), subject: self.subject(name))
    }

    private func openBeneath(_ name: SafeName, flags: CInt, mode: UInt32) throws(FileError) -> CInt {
        var descriptor = earshot_open_beneath(self.descriptor, name.description, flags, mode)
        if descriptor < 0, errno == ENOSYS {
            // Old kernels and narrow sandboxes: for a single component, which a SafeName is, O_NOFOLLOW promises the same.
            descriptor = openat(self.descriptor, name.description, flags | O_NOFOLLOW | O_CLOEXEC, mode)
        }
        guard descriptor >= 0 else { throw FileError("open", self.subject(name)) }
        return descriptor
    }

    /// Removes the file, or the link, of that name; whether there was one.
    @discardableResult
    package func remove(_ name: SafeName) throws(FileError) -> Bool {
        if unlinkat(self.descriptor, name.description, 0) == 0 { return true }
        guard errno == ENOENT else { throw FileError("remove", self.subject(name)) }
        return false
    }

    /// The size in bytes of the ordinary file of that name; `nil` when there is none. A link is not followed, a pipe not waited for.
    package func size(of name: SafeName) throws(FileError) -> UInt64? {
        guard let status = try self.status(of: name), status.kind == .regular else { return nil }
        return status.size
    }

    /// Moves an entry into another directory of the same file system; EEXIST when the name is taken there.
    package func move(_ name: SafeName, to other: SafeDirectory, as newName: SafeName) throws(FileError) {
        guard Self.renameWithoutReplacing(self, name, other, newName) else { throw FileError("move", self.subject(name)) }
    }

    /// Gives a file another name beside its own; EEXIST when that is taken.
    package func link(_ name: SafeName, as newName: SafeName) throws(FileError) {
        guard linkat(self.descriptor, name.description, self.descriptor, newName.description, 0) == 0 else {
            throw FileError("link", self.subject(newName))
        }
    }

    /// Whether anything has that name: a link counts, wherever it leads.
    package func has(_ name: SafeName) throws(FileError) -> Bool { try self.status(of: name) != nil }

    /// What the kernel knows of the entry of that name, a link itself and not what it leads to; `nil` when there is none.
    package func status(of name: SafeName) throws(FileError) -> FileStatus? {
        if let status = FileStatus(of: name, in: self.descriptor) { return status }
        guard errno == ENOENT else { throw FileError("look at", self.subject(name)) }
        return nil
    }

    /// What the kernel knows of the directory itself.
    package func status() throws(FileError) -> FileStatus {
        guard let status = FileStatus(descriptor: self.descriptor) else { throw FileError("look at", self.path) }
        return status
    }

    /// Whether this process may make files here, by the kernel's word; a read-only file system is a reason too.
    package func checkWritable() throws(FileError) {
        guard faccessat(self.descriptor, ".", W_OK | X_OK, AT_EACCESS) == 0 else { throw FileError("write to", self.path) }
    }

    /// The names in the directory but for `.` and `..`, in no order; names that are no `SafeName` are left out.
    package func entries() throws(FileError) -> [SafeName] {
        // A description of its own: a duplicated one would share its position with the next reader.
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
        // Some file systems of the network and of FUSE know no fsync of a directory; there is nothing better to do there.
        guard fsync(self.descriptor) == 0 || errno == EINVAL else { throw FileError("save", self.path) }
    }

    /// How large a file system is, and what is free there for an ordinary user, in bytes or in entries.
    package struct Space: Sendable, Hashable {
        package let total: UInt64
        package let free: UInt64

        /// A space from its parts.
        package init(total: UInt64, free: UInt64) {
            self.total = total
            self.free = free
        }
    }

    /// The space of the file system that the directory lies on.
    package func space() throws(FileError) -> Space {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        let unit = UInt64(status.f_frsize)
        return Space(
            total: UInt64(status.f_blocks).multipliedClamped(by: unit), free: UInt64(status.f_bavail).multipliedClamped(by: unit))
    }

    /// What the file system sets aside at a time, in bytes, as it says.
    package func blockSize() throws(FileError) -> UInt64 {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        return UInt64(status.f_frsize)
    }

    /// Whether the file system is in memory (tmpfs). Setting blocks aside there means to find every single page: as long as writing takes.
    package var isInMemory: Bool { earshot_is_in_memory(self.descriptor) != 0 }

    /// Whether each entry has to be brought to disk by itself, as one call for the whole file system does nothing (FUSE, eCryptfs).
    package var isSavedByEntry: Bool { earshot_is_saved_by_entry(self.descriptor) != 0 }

    /// How many entries the directory's file system has room for; `nil` where it knows no such limit, as btrfs does not.
    package func entrySpace() throws(FileError) -> Space? {
        var status = statvfs()
        guard fstatvfs(self.descriptor, &status) == 0 else { throw FileError("look at the free space of", self.path) }
        return status.f_files == 0 ? nil : Space(total: UInt64(status.f_files), free: UInt64(status.f_favail))
    }

    /// Whether the two are reached by different mounts, between which nothing can be linked or moved, of one file system either (link(2)). A
    /// kernel before Linux 5.8 does not say: then they count as one.
    package func isMountedApart(from other: SafeDirectory) -> Bool {
        var (own, others): (UInt64, UInt64) = (0, 0)
        guard earshot_mount(self.descriptor, &own) == 0, earshot_mount(other.descriptor, &others) == 0 else { return false }
        return own != others
    }

    /// How errors name an entry.
    package func subject(_ name: SafeName) -> String { "\(self.path)/\(name.description)" }

    /// Whether the entry was moved; errno when not. Never replaces anything.
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
