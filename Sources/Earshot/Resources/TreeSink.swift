internal import CLinux
internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire
internal import Glibc

/// An incoming tree, in the spool: entries are made as their bytes come, and can be read back as the same bytes.
///
/// How far an earlier process had come is told by what is there: the manifest's length while that is not whole, then the entries.
final class TreeSink: ResourceSink {
    /// What is set aside for it, which its manifest raises.
    struct Share: Sendable {
        private let ledger: SpoolLedger
        private let id: ResourceID
        private let allowance: Spool.Allowance
        /// Counts what is on the disk.
        fileprivate let spent: SpoolLedger.Spent
        /// Hears that the list of entries is whole and admitted, and how many bytes it has; on whatever thread that happens.
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
        /// Reads back what was written, once the manifest is whole.
        var reader: TreeReader?
        /// Nothing can be written behind it.
        var failure: EarshotError?
        var isComplete = false
    }

    private let outer: SafeDirectory
    private let tree: SafeDirectory
    private let manifest: OpenFile
    /// `nil` where it is only looked at.
    private let share: Share?
    private let blocks: DiskBlocks
    private let state: Exclusive<State>

    /// A new one in the spool; `size` is what the whole is declared to have, in bytes.
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

    /// One that an earlier process, or an interrupted transfer, has left.
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
                // It has given its room back since it was admitted, if it was.
                if share != nil { try self.admit(whole) }
            } else {
                // A machine that lost its power may have kept entries and not the whole list that they are of: all of it comes again.
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

    /// Whether these first bytes of a tree are its whole manifest.
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

    /// The manifest says what the tree will take: small files take more of a disk than their bytes. That it was admitted is noted.
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

    /// How many bytes from the start are here.
    func length() -> UInt64 { self.state.use { $0.writer.offset } }

    func sync() throws(EarshotError) {
        let result = self.state.use { state in
            Result { () throws(EarshotError) in
                do {
                    if !state.isComplete { try state.writer.finish() }
                    state.isComplete = true
                    if let manifest = state.reader?.manifest { try TreeSync.sync(manifest, in: self.tree) }
                    if self.tree.isSavedByEntry {
                        // Beside the tree lies its list.
                        try self.manifest.sync()
                        try self.outer.sync()
                    }
                    // One call for any number of files.
                    guard earshot_sync_file_system(self.tree.descriptor) == 0 else { throw FileError("save", self.tree.path) }
                } catch {
                    throw Spool.error(error)
                }
            }
        }
        try result.get()
    }

    /// Nothing is set aside on the disk for a tree: the ledger promises it.
    func release() {
        if let share = self.share { self.count(into: share.spent) }
    }

    /// Enters what is on the disk by now.
    func count(into spent: SpoolLedger.Spent) { self.state.use { $0.writer.count(into: spent) } }
}

extension TreeWriter {
    /// Enters what is on the disk by now.
    fileprivate func count(into spent: SpoolLedger.Spent) {
        spent.count(SpoolLedger.Room(bytes: self.diskBytes, entries: self.entries + DiskBlocks.treeEntries))
    }
}
