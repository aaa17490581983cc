package import EarshotWire
package import NIOCore

package import EarshotSafety
package import EarshotTree
internal import Glibc

/// The directory of received content until it is fetched. Files are named by this machine's own ids, never by names from a peer.
///
/// A transfer is a file in `partial` until all bytes of the declared size have arrived and the digest of the whole matches. The file is
/// then synced and moved to `complete` atomically. The space for it is reserved before the first byte (in memory, it is counted), so that
/// a full disk is detected at the offer and not at the end. The spool has a thread of its own, because every call waits for the disk.
package actor Spool {
    struct Transfer {
        let content: IncomingContent
        /// Whether all bytes have arrived. They are then verified and saved outside the spool's thread.
        var isFinishing = false
    }

    /// The limits of the spool at the time of an offer.
    package struct Allowance: Sendable, Hashable {
        /// The maximum size of the spool, in bytes.
        package let quota: UInt64
        /// The part of the file system that is left free, 0 to 1.
        package let reserve: Double
        /// The sending peer's share of the quota; `nil` for this node's own content.
        package let share: QuotaShare?

        /// Creates an allowance from its parts.
        package init(quota: UInt64, reserve: Double, share: QuotaShare? = nil) {
            self.quota = quota
            self.reserve = reserve
            self.share = share
        }
    }

    /// Publishes content into the user's directory.
    package nonisolated let publisher: Publisher
    /// Verifies and syncs content outside the spool's thread.
    nonisolated let settler: ContentSettler

    let partial: SafeDirectory
    let complete: SafeDirectory
    /// Content that is sent from the spool, because it cannot be read again from its origin.
    let outgoing: SafeDirectory
    var transfers: [ResourceID: Transfer] = [:]
    /// Interrupted transfers whose partial content waits for its sender, with their declared sizes.
    var paused: [ResourceID: UInt64] = [:]
    /// The sizes of entries that could not be removed, until they are gone. The remains of a directory may no longer record its size.
    private var unremoved: [ResourceID: UInt64] = [:]
    /// Transfers that have not begun, for which space is reserved.
    var promised: Set<ResourceID> = []
    /// The readers of completed trees.
    var treeReaders: [ResourceID: TreeReaders] = [:]
    /// The space of all content: the size of completed, outgoing and interrupted content, and the final size of running transfers.
    let ledger = SpoolLedger()
    /// The block size of the file system.
    package nonisolated let blocks: DiskBlocks
    private let executor: ThreadExecutor

    /// The executor of the spool's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Opens `spool` in the state directory. Missing directories are created (mode 0700).
    ///
    /// Call `sweep` before anything else.
    package init(directory: String) throws(EarshotError) {
        let notes: SafeDirectory
        do {
            let spool = try SafeDirectory(path: "\(directory)/spool", create: 0o700)
            notes = try SafeDirectory(path: "\(spool.path)/publishing", create: 0o700)
            self.partial = try SafeDirectory(path: "\(spool.path)/partial", create: 0o700)
            self.complete = try SafeDirectory(path: "\(spool.path)/complete", create: 0o700)
            self.outgoing = try SafeDirectory(path: "\(spool.path)/outgoing", create: 0o700)
            self.blocks = DiskBlocks(size: try self.partial.blockSize())
            self.ledger.counted(kept: try Self.room(complete: self.complete, outgoing: self.outgoing, on: self.blocks))
        } catch {
            throw Self.error(error)
        }
        self.publisher = try Publisher(notes: notes)
        self.settler = try ContentSettler()
        self.executor = try ThreadExecutor(name: "earshot-spool")
    }

    /// Calls `heartbeat` from the spool's thread, after its pending work.
    package nonisolated func answer(_ heartbeat: @escaping @Sendable () -> Void) {
        self.executor.run(heartbeat)
    }

    deinit {
        self.executor.stop()
    }

    /// Returns the bytes of completed and outgoing content, and those reserved for running and interrupted transfers.
    package func heldBytes() -> UInt64 { self.ledger.held }

    /// Reserves the disk space for the size, and opens a file for the transfer. Returns the offset at which to start: 0. `listed` is
    /// called when the list of entries of a directory is complete, with the list's length in bytes. A complete file gets `attributes`.
    ///
    /// - Throws: `no-space` beyond the peer's share, the quota, the reserve or the disk, `too-large` for more than a file can hold,
    ///   `conflict` for an id in use.
    package func begin(
        _ id: ResourceID, kind: Resource.Kind = .file, size: UInt64, _ allowance: Allowance, attributes: FileAttributes? = nil,
        listed: (@Sendable (Int) -> Void)? = nil
    ) throws(EarshotError) -> UInt64 {
        let name = try Self.name(id)
        try self.checkFree(id, size: size)
        let spent = try self.reserve(id, kind, size: size, allowance)
        do {
            // A leftover from a run that was killed before it could sweep. No known transfer has this id.
            try TreeRemoval.remove(name, from: self.partial)
            let sink: any ResourceSink =
                switch kind {
                case .directory:
                    try TreeSink(
                        name, in: self.partial, size: size, on: self.blocks,
                        TreeSink.Share(of: self.ledger, for: id, allowance, spent, listed: listed))
                case .file: try self.makeFile(name, size: size, attributes, spent)
                }
            self.transfers[id] = Transfer(content: IncomingContent(sink, id: id, size: size, hash: try XXH3()))
            self.promised.remove(id)
        } catch {
            self.promised.remove(id)
            self.ledger.release(id)
            throw Self.error(error)
        }
        return 0
    }

    private func makeFile(
        _ name: SafeName, size: UInt64, _ attributes: FileAttributes?, _ spent: SpoolLedger.Spent
    ) throws -> SpoolFile {
        let file = try self.partial.open(name, flags: O_RDWR | O_CREAT | O_EXCL)
        do {
            return try SpoolFile(file, size: size, attributes, in: self.partial, on: self.blocks, spent)
        } catch {
            _ = try? TreeRemoval.remove(name, from: self.partial)
            throw error
        }
    }

    /// Reserves the space that is known to be needed before the first byte.
    func reserve(
        _ id: ResourceID, _ kind: Resource.Kind, size: UInt64, _ allowance: Allowance
    ) throws(EarshotError) -> SpoolLedger.Spent {
        let room: SpoolLedger.Room =
            switch kind {
            case .file: SpoolLedger.Room(file: size, on: self.blocks)
            case .directory: SpoolLedger.Room(tree: size, on: self.blocks)
            }
        return try self.ledger.reserve(room, for: id, within: allowance, on: self.partial, isTree: kind == .directory)
    }

    /// Checks whether a transfer of this size could start now, without reserving space. Throws as `begin`.
    package func check(_ id: ResourceID, size: UInt64, _ allowance: Allowance) throws(EarshotError) {
        try self.checkFree(id, size: size)
        try self.ledger.check(SpoolLedger.Room(file: size, on: self.blocks), for: id, within: allowance, on: self.partial)
    }

    private func checkFree(_ id: ResourceID, size: UInt64) throws(EarshotError) {
        guard self.transfers[id] == nil, self.paused[id] == nil, try self.room(try Self.name(id)) == nil else {
            throw EarshotError(.conflict, "a resource \(id) is here already; send it under another id")
        }
        // Someone else has removed the entry that the spool could not remove.
        if let room = self.unremoved.removeValue(forKey: id) { self.ledger.removed(room) }
        guard size <= WireLimits.resourceSize else {
            throw EarshotError(.tooLarge, "\(size) bytes are more than a file can hold (\(WireLimits.resourceSize))")
        }
    }

    /// The spool's own directory, for comparing file systems.
    package nonisolated var directory: SafeDirectory { self.complete }

    /// Returns a completed resource's content, for publishing it.
    /// - Throws: `not-found`.
    package func content(_ id: ResourceID) throws(EarshotError) -> Publisher.Content {
        let name = try Self.name(id)
        guard let room = try self.room(name) else { throw Self.unknown(id) }
        let size = (try? self.complete.size(of: name)).flatMap { $0 }
        return Publisher.Content(directory: self.complete, name: name, size: size ?? room, isTree: size == nil)
    }

    /// Writes the next bytes, which start where the last ones ended. Returns the number of written bytes from the start.
    ///
    /// - Throws: `protocol-violation` for bytes at another offset and `too-large` beyond the declared size, with nothing written;
    ///   `no-space` or `storage` if the disk fails, after which the same bytes may be retried.
    @discardableResult
    package func write(_ id: ResourceID, offset: UInt64, _ data: ByteBuffer) throws(EarshotError) -> UInt64 {
        let content = try self.incoming(id)
        // Not thrown through the closure: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        let result = data.withUnsafeReadableBytes { bytes in
            Result { () throws(EarshotError) in try content.write(bytes, at: offset) }
        }
        return try result.get()
    }

    /// Returns a running transfer's content, for a thread that writes it directly.
    /// - Throws: `not-found`.
    package func incoming(_ id: ResourceID) throws(EarshotError) -> IncomingContent {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { throw Self.unknown(id) }
        return transfer.content
    }

    /// Verifies the whole content, syncs it and moves it to the completed ones. Returns its digest as `ALGORITHM:HEX`. Without a digest to
    /// compare with, only its length is checked.
    ///
    /// Other transfers continue meanwhile, and this one may be abandoned. If this throws, the transfer is abandoned.
    ///
    /// - Throws: `digest-mismatch` if bytes are missing or differ.
    package func finish(
        _ id: ResourceID, algorithm: ResourceEnd.DigestAlgorithm, digest: [UInt8]?
    ) async throws(EarshotError) -> String {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { throw Self.unknown(id) }
        self.transfers[id]?.isFinishing = true
        let name = try Self.name(id)
        do {
            let content = transfer.content
            content.close()
            guard content.written == content.size else {
                throw EarshotError(.digestMismatch, "only \(content.written) of \(content.size) bytes arrived; send it again")
            }
            let own = algorithm == .xxh3 ? content.digest() : try await self.settler.sha256(content)
            guard digest == nil || own == digest else {
                throw EarshotError(.digestMismatch, "the received bytes differ from the sent ones; send it again")
            }
            try await self.settle(id, content, in: self.complete)
            return ResourceDigest(algorithm, own).text
        } catch {
            if self.transfers[id]?.content === transfer.content {
                self.abandon(id)
                _ = try? TreeRemoval.remove(name, from: self.complete)
            }
            throw Self.error(error)
        }
    }

    /// Syncs a complete content and moves it out of the partial ones, which ends its transfer.
    /// - Throws: `not-found` if the transfer was abandoned meanwhile, and perhaps started again; `no-space`, `storage`.
    func settle(_ id: ResourceID, _ content: IncomingContent, in place: SafeDirectory) async throws {
        let name = try Self.name(id)
        try await self.settler.sync(content)
        guard self.transfers[id]?.content === content else { throw Self.unknown(id) }
        try self.partial.move(name, to: place, as: name)
        try place.sync()
        try self.partial.sync()
        self.transfers[id] = nil
        self.ledger.keep(id)
    }

    /// Ends a transfer, if there is one, and drops its received bytes.
    package func abandon(_ id: ResourceID) {
        if let transfer = self.transfers.removeValue(forKey: id) {
            transfer.content.close()
        } else if self.paused.removeValue(forKey: id) == nil, self.promised.remove(id) == nil {
            return
        }
        // Nothing writes to the content any more, so its share no longer grows.
        self.ledger.release(id)
        // Content that cannot be removed now is swept at the next start.
        if let name = try? Self.name(id) { _ = try? TreeRemoval.remove(name, from: self.partial) }
    }

    /// Returns the space of a completed resource's content, in bytes; `nil` if it is not in the spool.
    private func room(_ name: SafeName) throws(EarshotError) -> UInt64? {
        do {
            return try self.complete.has(name) ? try SpooledTree.room(name, in: self.complete, on: self.blocks) : nil
        } catch {
            throw Self.error(error)
        }
    }

    /// Opens the content of a completed resource. It can be read to its end, even if the resource is removed.
    /// - Throws: `not-found`.
    package func open(_ id: ResourceID) throws(EarshotError) -> OpenFile {
        do {
            return try self.complete.open(try Self.name(id))
        } catch let error as FileError where error.code == ENOENT {
            throw Self.unknown(id)
        } catch {
            throw Self.error(error)
        }
    }

    /// Reads up to `count` bytes of an open content. Returns fewer, or none, only at its end.
    package func read(_ file: OpenFile, at offset: UInt64, count: Int) throws(EarshotError) -> ByteBuffer {
        do {
            return try file.buffer(at: offset, count: min(count, Self.readLimit))
        } catch {
            throw Self.error(error)
        }
    }

    /// The maximum size of one read, in bytes.
    package static let readLimit = 4 * 1024 * 1024

    /// Removes a resource's content, if there is any, completed or not. A tree that is being read is removed afterwards.
    package func remove(_ id: ResourceID) throws(EarshotError) {
        self.abandon(id)
        guard !self.outlivesRemoval(id) else { return }
        let name = try Self.name(id)
        var taken = self.unremoved[id]
        if taken == nil { taken = try self.room(name) }
        guard let room = taken else { return }
        do {
            try SpooledTree.remove(name, from: self.complete)
        } catch {
            self.unremoved[id] = room
            throw Self.error(error)
        }
        self.unremoved[id] = nil
        self.ledger.removed(room)
    }

    /// Removes content for the core or for a caller, and returns the report. Content that cannot be removed now is swept at the next
    /// start.
    func removal(of id: ResourceID, for call: CallID?) -> TransferReport {
        do throws(EarshotError) {
            try self.remove(id)
            return .contentRemoved(for: call, nil)
        } catch {
            return .contentRemoved(for: call, error)
        }
    }

    /// The result of a sweep.
    package struct Swept: Sendable {
        /// The names of the removed entries.
        package var removed: [String] = []
        /// The errors for the remaining entries, each with its path.
        package var left: [EarshotError] = []
    }

    /// Removes partial content that no transfer continues, and completed or outgoing content of other resources than the given ones.
    ///
    /// Called at the start, after `adopt`. A later call is harmless: running and interrupted transfers stay. An entry that cannot be
    /// removed (such as a replaced directory with another user's files in it) stays, and counts towards the quota.
    @discardableResult
    package func sweep(keeping kept: Set<ResourceID>, outgoing: Set<ResourceID> = []) throws(EarshotError) -> Swept {
        do {
            var swept = Swept()
            let unfinished = Set((Array(self.transfers.keys) + self.paused.keys).map(\.description))
            for (directory, names) in [
                (self.partial, unfinished), (self.complete, Set(kept.map(\.description))),
                (self.outgoing, Set(outgoing.map(\.description))),
            ] {
                for name in try directory.entries() where !names.contains(name.description) {
                    do {
                        if try SpooledTree.remove(name, from: directory) { swept.removed.append(name.description) }
                    } catch {
                        swept.left.append(Self.error(error))
                    }
                }
            }
            self.ledger.counted(kept: try Self.room(complete: self.complete, outgoing: self.outgoing, on: self.blocks))
            self.unremoved = [:]
            return swept
        } catch {
            throw Self.error(error)
        }
    }

    /// Returns the space of complete content, in bytes. Content for several recipients has several names, and counts once.
    private static func room(
        complete: SafeDirectory, outgoing: SafeDirectory, on blocks: DiskBlocks
    ) throws(FileError) -> UInt64 {
        var total: UInt64 = 0
        for name in try complete.entries() { total = total.addingClamped(try SpooledTree.room(name, in: complete, on: blocks)) }
        var counted: Set<UInt64> = []
        for name in try outgoing.entries() {
            guard let file = try outgoing.status(of: name), counted.insert(file.inode).inserted else { continue }
            total = total.addingClamped(blocks.file(file.size))
        }
        return total
    }

    static func name(_ id: ResourceID) throws(EarshotError) -> SafeName {
        do {
            return try SafeName(id.description)
        } catch {
            throw EarshotError(.nameRejected, "\(error)", underlying: error)
        }
    }

    static func unknown(_ id: ResourceID) -> EarshotError {
        EarshotError(.notFound, "the spool has no resource \(id)", remedy: .listFiles)
    }

    static func error(_ error: any Error) -> EarshotError {
        switch error {
        case let error as EarshotError: error
        case let error as TreeError: EarshotError(error)
        case let error as FileError: EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error)", underlying: error)
        default: EarshotError(.storage, "the spool failed", underlying: error)
        }
    }
}

extension OpenFile {
    /// Reads up to `count` bytes at the offset into a new buffer. Returns fewer only at the end of the file.
    func buffer(at offset: UInt64, count: Int) throws(FileError) -> ByteBuffer {
        try ByteBuffer.filled(count: count) { space throws(FileError) in try self.read(into: space, at: offset) }
    }
}
