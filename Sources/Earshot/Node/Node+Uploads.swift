import DequeModule
import EarshotSafety
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// How resources are sent: jobs that offer, compare, read and hash; who asks for them is in `Node+ResourceSending`.
extension Node {
    // MARK: Jobs

    /// Has what waits for this peer begin or go on, as far as it is there and does not have its hands full.
    func startUploads(to peer: PeerID) {
        guard !self.isStopping, self.attachment(to: peer) != nil else { return }
        var running = self.transfers.count(of: peer, .outgoingJob)
        for id in self.transfers.ids(of: peer, .openOutgoing) {
            guard let upload = self.transfers[id], !upload.hasJob, upload.signals == nil else { continue }
            // One that waits for its turn waits for as long as others take.
            if upload.limit != nil { self.limit(id, to: nil) }
            guard running < EarshotLimits.outgoingTransfers else { continue }
            running += 1
            let (signals, continuation) = AsyncStream.makeStream(of: Transfer.Signal.self)
            self.transfers[upload.row.id]?.signals = continuation
            self.transfers[upload.row.id]?.hasJob = true
            self.transfers[upload.row.id]?.content = nil
            self.transfers[upload.row.id]?.unrecordedSince = self.transport.timers.now
            self.spawn { [weak self] in await self?.upload(upload.row.id, upload.content, signals) }
        }
    }

    private func upload(_ id: ResourceID, _ content: (any OutgoingContent)?, _ signals: AsyncStream<Transfer.Signal>) async {
        do throws(EarshotError) {
            let source = if let content { content } else { try await self.reopen(id) }
            try await self.pump(id, from: source, signals: signals)
        } catch {
            if self.isMoving(id) { self.endTransfer(id, error.code, error.message, told: Refusal(error)) }
        }
        self.jobEnded(id)
    }

    /// The source of a transfer that goes on, or begins late, as it is now.
    private func reopen(_ id: ResourceID) async throws(EarshotError) -> any OutgoingContent {
        guard let transfer = self.transfers[id], let stored = transfer.stored else {
            throw EarshotError(.cancelled, "the transfer has ended")
        }
        switch stored.source {
        case .path:
            guard let path = transfer.row.path else { break }
            let opened = try await SourceOpening.open(path)
            guard opened.kind == transfer.row.kind else {
                throw EarshotError(.sourceChanged, "\(path.escapedForDisplay) is no \(transfer.row.kind.rawValue) any more; send it again")
            }
            return try SourceContent(opened.source)
        case .spool: return try SourceContent(SourceFile(path: self.spool.outgoingPath(id)))
        case .body, .none: break
        }
        throw EarshotError(.unavailable, "a body that was streamed in cannot be read twice; send it again")
    }

    /// The offer, and what the receiver makes of it: from where to where to send. `nil` where the transfer has ended, or is interrupted.
    ///
    /// A source that is not what it was when it was last looked at is offered with its present size, and sent from its beginning.
    private func agree(
        on id: ResourceID, _ content: any OutgoingContent, over connection: Connection,
        _ signals: inout AsyncStream<Transfer.Signal>.Iterator
    ) async throws(EarshotError) -> (offset: UInt64, limit: UInt64)? {
        guard let session = self.transfers[id].flatMap({ self.core.facts(of: $0.row.peerID)?.session }) else { return nil }
        let isChanged = self.lookAtSource(of: id, content)
        guard let offer = self.transfers[id]?.offer(in: session) else { return nil }
        self.transfers[id]?.isOffered = true
        connection.send([.resourceOffer(offer)])
        self.limit(id, to: .answer)
        while let signal = await signals.next(isolation: self) {
            switch signal {
            case .accepted(let offset, let limit, _): return (offset, limit)
            case .have(let count, let digest):
                self.limit(id, to: .comparison)
                let own = isChanged ? nil : try await content.prefixDigest(count)
                guard self.isMoving(id) else { return nil }
                connection.send([.resourceFrom(ResourceFrom(id: id, offset: own == digest ? count : 0))])
                self.limit(id, to: .answer)
            case .done:
                // It was there already; only its word for it was lost.
                self.finishTransfer(id, .completed)
                return nil
            case .from, .chunk, .end, .turn, .data: break
            }
        }
        return nil
    }

    /// Whether the source has changed since it was last looked at; its present state is recorded.
    private func lookAtSource(of id: ResourceID, _ content: any OutgoingContent) -> Bool {
        guard var transfer = self.transfers[id], var stored = transfer.stored, let source = content.source, stored.stamp != source.stamp
        else { return false }
        self.logger.info("the source of a transfer has changed", metadata: ["id": "\(id)"])
        stored.stamp = source.stamp
        transfer.stored = stored
        transfer.row.size = source.size
        transfer.row.transferred = 0
        self.transfers[id] = transfer
        self.keepRows { rows in
            rows.put(transfer.row)
            rows.put(stored)
        }
        return true
    }

    /// Offer, bytes within the receiver's window, digest, and the receiver's word that it has published them.
    ///
    /// Returns early where the transfer has ended or is interrupted meanwhile: its stream of signals ends with it.
    private func pump(
        _ id: ResourceID, from source: any OutgoingContent, signals: AsyncStream<Transfer.Signal>
    ) async throws(EarshotError) {
        var signals = signals.makeAsyncIterator()
        guard let connection = self.transfers[id].flatMap({ self.connection(to: $0.row.peerID) }),
            let accepted = try await self.agree(on: id, source, over: connection, &signals), let row = self.transfers[id]?.row,
            let algorithm = self.transfers[id]?.stored?.digest
        else { return }
        var (offset, limit) = accepted
        self.limit(id, to: .movement(beyond: offset))
        self.progressed(id, to: offset)
        // Of what goes over a data connection the receiver says how far it is.
        var isElsewhere = row.isForDataConnection(from: offset, limit: limit)
        var writes: Deque<EventLoopFuture<Void>> = []
        while offset < row.size {
            while offset < row.size, offset >= limit {
                guard let signal = await signals.next(isolation: self) else { return }
                switch signal {
                case .accepted(let start, let newLimit, _):
                    if isElsewhere { offset = start }
                    isElsewhere = row.isForDataConnection(from: start, limit: newLimit)
                    limit = newLimit
                case .data(let data?): try await self.send(id, source, from: offset, over: data)
                case .data(nil), .chunk, .end, .turn, .done, .have, .from: break
                }
            }
            guard offset < row.size else { break }
            let data = try await source.read(at: offset, count: Int(min(UInt64(WireLimits.chunkData), limit - offset)))
            guard self.isMoving(row.id) else { return }
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
        let digest = try await source.finish(algorithm)
        guard self.isMoving(row.id) else { return }
        self.limit(row.id, to: .done)
        self.transfers[row.id]?.row.digest = "\(algorithm):" + digest.hexadecimal
        connection.send([.resourceEnd(ResourceEnd(id: row.id, algorithm: algorithm, digest: digest))])
        while let signal = await signals.next(isolation: self) {
            guard case .done = signal else { continue }
            self.finishTransfer(row.id, .completed)
        }
    }

    /// Everything from the offset on over a data connection. Where that is lost, the receiver says how to go on.
    private func send(
        _ id: ResourceID, _ source: any OutgoingContent, from offset: UInt64, over data: DataConnection
    ) async throws(EarshotError) {
        let sent = TransferCount(offset)
        self.moves(id) { sent.value }
        defer { self.moves(id, nil) }
        _ = try await source.send(from: offset, over: data, counting: sent)
    }

    /// The receiver takes it, or says how far it is.
    func received(_ accept: ResourceAccept, from peer: PeerID) {
        // One may follow another while the job waits for bytes to send.
        let signal = Transfer.Signal.accepted(offset: accept.offset, limit: accept.limit, self.charge(EarshotLimits.waitCharge))
        guard self.signal(accept.id, from: peer, .outgoing, signal),
            let transfer = self.transfers[accept.id], accept.isForDataConnection(size: transfer.row.size)
        else { return }
        self.openData(TransferID(accept.id), with: peer, then: Self.handing(to: transfer.signals))
    }

    /// Hands a transfer's job its data connection; one that no job takes any more is closed.
    static func handing(to signals: AsyncStream<Transfer.Signal>.Continuation?) -> (DataConnection?) -> Void {
        { data in
            if case .enqueued? = signals?.yield(.data(data)) { return }
            data?.close()
        }
    }
}

extension Resource {
    /// Whether an accept of this range has the bytes come over a data connection.
    func isForDataConnection(from offset: UInt64, limit: UInt64) -> Bool {
        ResourceAccept(id: self.id, offset: offset, limit: limit).isForDataConnection(size: self.size)
    }
}
