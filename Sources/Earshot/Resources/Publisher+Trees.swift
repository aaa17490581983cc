internal import EarshotSafety

internal import CLinux
internal import EarshotTree
internal import Glibc

/// Putting directories in place: moved out of the spool at once where that is on the same file system, else copied beside their place
/// and renamed there.
extension Publisher {
    /// How much is copied at once, in bytes.
    private static let treeCopySize = 1024 * 1024

    /// The same for a tree; what was replaced is left in the spool, where it goes with the rest.
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
        // A directory that hands its group on to what is made in it does so for what was only moved there too.
        let sharing = TreePermissions.Sharing(of: try directory.status())
        let moved = try Self.move(inner, of: outer, to: directory, as: name, destination.conflict)
        let placing = try moved ?? Self.copy(tree, as: name, to: directory, destination, sharing, noting: outer, notes)
        guard case .placed(let published) = placing else { return nil }
        // It is there now, whatever becomes of its permissions: without these its owner may do more with it, and nobody else.
        if let placed = try? directory.subdirectory(published) {
            if moved != nil { try? TreePermissions.apply(tree.manifest, to: placed, sharing: sharing) }
            try? TreePermissions.applyToRoot(tree.manifest, placed, sharing: sharing)
        }
        do {
            try directory.sync()
        } catch {
            // A loss of power may take it away again, so nobody is told that it is there. The spool keeps its own, or the notes by which the
            // next start finds it in the one place or the other.
            let place = directory.subject(published).escapedForDisplay
            throw EarshotError(.storage, "it was put at \(place), and may not be on disk there: \(error)", underlying: error)
        }
        return directory.subject(published)
    }

    /// What became of a directory that was to be put in place.
    private enum Placing {
        case placed(SafeName)
        /// The name is taken, and nothing is to be replaced or renamed.
        case taken
    }

    /// `nil` where the two are on different file systems.
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
        // At the offer no more was known of it than its size.
        let room = tree.manifest.room(on: DiskBlocks(size: try directory.blockSize()))
        try Self.checkRoom(room, entries: UInt64(tree.manifest.count), in: directory, reserve: destination.reserve)
        let copy = try notes.add(in: directory)
        defer {
            // What was replaced, or not wanted.
            _ = try? TreeRemoval.remove(copy, from: directory)
            notes.settle(copy, in: directory)
        }
        let root = try directory.subdirectory(copy, create: 0o700)
        PartName.lock(root.descriptor)
        try Self.copy(tree, to: root, sharing)
        var isPlaced = false
        defer {
            // The next directory that is made there may get its number, and is not to be taken for it.
            if !isPlaced, let note = try? SafeName(SpooledTree.Part.inode) { _ = try? outer.remove(note) }
        }
        let inode = try root.status().inode
        // By it the next start knows the copy, where this one is killed before it can say that it is there.
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
        // On disk with the rest: once it has its place nothing but the root is left to do.
        try TreePermissions.apply(tree.manifest, to: directory, sharing: sharing)
        guard earshot_sync_file_system(directory.descriptor) == 0 else { throw FileError("save", directory.path) }
    }

    /// Gives the directory `source` of `from` its place; where it is about to be is written down first, for the next start.
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

    /// Two entries change places at once, whatever stands there; nothing is ever missing.
    static func exchange(
        _ source: SafeName, of from: SafeDirectory, with name: SafeName, in directory: SafeDirectory
    ) throws(FileError) {
        func exchange() -> Bool { earshot_exchange(from.descriptor, source.description, directory.descriptor, name.description) == 0 }
        if exchange() { return }
        // A directory that is write-protected cannot be moved to another one, not even by its owner.
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
