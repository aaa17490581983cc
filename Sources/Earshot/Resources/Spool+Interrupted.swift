package import EarshotWire

internal import EarshotSafety
internal import EarshotTree
internal import Glibc
internal import NIOCore

/// Interrupted transfers in the spool, and resuming them.
///
/// The length of a partial file is the number of bytes written to it, because reserving space does not change it. The sender decides
/// whether these bytes are correct, by comparing their digest with that of its source.
extension Spool {
    /// Stops a running transfer, and keeps the received bytes until it is resumed or abandoned. The space for the remainder is released. A
    /// transfer whose content is being verified or saved is not changed.
    package func pause(_ id: ResourceID) {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { return }
        transfer.content.close()
        self.transfers[id] = nil
        self.paused[id] = transfer.content.size
        self.shrink(id, transfer.content.sink)
    }

    /// If the space reserved on the disk cannot be released, it still counts.
    private func shrink(_ id: ResourceID, _ sink: any ResourceSink) {
        try? sink.release()
        self.ledger.shrink(id)
    }

    /// Resumes an interrupted transfer after the received bytes. Returns `nil` if there are none, or none that can be used. The transfer
    /// is then abandoned, and may start again. For `listed`, see `begin`.
    ///
    /// Reads and hashes the received bytes in pieces, so that other transfers continue. If the transfer is abandoned in between, this
    /// returns `nil`.
    ///
    /// - Throws: `no-space` if there is no more room for the remainder. The transfer is then abandoned as well.
    package func resume(
        _ id: ResourceID, size: UInt64, _ allowance: Allowance, attributes: FileAttributes? = nil,
        listed: (@Sendable (Int) -> Void)? = nil
    ) async throws(EarshotError) -> ResourceHeld? {
        guard self.transfers[id] == nil, self.paused[id] != nil else { return nil }
        do {
            guard self.paused[id] == size, let sink = try self.reopen(id, size: size, allowance, attributes, listed: listed) else {
                throw Self.unknown(id)
            }
            let count = try sink.length()
            guard 0 < count, count <= size else { throw Self.unknown(id) }
            let hash = try XXH3()
            var offset: UInt64 = 0
            while offset < count {
                let at = offset
                let wanted = Int(clamping: min(count - offset, UInt64(Self.readLimit)))
                let piece = try ByteBuffer.filled(count: wanted) { space throws(EarshotError) in try sink.read(into: space, at: at) }
                guard piece.readableBytes == wanted else { throw Self.unknown(id) }
                hash.update(piece)
                offset += UInt64(wanted)
                await Task.yield()
                guard self.paused[id] == size else { return nil }
            }
            let digest = hash.digest()
            self.transfers[id] = Transfer(content: IncomingContent(sink, id: id, size: size, written: count, hash: hash))
            self.paused[id] = nil
            return ResourceHeld(count: count, digest: digest)
        } catch {
            // Content that cannot be read is received again. Content for which there is no room is not.
            self.abandon(id)
            let error = Self.error(error)
            if error.code == .noSpace { throw error }
            return nil
        }
    }

    /// Opens a partial content for writing, and reserves its space again. Returns `nil` if there is none.
    private func reopen(
        _ id: ResourceID, size: UInt64, _ allowance: Allowance, _ attributes: FileAttributes?, listed: (@Sendable (Int) -> Void)?
    ) throws(EarshotError) -> (any ResourceSink)? {
        guard let isTree = try self.isPartialTree(id) else { return nil }
        let spent = try self.reserve(id, isTree ? .directory : .file, size: size, allowance)
        do {
            let name = try Self.name(id)
            guard isTree else {
                return try SpoolFile(
                    try self.partial.open(name, flags: O_RDWR), size: size, attributes, in: self.partial, on: self.blocks, spent)
            }
            let share = TreeSink.Share(of: self.ledger, for: id, allowance, spent, listed: listed)
            return try TreeSink(resuming: name, in: self.partial, size: size, on: self.blocks, share)
        } catch {
            throw Self.error(error)
        }
    }

    /// A peer's transfer from an earlier run.
    package struct Left: Sendable, Hashable {
        /// The declared size, in bytes.
        package let size: UInt64
        /// The sender.
        package let peer: PeerID

        /// Creates a value from its parts.
        package init(size: UInt64, peer: PeerID) {
            self.size = size
            self.peer = peer
        }
    }

    /// Adopts the given transfers of an earlier run, and returns the number of received bytes of each. Called once, before `sweep`.
    ///
    /// Content that was already complete, but not recorded before that run ended, counts as interrupted at its end.
    package func adopt(_ left: [ResourceID: Left]) -> [ResourceID: UInt64] {
        var lengths: [ResourceID: UInt64] = [:]
        for (id, left) in left {
            guard let name = try? Self.name(id) else { continue }
            if (try? self.complete.has(name)) == true { try? self.complete.move(name, to: self.partial, as: name) }
            let spent = self.ledger.adopt(id, of: left.peer)
            if let sink = try? self.openPartial(id, size: left.size, spent), let length = try? sink.length() {
                self.paused[id] = left.size
                lengths[id] = min(length, left.size)
                if let tree = sink as? TreeSink { tree.count(into: spent) }
                self.shrink(id, sink)
            } else {
                self.ledger.release(id)
            }
        }
        return lengths
    }

    /// Opens a partial content for inspection; `nil` if there is none.
    private func openPartial(
        _ id: ResourceID, size: UInt64, _ spent: SpoolLedger.Spent
    ) throws(EarshotError) -> (any ResourceSink)? {
        guard let isTree = try self.isPartialTree(id) else { return nil }
        do {
            let name = try Self.name(id)
            if isTree { return try TreeSink(resuming: name, in: self.partial, size: size, on: self.blocks, nil) }
            return SpoolFile(try self.partial.open(name, flags: O_RDWR), on: self.blocks, spent)
        } catch {
            throw Self.error(error)
        }
    }

    /// Returns whether a partial content is a directory; `nil` if there is none.
    private func isPartialTree(_ id: ResourceID) throws(EarshotError) -> Bool? {
        do {
            let name = try Self.name(id)
            guard try self.partial.has(name) else { return nil }
            return try self.partial.size(of: name) == nil
        } catch let error as FileError where error.code == ENOENT {
            return nil
        } catch {
            throw Self.error(error)
        }
    }

    // MARK: Outgoing content

    /// Syncs a complete content that was written like an incoming one, and keeps it for sending. Returns its path.
    ///
    /// - Throws: `invalid-parameter` if bytes are missing; `no-space`, `storage`. If this throws, the content is gone.
    package func keepForSending(_ id: ResourceID) async throws(EarshotError) -> String {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { throw Self.unknown(id) }
        self.transfers[id]?.isFinishing = true
        let name = try Self.name(id)
        do {
            let content = transfer.content
            content.close()
            guard content.written == content.size else {
                throw EarshotError(
                    .invalidParameter, "the body ended after \(content.written) of the \(content.size) bytes that were announced")
            }
            try await self.settle(id, content, in: self.outgoing)
            return self.outgoingPath(id)
        } catch {
            if self.transfers[id]?.content === transfer.content {
                self.abandon(id)
                _ = try? self.outgoing.remove(name)
            }
            throw Self.error(error)
        }
    }

    /// Returns the path of an outgoing content.
    package nonisolated func outgoingPath(_ id: ResourceID) -> String { "\(self.outgoing.path)/\(id)" }

    /// Adds names for an outgoing content under other ids. The names are dropped independently, and the content takes its space once. When
    /// this returns, the names are on disk. If it throws, only the content's own name remains.
    package func share(_ id: ResourceID, with others: [ResourceID]) throws(EarshotError) {
        var made: [ResourceID] = []
        do {
            let name = try Self.name(id)
            for other in others {
                try self.outgoing.link(name, as: try Self.name(other))
                made.append(other)
            }
            try self.outgoing.sync()
        } catch {
            for other in made { self.dropOutgoing(other) }
            throw Self.error(error)
        }
    }

    /// Drops an outgoing content, if there is one.
    package func dropOutgoing(_ id: ResourceID) {
        guard let name = try? Self.name(id), let file = try? self.outgoing.status(of: name), file.kind == .regular else { return }
        guard (try? self.outgoing.remove(name)) == true, file.links <= 1 else { return }
        self.ledger.removed(self.blocks.file(file.size))
    }
}
