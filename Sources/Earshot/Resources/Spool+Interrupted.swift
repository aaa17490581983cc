package import EarshotWire

internal import EarshotSafety
internal import EarshotTree
internal import Glibc
internal import NIOCore

/// What an interrupted transfer leaves in the spool, and how it goes on from there.
///
/// The length of a partial file is what was written to it: reserving space does not change it. Whether those bytes are the right ones
/// the sender says, who compares their digest with that of its source.
extension Spool {
    /// Stops a running transfer and keeps what has arrived until it is resumed or abandoned; the room for the rest is free for others. One
    /// whose content is being checked or saved stays as it is.
    package func pause(_ id: ResourceID) {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { return }
        transfer.content.close()
        self.transfers[id] = nil
        self.paused[id] = transfer.content.size
        self.shrink(id, transfer.content.sink)
    }

    /// Where what was set aside on the disk cannot be given back, it goes on counting.
    private func shrink(_ id: ResourceID, _ sink: any ResourceSink) {
        try? sink.release()
        self.ledger.shrink(id)
    }

    /// Has an interrupted transfer run again behind what has arrived; `nil` where nothing has, or nothing that can be used: then it is
    /// gone, and the transfer may begin anew. `listed` as for `begin`.
    ///
    /// Reads and hashes what is here, in pieces, so that other transfers go on meanwhile. Abandoned in between, it gives `nil`. Throws
    /// `no-space` where there is no room for the rest any more; then it is gone, too.
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
            // What cannot be read is received again, and what has no room any more is not.
            self.abandon(id)
            let error = Self.error(error)
            if error.code == .noSpace { throw error }
            return nil
        }
    }

    /// A partial content to be written to, with its room set aside again; `nil` where there is none.
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

    /// What an earlier run has left of a peer's transfer.
    package struct Left: Sendable, Hashable {
        /// Declared, in bytes.
        package let size: UInt64
        /// Who sends it.
        package let peer: PeerID

        /// From its parts.
        package init(size: UInt64, peer: PeerID) {
            self.size = size
            self.peer = peer
        }
    }

    /// Takes up what an earlier run left of these, and returns how much of each is here, in bytes. Called once, before `sweep`.
    ///
    /// Content that was whole already, but of which nothing was recorded before that run ended, counts as interrupted at its end.
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

    /// A partial content as it lies there, to be looked at; `nil` where there is none.
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

    /// Whether a partial content is a directory; `nil` where there is none.
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

    /// A content that was written as an incoming one is whole, and is to be sent from here: brings it to disk and returns its path.
    ///
    /// Throws `invalid-parameter` where bytes are missing; `no-space`, `storage`. When it throws, the content is gone.
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

    /// Where an outgoing content lies.
    package nonisolated func outgoingPath(_ id: ResourceID) -> String { "\(self.outgoing.path)/\(id)" }

    /// Has an outgoing content lie there under these ids too, each of which is dropped by itself: it takes its room once. On disk when this
    /// returns; when it throws, it lies there under its own alone.
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

    /// Drops an outgoing content; nothing happens when there is none.
    package func dropOutgoing(_ id: ResourceID) {
        guard let name = try? Self.name(id), let file = try? self.outgoing.status(of: name), file.kind == .regular else { return }
        guard (try? self.outgoing.remove(name)) == true, file.links <= 1 else { return }
        self.ledger.removed(self.blocks.file(file.size))
    }
}
