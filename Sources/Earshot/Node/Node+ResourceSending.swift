import EarshotSafety
import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Asking for resources to be sent: by their paths, or as bodies that pass by or are kept first.
extension Node {
    /// Sends a file or a directory by its path to one or more peers; returns once it was looked at, a row a peer. To all of them, or where
    /// it throws to none.
    ///
    /// A transfer that is interrupted goes on when the peer is back, also after a restart, for `resourceResumeTime`. With `queue` it waits
    /// for a peer that is away from the beginning, until `outboxAge`, and is recorded on disk when this returns; a trusted peer
    /// without a session is invited whenever it is seen.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `invalid-source` where the path is no readable file or directory,
    ///   or something in a directory is neither of them nor a link; `name-rejected` for a link that leads out of it; with `queue`
    ///   `no-space` where too many wait already, and `storage`.
    public func sendResource(
        to names: [String], path: String, digest: Resource.Digest = .xxh3, queue: Bool = false
    ) async throws(EarshotError) -> [Resource] {
        let peers = try queue ? self.core.recipients(names) : self.recipients(names)
        if queue { try self.checkQueue(adding: peers.count) }
        var uploads: [(row: Resource, stored: StoredTransfer, content: SourceContent)] = []
        for peer in peers {
            // Each transfer has its own descriptor and its own digest of what it read.
            let opened = try await SourceOpening.open(path)
            let source = opened.source
            let row = self.newRow(named: opened.name, opened.kind, size: source.size, path: path, to: peer)
            let stored = self.newTransfer(row.id, .path, stamp: source.stamp, digest, isQueued: queue)
            uploads.append((row, stored, try SourceContent(source)))
        }
        if queue { try await self.persist(uploads.flatMap { [.putResource($0.row), .putTransfer($0.stored)] }) }
        // Nothing fails from here on that a row does not tell.
        return uploads.map { self.beginUpload($0.row, $0.stored, $0.content, isRecorded: queue) }
    }

    /// Sends a resource as its bytes come in, and returns when the peer has published it. It ends with a lost connection.
    ///
    /// `size` must be the body's exact length in bytes; a directory's body is its tree, as the protocol's specification has it.
    /// A body can be read only once, so there is one recipient. A caller whose task is cancelled has cancelled the transfer.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `name-rejected`; what the transfer failed with.
    public func sendResource(
        to names: [String], name: String, kind: Resource.Kind = .file, size: UInt64, digest: Resource.Digest = .xxh3,
        body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(name, size)
        guard !self.core.areStreamsOver else { throw Self.stopping }
        let peer = try self.only(try self.recipients(names))
        let row = self.newRow(named: name, kind, size: size, path: nil, to: peer)
        let stored = self.newTransfer(row.id, .body, stamp: "", digest, isQueued: false)
        let source = try BodySource(size: size, digest: stored.digest)
        let ended = OneShot<Resource>()
        _ = self.beginUpload(row, stored, source, isRecorded: false, ended: ended)
        let final = await withTaskCancellationHandler {
            await Self.forward(body, to: source.feed, until: ended) ?? row
        } onCancel: {
            self.job.yield { [weak self] in await self?.abandonUpload(row.id) }
        }
        if final.state != .completed {
            throw EarshotError(final.error ?? .unavailable, final.errorMessage ?? "the transfer failed")
        }
        return [final]
    }

    /// Keeps a body in the spool, and sends it from there as if by path with `queue`; returns when it is on disk.
    ///
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `name-rejected`; `no-space` beyond the spool's quota or the reserve; what the
    ///   body fails with.
    public func queueResource(
        to names: [String], name: String, kind: Resource.Kind = .file, size: UInt64, digest: Resource.Digest = .xxh3,
        body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(EarshotError) -> [Resource] {
        try Self.check(name, size)
        let peer = try self.only(try self.core.recipients(names))
        try self.checkQueue(adding: 1)
        let row = self.newRow(named: name, kind, size: size, path: nil, to: peer)
        _ = try await self.spool.begin(row.id, size: size, self.allowance)
        do {
            var offset: UInt64 = 0
            for try await piece in body { offset = try await self.spool.write(row.id, offset: offset, piece) }
        } catch {
            await self.spool.abandon(row.id)
            throw error as? EarshotError ?? EarshotError(.cancelled, "the body was cut off", underlying: error)
        }
        let path = try await self.spool.keepForSending(row.id)
        do throws(EarshotError) {
            let source = try SourceFile(path: path)
            let stored = self.newTransfer(row.id, .spool, stamp: source.stamp, digest, isQueued: true)
            try await self.persist([.putResource(row), .putTransfer(stored)])
            return [self.beginUpload(row, stored, try SourceContent(source), isRecorded: true)]
        } catch {
            await self.spool.dropOutgoing(row.id)
            throw error
        }
    }

    /// Reads the body for its transfer, until that has ended. It is not read any more when this returns: it belongs to the caller again.
    private static func forward(
        _ body: any AsyncSequence<ByteBuffer, any Error> & Sendable, to feed: BodyFeed, until ended: OneShot<Resource>
    ) async -> Resource? {
        await withTaskGroup(of: Resource?.self) { group in
            group.addTask {
                await feed.read(body)
                return nil
            }
            group.addTask { await ended.value() }
            var final: Resource?
            for await row in group where row != nil {
                final = row
                feed.close()
                group.cancelAll()
            }
            return final
        }
    }

    private static func check(_ name: String, _ size: UInt64) throws(EarshotError) {
        guard size <= WireLimits.resourceSize else {
            throw EarshotError(.tooLarge, "a resource has at most \(WireLimits.resourceSize) bytes")
        }
        guard (try? SafeName(name)) != nil else {
            throw EarshotError(.nameRejected, "\(name.debugDescription) is not the name of a file")
        }
    }

    private func only(_ peers: [PeerID]) throws(EarshotError) -> PeerID {
        guard peers.count == 1, let peer = peers.first else {
            throw EarshotError(.unsupported, "a streamed body goes to one peer; send it to each")
        }
        return peer
    }

    private func checkQueue(adding count: Int) throws(EarshotError) {
        let waiting = self.transfers.count(.openOutgoing)
        guard waiting + count <= EarshotLimits.queuedResources else {
            throw EarshotError(.noSpace, "\(waiting) files wait for their receivers already; try again later")
        }
    }

    // MARK: Beginning

    private func newRow(named name: String, _ kind: Resource.Kind, size: UInt64, path: String?, to peer: PeerID) -> Resource {
        Resource(
            id: .random(), direction: .outgoing, peerID: peer, peerName: self.name(of: peer), name: name,
            kind: kind, size: size, state: .offered, path: path, createdAt: self.now)
    }

    private func newTransfer(
        _ id: ResourceID, _ source: StoredTransfer.Source, stamp: String, _ digest: Resource.Digest, isQueued: Bool
    ) -> StoredTransfer {
        let patience = isQueued ? self.configuration.outboxAge : EarshotLimits.resourceResumeTime
        let algorithm: ResourceEnd.DigestAlgorithm =
            switch digest {
            case .xxh3: .xxh3
            case .sha256: .sha256
            }
        return StoredTransfer(
            id: id, source: source, stamp: stamp, digest: algorithm, isQueued: isQueued,
            expiresAt: self.now.addingTimeInterval(patience / .seconds(1)))
    }

    private func beginUpload(
        _ row: Resource, _ stored: StoredTransfer, _ content: any OutgoingContent, isRecorded: Bool, ended: OneShot<Resource>? = nil
    ) -> Resource {
        var transfer = Transfer(row: row, stored: stored)
        transfer.content = content
        transfer.ended = ended
        self.transfers[row.id] = transfer
        if !isRecorded {
            self.keepRows { rows in
                rows.put(row, isNew: true)
                rows.put(stored)
            }
        }
        let facts = self.core.facts(of: row.peerID)
        if stored.isQueued, facts?.session == nil, facts?.trust != .trusted {
            // What it was to wait for has ended while the disk was busy.
            self.finishTransfer(row.id, .failed, EarshotError(.notConnected, "the session has ended"))
            return self.transfers[row.id]?.row ?? row
        }
        if facts?.isAttached != true { self.limit(row.id, to: stored.isQueued ? .absence : .reach) }
        self.startUploads(to: row.peerID)
        // What can be opened again is, when its turn comes: a thousand that wait do not need a thousand descriptors.
        if stored.isResumable { self.transfers[row.id]?.content = nil }
        self.handle(.need(row.peerID, .sessionForQueue))
        self.handle(.need(row.peerID, .connection(now: false)))
        return row
    }

    /// The daemon is about to stop, and callers that send bodies are to know now: their connections would hold the stop up.
    func endBodies() {
        for id in self.transfers.ids(.openOutgoing) where self.transfers[id]?.stored?.source == .body {
            self.endTransfer(id, Self.stopping.code, Self.stopping.message, told: Refusal(Self.stopping))
        }
    }

    /// The caller that wanted it sent has gone.
    private func abandonUpload(_ id: ResourceID) {
        guard let row = self.transfers[id]?.row else { return }
        self.endTransfer(
            id, .cancelled, "the body was cut off after \(row.transferred) of \(row.size) bytes",
            told: Refusal(code: .cancelled, explanation: "its sender has gone"))
    }

    /// Whether files wait for this peer whatever becomes of an attempt to reach it.
    func hasQueuedUploads(for peer: PeerID) -> Bool {
        self.transfers.count(of: peer, .queued) > 0
    }
}
