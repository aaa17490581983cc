internal import CLinux
internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Glibc

/// An incoming tree in the spool. Entries are created as their bytes arrive, and can be read back as the same bytes.
///
/// The stored parts show the progress of an earlier process: the manifest's length while the manifest is incomplete, and then the entries.
final class TreeSink: ResourceSink {
    /// The reserved space of the tree, which its manifest raises.
    struct Share: Sendable {
        private let ledger: SpoolLedger
        private let id: ResourceID
        private let allowance: Spool.Allowance
        /// Counts the disk space in use.
        fileprivate let spent: SpoolLedger.Spent
        /// Called when the list of entries is complete and admitted, with its length in bytes, on whatever thread that happens.
        fileprivate let listed: (@Sendable (Int) -> Void)?

        init(
            of ledger: SpoolLedger, for id: ResourceID, _ allowance: Spool.Allowance, _ spent: SpoolLedger.Spent,
            listed: (@Sendable (Int) -> Void)? = nil
        ) {
            self.ledger = ledger
            self.id = id
            self.allowance = allowance
            self.spent = spent
            self.listed = listed
        }

        fileprivate func raise(to room: SpoolLedger.Room, on disk: SafeDirectory) throws(EarshotError) {
            _ = try self.ledger.reserve(room, for: self.id, within: self.allowance, on: disk, isTree: true)
        }
    }

    private struct State {
        var writer: TreeWriter
        /// Reads written bytes back, once the manifest is complete.
        var reader: TreeReader?
        /// The error after which nothing can be written.
        var failure: EarshotError?
        var isComplete = false
    }

    private let outer: SafeDirectory
    private let tree: SafeDirectory
    private let manifest: OpenFile
    /// `nil` if the tree is only inspected.
    private let share: Share?
    private let blocks: DiskBlocks
    private let state: Exclusive<State>

    /// Creates a new tree in the spool; `size` is the declared size of the whole, in bytes.
    convenience init(
        _ name: SafeName, in spool: SafeDirectory, size: UInt64, on blocks: DiskBlocks, _ share: Share
    ) throws(EarshotError) {
        do {
            let outer = try spool.subdirectory(name, create: 0o700)
            let tree = try outer.subdirectory(SafeName(SpooledTree.Part.tree), create: 0o700)
            let manifest = try outer.open(SafeName(SpooledTree.Part.manifest), flags: O_RDWR | O_CREAT | O_EXCL)
            self.init(outer, tree, manifest, share, blocks, State(writer: TreeWriter(into: tree, size: size, on: blocks)))
            self.count(into: share.spent)
        } catch {
            throw Spool.error(error)
        }
    }

    /// Opens the tree of an earlier process or an interrupted transfer.
    convenience init(
        resuming name: SafeName, in spool: SafeDirectory, size: UInt64, on blocks: DiskBlocks, _ share: Share?
    ) throws(EarshotError) {
        do {
            let outer = try spool.subdirectory(name)
            let tree = try outer.subdirectory(SafeName(SpooledTree.Part.tree))
            let manifest = try outer.open(SafeName(SpooledTree.Part.manifest), flags: O_RDWR)
            let bytes = try SpooledTree.read(SpooledTree.Part.manifest, of: outer)
            if try Self.isWhole(bytes) {
                let whole = try TreeManifest(decoding: bytes)
                let writer = try TreeWriter(resuming: tree, manifest: whole, size: size, on: blocks)
                self.init(outer, tree, manifest, share, blocks, State(writer: writer, reader: TreeReader(tree, manifest: whole)))
                // The tree has released its space since it was admitted, so it has to be admitted again.
                if share != nil { try self.admit(whole) }
            } else {
                // After a loss of power, entries may exist without the complete list. The whole tree is then received again.
                guard try tree.entries().isEmpty else { throw FileError("go on in", tree.path, code: ENOTEMPTY) }
                let writer = TreeWriter(into: tree, size: size, on: blocks)
                _ = try bytes.withUnsafeBytes { try writer.write($0) }
                self.init(outer, tree, manifest, share, blocks, State(writer: writer))
            }
            if let share { self.count(into: share.spent) }
        } catch {
            throw Spool.error(error)
        }
    }

    /// Whether the first bytes of a tree contain its whole manifest.
    private static func isWhole(_ bytes: [UInt8]) throws -> Bool {
        guard bytes.count >= TreeLimits.headerLength else { return false }
        let header = Array(bytes.prefix(TreeLimits.headerLength))
        return try header.withUnsafeBytes { try TreeManifest.lengths(header: $0).manifest } == bytes.count
    }

    private init(
        _ outer: SafeDirectory, _ tree: SafeDirectory, _ manifest: OpenFile, _ share: Share?, _ blocks: DiskBlocks, _ state: sending State
    ) {
        self.outer = outer
        self.tree = tree
        self.manifest = manifest
        self.share = share
        self.blocks = blocks
        self.state = Exclusive(state)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(EarshotError) {
        let result = self.state.use { state in
            Result { () throws(EarshotError) in
                if let failure = state.failure { throw failure }
                do throws(EarshotError) {
                    try self.write(bytes, &state)
                } catch {
                    state.failure = error
                    throw error
                }
                if let share = self.share { state.writer.count(into: share.spent) }
            }
        }
        try result.get()
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws(EarshotError) {
        do {
            var rest = bytes
            while !rest.isEmpty {
                let offset = state.writer.offset
                let taken = try state.writer.write(rest)
                if state.reader == nil {
                    try self.manifest.write(UnsafeRawBufferPointer(rebasing: rest.prefix(taken)), at: offset)
                    if let manifest = state.writer.manifest {
                        try self.admit(manifest)
                        state.reader = TreeReader(self.tree, manifest: manifest)
                    }
                }
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(taken))
            }
        } catch {
            throw Spool.error(error)
        }
    }

    /// Reserves the space for the tree according to its manifest, and notes it. Small files take more space on a disk than their bytes.
    private func admit(_ manifest: TreeManifest) throws {
        let room = SpoolLedger.Room(manifest, on: self.blocks)
        try self.share?.raise(to: room, on: self.tree)
        let note = try self.outer.open(SafeName(SpooledTree.Part.room), flags: O_RDWR | O_CREAT | O_TRUNC)
        try note.write(Array("\(room.bytes)".utf8), at: 0)
        self.share?.listed?(manifest.bytes.count)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int {
        let result = self.state.use { state in
            Result { () throws(EarshotError) in
                let written = state.writer.offset
                guard offset < written else { return 0 }
                let space = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: written - offset)))
                do {
                    if let reader = state.reader { return try reader.read(into: space, at: offset) }
                    return try self.manifest.read(into: space, at: offset)
                } catch {
                    throw Spool.error(error)
                }
            }
        }
        return try result.get()
    }

    /// Returns the number of received bytes from the start.
    func length() -> UInt64 { self.state.use { $0.writer.offset } }

    func sync() throws(EarshotError) {
        let result = self.state.use { state in
            Result { () throws(EarshotError) in
                do {
                    if !state.isComplete { try state.writer.finish() }
                    state.isComplete = true
                    if let manifest = state.reader?.manifest { try TreeSync.sync(manifest, in: self.tree) }
                    if self.tree.isSavedByEntry {
                        // The manifest is beside the tree.
                        try self.manifest.sync()
                        try self.outer.sync()
                    }
                    // One call syncs any number of files.
                    guard earshot_sync_file_system(self.tree.descriptor) == 0 else { throw FileError("save", self.tree.path) }
                } catch {
                    throw Spool.error(error)
                }
            }
        }
        try result.get()
    }

    /// No space is reserved on the disk for a tree; the ledger accounts for it.
    func release() {
        if let share = self.share { self.count(into: share.spent) }
    }

    /// Updates the count of the disk space in use.
    func count(into spent: SpoolLedger.Spent) { self.state.use { $0.writer.count(into: spent) } }
}

extension TreeWriter {
    /// Updates the count of the disk space in use.
    fileprivate func count(into spent: SpoolLedger.Spent) {
        spent.count(SpoolLedger.Room(bytes: self.diskBytes, entries: self.entries + DiskBlocks.treeEntries))
    }
}
