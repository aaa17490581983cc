internal import EarshotSafety

internal import CLinux
internal import EarshotTree
internal import Glibc

/// Publishing directories. On the same file system, a directory is moved out of the spool in one step. Otherwise it is copied beside its
/// destination and renamed.
extension Publisher {
    /// The size of one copy step, in bytes.
    private static let treeCopySize = 1024 * 1024

    /// Publishes a tree. A replaced directory is moved into the spool, and removed with the rest of the tree.
    func publishTree(_ content: Content, as name: SafeName, _ destination: Destination) throws(EarshotError) -> String? {
        do {
            let directory = try SafeDirectory(path: destination.directory)
            let notes = self.notes
            return try Confinement.reaching([content.directory, notes.directory, directory]) {
                try Self.putTree(content, as: name, in: directory, destination, notes)
            }
        } catch {
            throw Self.error(error)
        }
    }

    private static func putTree(
        _ content: Content, as name: SafeName, in directory: SafeDirectory, _ destination: Destination, _ notes: PartNotes
    ) throws -> String? {
        let tree = try SpooledTree(content.name, in: content.directory)
        let outer = try content.directory.subdirectory(content.name)
        let inner = try SafeName(SpooledTree.Part.tree)
        // A directory with the set-group-ID bit passes its group on to new entries. The same is done for entries that were only moved
        // there.
        let sharing = TreePermissions.Sharing(of: try directory.status())
        let moved = try Self.move(inner, of: outer, to: directory, as: name, destination.conflict)
        let placing = try moved ?? Self.copy(tree, as: name, to: directory, destination, sharing, noting: outer, notes)
        guard case .placed(let published) = placing else { return nil }
        // The tree is published now, even if setting its permissions fails. Without them, its owner has more access and nobody else has
        // any.
        if let placed = try? directory.subdirectory(published) {
            if moved != nil { try? TreePermissions.apply(tree.manifest, to: placed, sharing: sharing) }
            try? TreePermissions.applyToRoot(tree.manifest, placed, sharing: sharing)
        }
        do {
            try directory.sync()
        } catch {
            // A loss of power may undo the publication, so it is not reported as a success. The spool keeps its content, or the notes with
            // which the next start finds the tree in either place.
            let place = directory.subject(published).escapedForDisplay
            throw EarshotError(.storage, "it was put at \(place), and may not be on disk there: \(error)", underlying: error)
        }
        return directory.subject(published)
    }

    /// The outcome of publishing a directory.
    private enum Placing {
        case placed(SafeName)
        /// The name is in use, and the conflict policy allows neither replacing nor renaming.
        case taken
    }

    /// Moves a directory to its destination. Returns `nil` if the two are on different file systems.
    private static func move(
        _ source: SafeName, of outer: SafeDirectory, to directory: SafeDirectory, as name: SafeName, _ conflict: SafeDirectory.Conflict
    ) throws -> Placing? {
        do {
            guard let inode = try outer.status(of: source)?.inode else { throw FileError("look at", outer.subject(source), code: ENOENT) }
            try SpooledTree.note("\(inode)", as: SpooledTree.Part.inode, in: outer)
            return try Self.place(source, of: outer, as: name, in: directory, conflict, noting: outer)
        } catch let error as FileError where error.code == EXDEV {
            return nil
        }
    }

    private static func copy(
        _ tree: SpooledTree, as name: SafeName, to directory: SafeDirectory, _ destination: Destination,
        _ sharing: TreePermissions.Sharing?, noting outer: SafeDirectory, _ notes: PartNotes
    ) throws -> Placing {
        // At the offer, only the size of the tree was known.
        let room = tree.manifest.room(on: DiskBlocks(size: try directory.blockSize()))
        try Self.checkRoom(room, entries: UInt64(tree.manifest.count), in: directory, reserve: destination.reserve)
        let copy = try notes.add(in: directory)
        defer {
            // Removes the replaced directory, or the copy if it is not needed.
            _ = try? TreeRemoval.remove(copy, from: directory)
            notes.settle(copy, in: directory)
        }
        let root = try directory.subdirectory(copy, create: 0o700)
        PartName.lock(root.descriptor)
        try Self.copy(tree, to: root, sharing)
        var isPlaced = false
        defer {
            // Removes the note of the copy's inode: the next directory at the destination may get the same number, and must not be
            // mistaken for the copy.
            if !isPlaced, let note = try? SafeName(SpooledTree.Part.inode) { _ = try? outer.remove(note) }
        }
        let inode = try root.status().inode
        // If this run is killed before it can record the publication, the next start recognises the copy by its inode.
        try SpooledTree.note("\(inode)", as: SpooledTree.Part.inode, in: outer)
        let placing = try Self.place(copy, of: directory, as: name, in: directory, destination.conflict, noting: outer)
        if case .placed = placing { isPlaced = true }
        return placing
    }

    private static func copy(_ tree: SpooledTree, to directory: SafeDirectory, _ sharing: TreePermissions.Sharing?) throws {
        let reader = TreeReader(tree.directory, manifest: tree.manifest)
        let writer = TreeWriter(into: directory, size: tree.size)
        var offset: UInt64 = 0
        while case let bytes = try reader.bytes(at: offset, count: Self.treeCopySize), !bytes.isEmpty {
            offset += UInt64(bytes.count)
            var rest = bytes[...]
            while !rest.isEmpty {
                let taken = try rest.withUnsafeBytes { try writer.write($0) }
                rest = rest.dropFirst(taken)
            }
        }
        try writer.finish()
        try TreeSync.sync(tree.manifest, in: directory)
        // Applied before the sync, so that only the root's permissions are missing after the rename.
        try TreePermissions.apply(tree.manifest, to: directory, sharing: sharing)
        guard earshot_sync_file_system(directory.descriptor) == 0 else { throw FileError("save", directory.path) }
    }

    /// Moves the directory `source` of `from` to its destination. Notes the destination first, for the next start.
    private static func place(
        _ source: SafeName, of from: SafeDirectory, as wanted: SafeName, in directory: SafeDirectory, _ conflict: SafeDirectory.Conflict,
        noting notes: SafeDirectory
    ) throws -> Placing {
        for number in 1...SafeDirectory.numberingLimit {
            let candidate = number == 1 ? wanted : wanted.numbered(number)
            try SpooledTree.note(directory.subject(candidate), as: SpooledTree.Part.target, in: notes)
            if earshot_rename_no_replace(from.descriptor, source.description, directory.descriptor, candidate.description) == 0 {
                return .placed(candidate)
            }
            guard errno == EEXIST || errno == ENOTEMPTY else { throw FileError("create", directory.subject(candidate)) }
            switch conflict {
            case .rename: continue
            case .skip: return .taken
            case .overwrite:
                try Self.exchange(source, of: from, with: candidate, in: directory)
                return .placed(candidate)
            }
        }
        throw FileError("find a free name for", directory.subject(wanted), code: EEXIST)
    }

    /// Exchanges two entries atomically, whatever their kinds. Neither is missing at any time.
    static func exchange(
        _ source: SafeName, of from: SafeDirectory, with name: SafeName, in directory: SafeDirectory
    ) throws(FileError) {
        func exchange() -> Bool { earshot_exchange(from.descriptor, source.description, directory.descriptor, name.description) == 0 }
        if exchange() { return }
        // A write-protected directory cannot be moved to another parent, not even by its owner.
        guard errno == EACCES, let status = try directory.status(of: name), status.kind == .directory, status.mode & 0o700 != 0o700 else {
            throw FileError("replace", directory.subject(name))
        }
        TreeRemoval.unlock(name, in: directory)
        if exchange() { return }
        let error = FileError("replace", directory.subject(name))
        _ = fchmodat(directory.descriptor, name.description, mode_t(status.mode), AT_SYMLINK_NOFOLLOW)
        throw error
    }
}
