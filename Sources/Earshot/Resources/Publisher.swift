package import EarshotSafety

internal import EarshotTree
internal import Glibc

/// Puts received content, whole and checked, into the directory that a person chose for it, under the name that its sender gave.
///
/// The name is a `SafeName`, everything happens below the directory's descriptor, and the content appears at once or not at all: as a
/// hard link where the spool is on the same file system, else as a copy that is on disk before it gets its name. Either way the spool
/// keeps its own until the caller has recorded where the content is, so that no moment exists in which it is nowhere.
///
/// The directory is opened anew for each file: it may have been mounted, replaced or reconfigured since the last one. The work is long
/// (a copy, an fsync of gigabytes), hence a thread of its own: the spool goes on meanwhile.
package actor Publisher {
    /// How content is put in place.
    package struct Destination: Sendable, Hashable {
        /// The directory, as it was configured.
        package let directory: String
        /// What to do when a name is taken there.
        package let conflict: SafeDirectory.Conflict
        /// The part of its file system that is left free, 0 to 1.
        package let reserve: Double

        /// A destination from its parts.
        package init(directory: String, conflict: SafeDirectory.Conflict, reserve: Double) {
            self.directory = directory
            self.conflict = conflict
            self.reserve = reserve
        }

        /// The same for what was received a while ago: what has its name by then may be newer, so that nothing is replaced.
        var replacingNothing: Destination {
            Destination(
                directory: self.directory, conflict: self.conflict == .overwrite ? .rename : self.conflict, reserve: self.reserve)
        }
    }

    /// Where a resource's content lies in the spool.
    package struct Content: Sendable {
        let directory: SafeDirectory
        let name: SafeName
        let size: UInt64
        /// Whether it is a tree.
        let isTree: Bool
    }

    /// How much is copied at once, in bytes.
    private static let copySize = 1024 * 1024

    /// What it has in the making in other directories than the spool.
    let notes: PartNotes
    private let executor: ThreadExecutor

    /// The publisher's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread; what it has in the making elsewhere is noted in `notes`, a directory of the spool.
    package init(notes: SafeDirectory) throws(EarshotError) {
        self.notes = PartNotes(directory: notes)
        self.executor = try ThreadExecutor(name: "earshot-publish")
    }

    deinit {
        self.executor.stop()
    }

    /// Whether files can be put into the directory, for the start.
    /// - Throws: `invalid-parameter` where it is missing, no directory, or not to be written to.
    package static func check(_ directory: String) throws(EarshotError) {
        do throws(FileError) {
            try SafeDirectory(path: directory).checkWritable()
        } catch {
            // The packaged service sees all but its own places as read-only, whatever the permissions there.
            let remedy =
                error.code == EROFS
                ? "mount it to be written to; a service must be allowed it by ReadWritePaths in its unit (systemctl edit)"
                : "make the directory, or let this user write to it"
            throw EarshotError(.invalidParameter, "received files cannot be put there: \(error); \(remedy)", underlying: error)
        }
    }

    /// Gives the content its name, durably; returns the path, or `nil` where the name is taken and nothing is to be replaced or renamed.
    ///
    /// Who may read the directory may read the file: its permissions are the directory's. Readers may execute the file only if its owner could
    /// where it came from.
    /// - Throws: `no-space`, `storage`; nothing has appeared then, but for a directory of which it is not known whether it is on disk there.
    package func publish(_ content: Content, as name: SafeName, _ destination: Destination) throws(EarshotError) -> String? {
        content.isTree ? try self.publishTree(content, as: name, destination) : try self.publishFile(content, as: name, destination)
    }

    private func publishFile(_ content: Content, as name: SafeName, _ destination: Destination) throws(EarshotError) -> String? {
        do {
            let directory = try SafeDirectory(path: destination.directory)
            let notes = self.notes
            let published = try Confinement.reaching([content.directory, notes.directory, directory]) { () throws -> SafeName? in
                do {
                    return try Self.link(content, as: name, in: directory, destination.conflict, notes)
                } catch let error as FileError where TemporaryFile.linkFailures.contains(error.code) {
                    // Others may have filled the disk since the offer.
                    try Self.checkRoom(content.size, entries: 1, in: directory, reserve: destination.reserve)
                    let part = try notes.add(in: directory)
                    defer { notes.settle(part, in: directory) }
                    return try Self.copy(content, as: name, in: directory, destination.conflict, part: part)
                }
            }
            return published.map(directory.subject)
        } catch {
            throw Self.error(error)
        }
    }

    /// Removes what a run that was killed had in the making elsewhere, and returns how much that was.
    package func removeLeftParts() -> Int { self.notes.removeParts() }

    private static func link(
        _ content: Content, as name: SafeName, in directory: SafeDirectory, _ conflict: SafeDirectory.Conflict, _ notes: PartNotes
    ) throws(FileError) -> SafeName? {
        let isElsewhere = try directory.status().device != content.directory.status().device
        guard !isElsewhere else { throw FileError("link", directory.subject(name), code: EXDEV) }
        // Replacing takes a name of its own for a moment.
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
        var offset: UInt64 = 0
        while offset < content.size {
            let bytes = try source.bytes(at: offset, count: Self.copySize)
            guard !bytes.isEmpty else { throw FileError("read", source.subject, code: EIO) }
            try copy.file.write(bytes, at: offset, leavingHoles: attributes.hasHoles)
            offset += UInt64(bytes.count)
        }
        try Self.prepare(copy.file, for: directory, attributes)
        return try copy.publish(as: name, onConflict: conflict)
    }

    private static func prepare(_ file: OpenFile, for directory: SafeDirectory, _ attributes: FileAttributes) throws(FileError) {
        let status = try directory.status()
        file.setGroup(status.group)
        do throws(FileError) {
            try file.setMode(status.mode & 0o666 | 0o600)
        } catch let error where FileError.keepsNoPermissions(error.code) {
            // All files have the same there.
        }
        file.apply(attributes)
    }

    /// Whether so much fits into a directory beyond what is to be left free of its file system, where that says how large it is. Throws
    /// `no-space` where it does not.
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

    /// What the sender is told too: without the path.
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
    /// What may be taken when a part of the whole, 0 to 1, stays free.
    func usable(reserve: Double) -> UInt64 {
        // Some file systems name the largest number for entries without a limit, which is rounded up to one too many.
        let kept = UInt64(exactly: (Double(self.total) * min(max(reserve, 0), 1)).rounded(.down)) ?? .max
        return self.free > kept ? self.free - kept : 0
    }
}
