package import EarshotWire

internal import EarshotSafety
internal import Glibc
internal import NIOCore

/// What an interrupted transfer leaves in the spool, and how it goes on from there.
///
/// The length of a partial file is what was written to it: reserving space does not change it. Whether those bytes are the right ones
/// the sender says, who compares their digest with that of its source.
extension Spool {
    /// The beginning of a resource that is here.
    package struct Held: Sendable, Hashable {
        /// Bytes from the start; at least 1.
        package let count: UInt64
        /// XXH3-128 of them.
        package let digest: [UInt8]
    }

    /// Stops a running transfer and keeps what has arrived, and its space, until it is resumed or abandoned; one whose content is being
    /// checked or saved stays as it is.
    package func pause(_ id: ResourceID) {
        guard let transfer = self.transfers[id], !transfer.isFinishing else { return }
        transfer.content.close()
        self.transfers[id] = nil
        self.paused[id] = transfer.content.size
    }

    /// Has an interrupted transfer run again behind what has arrived; `nil` where nothing has, or nothing that can be used: then it is
    /// gone, and the transfer may begin anew.
    ///
    /// Reads and hashes what is here, in pieces, so that other transfers go on meanwhile. Abandoned in between, it gives `nil`.
    package func resume(_ id: ResourceID, size: UInt64, _ allowance: Allowance) async throws(EarshotError) -> Held? {
        guard self.transfers[id] == nil, self.paused[id] != nil else { return nil }
        do {
            guard self.paused[id] == size, let spent = self.ledger.spent(id),
                let sink = try self.openPartial(id, size: size, TreeSink.Share(of: self.ledger, for: id, allowance, spent))
            else { throw Self.unknown(id) }
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
            return Held(count: count, digest: digest)
        } catch {
            // What cannot be read is received again.
            self.abandon(id)
            return nil
        }
    }

    /// Takes up what an earlier run left of these, by their declared sizes, and returns how much of each is here, in bytes. Called once,
    /// before `sweep`.
    ///
    /// Content that was whole already, but of which nothing was recorded before that run ended, counts as interrupted at its end.
    package func adopt(_ sizes: [ResourceID: UInt64]) -> [ResourceID: UInt64] {
        var lengths: [ResourceID: UInt64] = [:]
        for (id, size) in sizes {
            guard let name = try? Self.name(id) else { continue }
            if (try? self.complete.has(name)) == true { try? self.complete.move(name, to: self.partial, as: name) }
            guard let sink = try? self.openPartial(id, size: size, nil), let length = try? sink.length() else { continue }
            self.paused[id] = size
            lengths[id] = min(length, size)
            self.account(for: id, name, size: size, sink, length: length)
        }
        return lengths
    }

    /// Sets aside again what an earlier run had set aside for it.
    private func account(for id: ResourceID, _ name: SafeName, size: UInt64, _ sink: any ResourceSink, length: UInt64) {
        guard let tree = sink as? TreeSink else {
            let spent = self.ledger.adopt(SpoolLedger.Room(bytes: size), for: id)
            spent.bytes.value = self.partial.isInMemory ? length : size
            return
        }
        // What its manifest says only where that was admitted.
        let admitted = (try? SpooledTree.room(name, in: self.partial)) ?? 0
        let room = SpoolLedger.Room(bytes: max(size, admitted), entries: admitted > 0 ? tree.entries : 0)
        tree.count(into: self.ledger.adopt(room, for: id))
    }

    /// A partial content as it lies there; `nil` where there is none. A tree needs its share only to be written to.
    private func openPartial(
        _ id: ResourceID, size: UInt64, _ share: TreeSink.Share?
    ) throws(EarshotError) -> (any ResourceSink)? {
        do {
            let name = try Self.name(id)
            if try self.partial.has(name), try self.partial.size(of: name) == nil {
                return try TreeSink(resuming: name, in: self.partial, size: size, share)
            }
            return SpoolFile(
                file: try self.partial.open(name, flags: O_RDWR), spent: self.partial.isInMemory ? self.ledger.spent(id) : nil)
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

    /// Drops an outgoing content; nothing happens when there is none.
    package func dropOutgoing(_ id: ResourceID) {
        guard let name = try? Self.name(id), let size = try? self.outgoing.size(of: name) else { return }
        if (try? self.outgoing.remove(name)) == true { self.ledger.removed(size) }
    }
}
