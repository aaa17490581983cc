import DequeModule
import EarshotSafety
import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Sending resources.
extension Node {
    /// Sends a file by its path to one or more peers; returns at once, a row a peer.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``, and `invalid-source` where the path is no readable ordinary file.
    public func sendResource(to names: [String], path: String) async throws(EarshotError) -> [Resource] {
        let peers = try self.recipients(names)
        var rows: [Resource] = []
        for peer in peers {
            // Each transfer has its own descriptor and its own digest of what it read.
            let source = try SourceFile(path: path)
            rows.append(self.beginUpload(try SourceContent(source), name: source.name, size: source.size, path: path, to: peer))
        }
        return rows
    }

    /// Sends a resource as its bytes come in, and returns when the peer has published it.
    ///
    /// `size` must be the body's exact length in bytes. A body can be read only once, so there is one recipient. A caller whose task is
    /// cancelled has cancelled the transfer.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `name-rejected`; what the transfer failed with.
    public func sendResource(
        to names: [String], name: String, size: UInt64, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(EarshotError) -> [Resource] {
        guard size <= WireLimits.resourceSize else {
            throw EarshotError(.tooLarge, "a resource has at most \(WireLimits.resourceSize) bytes")
        }
        guard (try? SafeName(name)) != nil else {
            throw EarshotError(.nameRejected, "\(name.debugDescription) is not the name of a file")
        }
        let peers = try self.recipients(names)
        guard peers.count == 1, let peer = peers.first else {
            throw EarshotError(.unsupported, "a streamed body goes to one peer; send it to each")
        }
        let row = self.beginUpload(try BodySource(body, size: size), name: name, size: size, path: nil, to: peer)
        let final = await withTaskCancellationHandler {
            await self.finishedTransfer(row)
        } onCancel: {
            self.job.yield { [weak self] in await self?.abandonUpload(row.id) }
        }
        if final.state != .completed {
            throw EarshotError(final.error ?? .unavailable, final.errorMessage ?? "the transfer failed")
        }
        return [final]
    }

    private func finishedTransfer(_ row: Resource) async -> Resource {
        guard let current = self.transfers[row.id], !current.row.state.isFinal else { return self.transfers[row.id]?.row ?? row }
        return await withCheckedContinuation { self.transfers[row.id]?.waiters.append($0) }
    }

    /// Whoever wanted it sent has gone.
    private func abandonUpload(_ id: ResourceID) {
        guard let row = self.transfers[id]?.row, !row.state.isFinal else { return }
        let refusal = Refusal(code: .cancelled, explanation: "its sender has gone")
        self.records[row.peerID]?.connection?.send([.resourceCancel(ResourceRefuse(id: id, refusal: refusal))])
        self.interruptTransfer(id, .cancelled, "the body was cut off after \(row.transferred) of \(row.size) bytes")
    }

    private func beginUpload(_ source: some OutgoingContent, name: String, size: UInt64, path: String?, to peer: PeerID) -> Resource {
        let row = Resource(
            id: .random(), direction: .outgoing, peerID: peer, peerName: self.records[peer]?.name ?? peer.description, name: name,
            kind: .file, size: size, state: .offered, path: path, createdAt: Date())
        let (signals, continuation) = AsyncStream.makeStream(of: Transfer.Signal.self)
        self.transfers[row.id] = Transfer(row: row, signals: continuation)
        self.limit(row.id, to: .reach)
        self.persist([.putResource(row)]) { _ in }
        self.spawn { [weak self] in await self?.upload(row, from: source, signals: signals) }
        if self.records[peer]?.isAttached == true { continuation.yield(.attached) }
        return row
    }

    private func upload(_ row: Resource, from source: some OutgoingContent, signals: AsyncStream<Transfer.Signal>) async {
        do throws(EarshotError) {
            try await self.pump(row, from: source, signals: signals)
        } catch {
            guard self.isRunning(row.id) else { return }
            let refusal = Refusal(error)
            self.records[row.peerID]?.connection?.send([.resourceCancel(ResourceRefuse(id: row.id, refusal: refusal))])
            self.interruptTransfer(row.id, error.code, error.message)
        }
    }

    /// Offer, bytes within the receiver's window, digest, and the receiver's word that it has published them.
    ///
    /// Returns early where the transfer has ended meanwhile: its stream of signals ends with it.
    private func pump(
        _ row: Resource, from source: some OutgoingContent, signals: AsyncStream<Transfer.Signal>
    ) async throws(EarshotError) {
        var signals = signals.makeAsyncIterator()
        guard case .attached? = await signals.next(isolation: self), let connection = self.records[row.peerID]?.connection,
            let session = self.records[row.peerID]?.session
        else { return }
        connection.send([
            .resourceOffer(ResourceOffer(session: session.id, id: row.id, kind: .file, size: row.size, name: row.name))
        ])
        self.limit(row.id, to: .answer)
        var offset: UInt64 = 0
        var limit: UInt64 = 0
        var isAccepted = false
        var writes: Deque<EventLoopFuture<Void>> = []
        while !isAccepted || offset < row.size {
            while !isAccepted || offset >= limit {
                guard let signal = await signals.next(isolation: self) else { return }
                guard case .accepted(let start, let newLimit) = signal else { continue }
                if !isAccepted {
                    self.limit(row.id, to: .movement(beyond: start))
                    self.progressed(row.id, to: start)
                    offset = start
                    isAccepted = true
                }
                limit = newLimit
                if offset >= row.size { break }
            }
            guard offset < row.size else { break }
            let data = try await source.read(at: offset, count: Int(min(UInt64(WireLimits.chunkData), limit - offset)))
            guard self.isRunning(row.id) else { return }
            guard data.readableBytes > 0 else {
                throw EarshotError(.sourceChanged, "\(row.name) became shorter while it was sent; send it again")
            }
            writes.append(connection.write([.resourceChunk(ResourceChunk(id: row.id, offset: offset, data: data))]))
            offset += UInt64(data.readableBytes)
            // A few writes ahead of the kernel keep disk and network busy together, without filling memory.
            if writes.count >= 4, let oldest = writes.popFirst() {
                do { try await oldest.get() } catch { return }
            }
            self.progressed(row.id, to: offset)
        }
        let digest = try await source.finish()
        guard self.isRunning(row.id) else { return }
        self.limit(row.id, to: .done)
        self.transfers[row.id]?.row.digest = "xxh3:" + digest.hexadecimal
        connection.send([.resourceEnd(ResourceEnd(id: row.id, algorithm: .xxh3, digest: digest))])
        while let signal = await signals.next(isolation: self) {
            guard case .done = signal else { continue }
            self.finishTransfer(row.id, .completed)
        }
    }
}
