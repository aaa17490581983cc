internal import CLinux
package import EarshotSafety
internal import Glibc

/// A tree on its way into a directory. It has a random name there until it is complete, on disk, and gets its own name.
///
/// If it is dropped without having been published, it leaves nothing behind. A killed process leaves the random name, unlocked: see
/// `StaleParts`.
package final class TemporaryTree: Sendable {
    private struct State {
        var writer: TreeWriter
        var manifest: TreeManifest?
        /// Whether it still has its random name.
        var isThere = true
    }

    private let directory: SafeDirectory
    private let name: SafeName
    private let root: SafeDirectory
    private let state: Exclusive<State>

    /// Creates an empty tree; `size` is the length of the tree's bytes.
    package init(in directory: SafeDirectory, size: UInt64) throws(FileError) {
        self.directory = directory
        self.name = try PartName.random()
        self.root = try directory.subdirectory(self.name, create: 0o700)
        PartName.lock(self.root.descriptor)
        PartName.mark(self.root.descriptor)
        self.state = Exclusive(State(writer: TreeWriter(into: self.root, size: size)))
    }

    deinit { self.drop() }

    /// Writes the next bytes of the tree.
    /// - Throws: The errors of `TreeWriter.write`.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TreeError) {
        let result = self.state.use { state in
            Result { () throws(TreeError) in
                var rest = bytes
                while !rest.isEmpty {
                    let taken = try state.writer.write(rest)
                    if state.manifest == nil { state.manifest = state.writer.manifest }
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(taken))
                }
            }
        }
        try result.get()
    }

    /// Completes the tree after its last byte: syncs it to disk and gives it a free name, with a number such as `name (2)` if needed.
    /// - Throws: `malformed` if bytes are missing; `file`.
    package func publish(as wanted: SafeName) throws(TreeError) -> SafeName {
        let result = self.state.use { state in
            Result { () throws(TreeError) in try self.publish(as: wanted, &state) }
        }
        return try result.get()
    }

    private func publish(as wanted: SafeName, _ state: inout State) throws(TreeError) -> SafeName {
        try state.writer.finish()
        guard let manifest = state.manifest else { throw .malformed("it ends early") }
        try TreeSync.sync(manifest, in: self.root)
        try TreePermissions.apply(manifest, to: self.root)
        do {
            try PartName.unmark(self.root.descriptor)
            guard earshot_sync_file_system(self.root.descriptor) == 0 else { throw FileError("save", self.root.path) }
            let published = try self.place(wanted)
            state.isThere = false
            try self.directory.sync()
            try TreePermissions.applyToRoot(manifest, self.root)
            return published
        } catch let error as FileError {
            throw .file(error)
        } catch let error as TreeError {
            throw error
        } catch {
            throw .malformed("it cannot be put in place")
        }
    }

    private func place(_ wanted: SafeName) throws(FileError) -> SafeName {
        for number in 1...SafeDirectory.numberingLimit {
            let candidate = number == 1 ? wanted : wanted.numbered(number)
            let from = self.directory.descriptor
            if earshot_rename_no_replace(from, self.name.description, from, candidate.description) == 0 { return candidate }
            guard errno == EEXIST || errno == ENOTEMPTY else { throw FileError("create", self.directory.subject(candidate)) }
        }
        throw FileError("find a free name for", self.directory.subject(wanted), code: EEXIST)
    }

    /// Removes the tree, unless it was published. Nothing can be written afterwards.
    package func drop() {
        self.state.use { state in
            guard state.isThere else { return }
            state.isThere = false
            _ = try? TreeRemoval.remove(self.name, from: self.directory)
        }
    }
}
