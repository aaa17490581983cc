package import EarshotSafety

internal import EarshotTree
internal import Glibc

/// Publishes received content, complete and verified, into the directory that the user chose, under the name from the sender.
///
/// The name is a `SafeName`, and all operations are relative to the directory's descriptor. The content appears atomically: as a hard link
/// if the spool is on the same file system, else as a copy that is on disk before it gets its name. The spool keeps its own content until
/// the caller has recorded the path, so that the content always exists somewhere.
///
/// The directory is opened again for each file, because it may have been mounted, replaced or reconfigured since the last one. Publishing
/// takes long (a copy, an fsync of gigabytes), so it has a thread of its own, and the spool is not blocked.
package actor Publisher {
    /// The settings for publishing content.
    package struct Destination: Sendable, Hashable {
        /// The configured directory.
        package let directory: String
        /// The action if a name is in use there.
        package let conflict: SafeDirectory.Conflict
        /// The part of the directory's file system to leave free, 0 to 1.
        package let reserve: Double
        /// The path below the directory, whose missing directories are created.
        package var folder: SafeRelativePath?

        /// Creates a destination from its parts.
        package init(directory: String, conflict: SafeDirectory.Conflict, reserve: Double) {
            self.directory = directory
            self.conflict = conflict
            self.reserve = reserve
        }

        /// The same destination for content that was received earlier. Nothing is replaced, because the existing file may be newer.
        var replacingNothing: Destination {
            Destination(
                directory: self.directory, conflict: self.conflict == .overwrite ? .rename : self.conflict, reserve: self.reserve)
        }

        /// The same destination without conflicts.
        var renaming: Destination { Destination(directory: self.directory, conflict: .rename, reserve: self.reserve) }

        /// Returns the same destination with a folder below it.
        /// - Throws: `name-rejected` for a folder that is not a path below the directory.
        package func under(_ folder: String?) throws(EarshotError) -> Destination {
            guard let folder else { return self }
            var destination = self
            do {
                destination.folder = try SafeRelativePath(folder)
            } catch {
                throw EarshotError(.nameRejected, "\(error)", underlying: error)
            }
            return destination
        }
    }

    /// The location of a resource's content in the spool.
    package struct Content: Sendable {
        let directory: SafeDirectory
        let name: SafeName
        let size: UInt64
        /// Whether the content is a tree.
        let isTree: Bool
    }

    /// Notes of unfinished parts in directories outside the spool.
    let notes: PartNotes
    private let executor: ThreadExecutor

    /// The executor of the publisher's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread. `notes` is a directory of the spool for the notes of unfinished parts elsewhere.
    package init(notes: SafeDirectory) throws(EarshotError) {
        self.notes = PartNotes(directory: notes)
        self.executor = try ThreadExecutor(name: "earshot-publish")
    }

    deinit {
        self.executor.stop()
    }

    /// Checks at the start whether files can be published into the directory.
    /// - Throws: `invalid-parameter` if it is missing, is not a directory, or is not writable.
    package static func check(_ directory: String) throws(EarshotError) {
        do throws(FileError) {
            try SafeDirectory(path: directory).checkWritable()
        } catch {
            // For the packaged service, everything outside its own directories is read-only, whatever the permissions there.
            let remedy =
                error.code == EROFS
                ? "mount it to be written to; a service must be allowed it by ReadWritePaths in its unit (systemctl edit)"
                : "make the directory, or let this user write to it"
            throw EarshotError(.invalidParameter, "received files cannot be put there: \(error); \(remedy)", underlying: error)
        }
    }

    /// Gives the content its name, durably. Returns the path, or `nil` if the name is in use and the policy allows neither replacing nor
    /// renaming.
    ///
    /// The file's read permissions are those of the directory. Readers may execute the file only if its owner on the sender could.
    /// - Throws: `no-space`, `storage`. Nothing has appeared then, except possibly a directory whose sync has failed.
    package func publish(_ content: Content, as name: SafeName, _ destination: Destination) throws(EarshotError) -> String? {
        content.isTree ? try self.publishTree(content, as: name, destination) : try self.publishFile(content, as: name, destination)
    }

    private func publishFile(_ content: Content, as name: SafeName, _ destination: Destination) throws(EarshotError) -> String? {
        do {
            let root = try SafeDirectory(path: destination.directory)
            let notes = self.notes
            return try Confinement.reaching([content.directory, notes.directory, root]) { () throws -> String? in
                let directory = try Self.directory(destination.folder, in: root)
                do {
                    return try Self.link(content, as: name, in: directory, destination.conflict, notes).map(directory.subject)
                } catch let error as FileError where TemporaryFile.linkFailures.contains(error.code) {
                    // Other programs may have filled the disk since the offer.
                    try Self.checkRoom(content.size, entries: 1, in: directory, reserve: destination.reserve)
                    let part = try notes.add(in: directory)
                    defer { notes.settle(part, in: directory) }
                    return try Self.copy(content, as: name, in: directory, destination.conflict, part: part).map(directory.subject)
                }
            }
        } catch {
            throw Self.error(error)
        }
    }

    /// Opens the folder of a file, and creates its missing directories durably, with the permissions of the directory above.
    private static func directory(_ folder: SafeRelativePath?, in root: SafeDirectory) throws(FileError) -> SafeDirectory {
        var directory = root
        for name in folder?.components ?? [] {
            let isNew = try !directory.has(name)
            let next = try directory.subdirectory(name, create: try directory.status().mode & 0o777 | 0o700)
            if isNew { try directory.sync() }
            directory = next
        }
        return directory
    }

    /// Removes the unfinished parts of killed runs, and returns their number.
    package func removeLeftParts() -> Int { self.notes.removeParts() }

    private static func link(
        _ content: Content, as name: SafeName, in directory: SafeDirectory, _ conflict: SafeDirectory.Conflict, _ notes: PartNotes
    ) throws(FileError) -> SafeName? {
        let isElsewhere = try directory.status().device != content.directory.status().device
        guard !isElsewhere else { throw FileError("link", directory.subject(name), code: EXDEV) }
        // Replacing needs a temporary name.
        let part = conflict == .overwrite ? try notes.add(in: directory) : nil
        defer { if let part { notes.settle(part, in: directory) } }
        let file = try TemporaryFile(in: directory, linking: content.name, of: content.directory, part: part)
        try Self.prepare(file.file, for: directory, try file.file.attributes())
        return try file.publish(as: name, onConflict: conflict)
    }

    private static func copy(
        _ content: Content, as name: SafeName, in directory: SafeDirectory, _ conflict: SafeDirectory.Conflict, part: SafeName
    ) throws(FileError) -> SafeName? {
        let source = try content.directory.open(content.name)
        let attributes = try source.attributes()
        let copy = try TemporaryFile(in: directory, mode: 0o600, part: part)
        if !attributes.hasHoles { try copy.file.reserve(content.size) }
        guard try copy.file.copyContent(of: source) >= content.size else { throw FileError("read", source.subject, code: EIO) }
        try Self.prepare(copy.file, for: directory, attributes)
        return try copy.publish(as: name, onConflict: conflict)
    }

    private static func prepare(_ file: OpenFile, for directory: SafeDirectory, _ attributes: FileAttributes) throws(FileError) {
        let status = try directory.status()
        file.setGroup(status.group)
        do throws(FileError) {
            try file.setMode(status.mode & 0o666 | 0o600)
        } catch let error where FileError.keepsNoPermissions(error.code) {
            // All files have the same permissions there.
        }
        file.apply(attributes)
    }

    /// Checks whether content fits into a directory, in addition to the space that has to stay free. Passes if the file system does not
    /// report its size.
    /// - Throws: `no-space`.
    static func checkRoom(_ bytes: UInt64, entries: UInt64, in directory: SafeDirectory, reserve: Double) throws {
        let space = try directory.space()
        let usable = space.usable(reserve: reserve)
        guard bytes <= usable || space.total == 0 else {
            throw EarshotError(.noSpace, "\(bytes) bytes do not fit where received files go: \(usable) are free beyond the reserve")
        }
        guard let left = try directory.entrySpace()?.usable(reserve: reserve), entries > left else { return }
        throw EarshotError(
            .noSpace, "where received files go there is room for \(left) more entries beyond the reserve, and \(entries) are needed")
    }

    /// Returns the error for a name in use. The sender receives it too, so it does not contain the path.
    package static func taken(_ name: SafeName) -> EarshotError {
        EarshotError(.conflict, "a file \"\(name.description.escapedForDisplay)\" is there already; send it under another name")
    }

    static func error(_ error: any Error) -> EarshotError {
        switch error {
        case let error as EarshotError: error
        case let error as TreeError: EarshotError(error)
        case let error as FileError: EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error)", underlying: error)
        default: EarshotError(.storage, "a received file could not be put in place", underlying: error)
        }
    }
}

extension SafeDirectory.Space {
    /// Returns the usable part if a part of the whole, 0 to 1, has to stay free.
    func usable(reserve: Double) -> UInt64 {
        // Some file systems report the largest number if entries are unlimited. As a Double, that is rounded up to one too many.
        let kept = UInt64(exactly: (Double(self.total) * min(max(reserve, 0), 1)).rounded(.down)) ?? .max
        return self.free > kept ? self.free - kept : 0
    }
}
