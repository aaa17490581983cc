import EarshotSafety
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Receiving resources: into the spool under our own id, checked, then published there; the name is only metadata.
extension Node {
    func checkRoom(_ row: Resource) async throws(EarshotError) {
        if let destination = self.destination, let name = try? SafeName(row.name) {
            do throws(EarshotError) {
                try await self.spool.publisher.check(name, size: row.size, spool: self.spool.directory, destination)
            } catch {
                // A directory that is away now may be back at the end; else the content stays in the spool.
                if error.code != .storage { throw error }
            }
        }
        try await self.spool.check(row.id, size: row.size, self.allowance(for: row.peerID))
    }

    /// For what this node keeps for itself.
    var allowance: Spool.Allowance { Spool.Allowance(quota: self.configuration.quota, reserve: self.configuration.reserve) }

    /// For what a peer sends.
    func allowance(for peer: PeerID) -> Spool.Allowance {
        let share = QuotaShare(of: peer, isTrusted: self.core.facts(of: peer)?.trust == .trusted)
        return Spool.Allowance(quota: self.configuration.quota, reserve: self.configuration.reserve, share: share)
    }

    /// Where received files go, as it is configured now.
    var destination: Publisher.Destination? {
        guard let directory = self.configuration.receiveDirectory else { return nil }
        let conflict: SafeDirectory.Conflict =
            switch self.configuration.onNameConflict {
            case .rename: .rename
            case .overwrite: .overwrite
            case .skip: .skip
            }
        return Publisher.Destination(directory: directory, conflict: conflict, reserve: self.configuration.reserve)
    }

    // MARK: Beginning

    /// The way on which a job hears of its transfer, which has a job from now on.
    func prepareDownload(_ id: ResourceID) -> AsyncStream<Transfer.Signal>? {
        guard self.isOpen(id), self.transfers[id]?.hasJob == false else { return nil }
        let (signals, continuation) = AsyncStream.makeStream(of: Transfer.Signal.self)
        self.transfers[id]?.signals = continuation
        self.transfers[id]?.hasJob = true
        self.transfers[id]?.unrecordedSince = self.transport.timers.now
        self.limit(id, to: nil)
        return signals
    }

    /// Takes an offer beside the node's queue.
    func beginDownload(_ id: ResourceID, on connection: Connection) {
        guard let signals = self.prepareDownload(id) else { return }
        self.spawn { [weak self] in try? await self?.take(id, on: connection, signals) }
    }

    /// Takes an offer: space for it first, or what is here of it from before, then the sender's go-ahead. When it throws, the sender has
    /// been told.
    func take(_ id: ResourceID, on connection: Connection, _ signals: AsyncStream<Transfer.Signal>) async throws(EarshotError) {
        guard let row = self.transfers[id]?.row else { return }
        do throws(EarshotError) {
            // Taken back, or interrupted, before this had its turn.
            guard self.isMoving(id) else { throw EarshotError(.cancelled, "the transfer has ended") }
            let start = try await self.beginning(of: row, on: connection, signals)
            guard self.isMoving(id) else { throw EarshotError(.cancelled, "the transfer has ended") }
            self.progressed(id, to: start)
            let limit = self.accept(row, from: start, on: connection)
            self.limit(id, to: .movement(beyond: start))
            self.spawn { [weak self] in await self?.download(row, from: start, limit: limit, on: connection, signals: signals) }
        } catch {
            await self.abandon(row, on: connection, signals: signals, error)
            throw error
        }
    }

    /// From where to receive: behind what is here of it, where the sender's source begins with that, else from the start.
    private func beginning(
        of row: Resource, on connection: Connection, _ signals: AsyncStream<Transfer.Signal>
    ) async throws(EarshotError) -> UInt64 {
        try await self.awaitTreeList(of: row, signals)
        let (allowance, listed) = (self.allowance(for: row.peerID), self.treeListing(row.id))
        if let held = try await self.spool.resume(row.id, size: row.size, allowance, listed: listed) {
            guard self.isMoving(row.id) else { throw EarshotError(.cancelled, "the transfer has ended") }
            connection.send([.resourceHave(ResourceHave(id: row.id, offset: held.count, digest: held.digest))])
            self.limit(row.id, to: .comparison)
            var answers = signals.makeAsyncIterator()
            guard case .from(let offset)? = await answers.next(isolation: self), self.isMoving(row.id) else {
                throw EarshotError(.cancelled, "the transfer has ended")
            }
            self.limit(row.id, to: nil)
            guard offset == 0 else { return offset }
            await self.spool.abandon(row.id)
        }
        try await self.checkRoom(row)
        return try await self.spool.begin(row.id, kind: row.kind, size: row.size, allowance, listed: listed)
    }

    // MARK: Receiving

    private func download(
        _ row: Resource, from start: UInt64, limit: UInt64, on connection: Connection, signals: AsyncStream<Transfer.Signal>
    ) async {
        do throws(EarshotError) {
            try await self.pump(row, from: start, limit: limit, on: connection, signals: signals)
            self.jobEnded(row.id)
        } catch {
            await self.abandon(row, on: connection, signals: signals, error)
        }
    }

    /// The job's end, but for a whole one: what still waits is dropped, and the connection reads on. What has arrived of an interrupted one
    /// is kept.
    private func abandon(
        _ row: Resource, on connection: Connection, signals: AsyncStream<Transfer.Signal>, _ error: EarshotError
    ) async {
        guard !self.isStopping else { return }
        let isInterrupted = self.isOpen(row.id) && !self.isMoving(row.id)
        self.transfers[row.id]?.signals?.finish()
        for await case .chunk(_, _, let weight) in signals { connection.processed(weight) }
        if isInterrupted {
            await self.spool.pause(row.id)
            // Ended while the spool was busy.
            if !self.isOpen(row.id) { await self.spool.abandon(row.id) }
        } else {
            if self.isOpen(row.id) { self.handle(Input.vainOffer(row.peerID)) }
            await self.spool.abandon(row.id)
            self.endTransfer(row.id, error.code, error.message, told: Refusal(error))
        }
        self.jobEnded(row.id)
    }

    private func pump(
        _ row: Resource, from start: UInt64, limit: UInt64, on connection: Connection, signals: AsyncStream<Transfer.Signal>
    ) async throws(EarshotError) {
        let id = row.id
        var (written, limit) = (start, limit)
        var receiver: DataReceiver?
        var failures = 0
        for await signal in signals {
            switch signal {
            case .chunk(let offset, let data, let weight):
                defer { connection.processed(weight) }
                guard self.isMoving(id) else { continue }
                written = try await self.spool.write(id, offset: offset, data)
                self.progressed(id, to: written)
                let window = self.window(for: row.peerID)
                if limit < row.size, limit - written <= window / 2 {
                    limit = max(limit, min(row.size, written + window))
                    connection.send([.resourceAccept(ResourceAccept(id: id, offset: written, limit: limit))])
                }
            case .end(let algorithm, let digest):
                guard self.isMoving(id) else { continue }
                // From here on it is this machine's disk that takes its time, whatever becomes of the connection.
                self.transfers[id]?.isSettling = true
                self.limit(id, to: nil)
                let text = try await self.spool.finish(id, algorithm: algorithm, digest: digest)
                guard self.isOpen(id) else {
                    try await self.spool.remove(id)
                    return
                }
                try await self.publish(id, digest: text)
                connection.send([.resourceDone(id)])
                return
            case .data(let data?):
                guard self.isMoving(id) else {
                    data.close()
                    continue
                }
                if receiver == nil { receiver = try DataReceiver(try await self.spool.incoming(id)) }
                guard let receiver else { continue }
                let before = written
                written = try await self.receive(row, over: data, by: receiver)
                guard self.isMoving(id) else { continue }
                failures = written > before ? 0 : failures + 1
                limit = self.accept(row, from: written, on: connection, overData: failures < EarshotLimits.dataFailures)
            case .data(nil):
                guard self.isMoving(id) else { continue }
                limit = self.accept(row, from: written, on: connection, overData: false)
            case .accepted, .have, .from, .turn, .done: break
            }
        }
        throw EarshotError(.cancelled, "the transfer has ended")
    }

    /// Says from where the bytes are to come, and how: many over a data connection, few, or where there can be none, over this one. Returns
    /// up to where they may come here.
    private func accept(_ row: Resource, from offset: UInt64, on connection: Connection, overData: Bool = true) -> UInt64 {
        let isForData = overData && row.size - offset >= EarshotLimits.dataThreshold
        let limit = isForData ? offset : min(row.size, offset + self.window(for: row.peerID))
        connection.send([.resourceAccept(ResourceAccept(id: row.id, offset: offset, limit: limit))])
        if isForData {
            self.openData(TransferID(row.id), with: row.peerID, then: Self.handing(to: self.transfers[row.id]?.signals))
        } else {
            self.closeData(TransferID(row.id))
        }
        return limit
    }

    /// Takes what comes over a data connection, and returns how much there is now from the start.
    private func receive(_ row: Resource, over data: DataConnection, by receiver: DataReceiver) async throws(EarshotError) -> UInt64 {
        let content = receiver.content
        self.moves(row.id) { content.written }
        defer { self.moves(row.id, nil) }
        let outcome = try await receiver.receive(over: data)
        if case .ended = outcome, content.written < row.size {
            throw EarshotError(.protocolViolation, "only \(content.written) of \(row.size) bytes arrived; send it again")
        }
        return content.written
    }

    /// The content is whole and on disk; with the row on disk too, and the content where it belongs, the sender may be told.
    private func publish(_ id: ResourceID, digest: String) async throws(EarshotError) {
        guard var row = self.transfers[id]?.row else { return }
        row.digest = digest
        row.inSpool = true
        row.state = .completed
        row.transferred = row.size
        row.bytesPerSecond = 0
        row.secondsLeft = nil
        row.completedAt = self.now
        let destination = self.destination
        do throws(EarshotError) {
            var kept = row
            if destination != nil {
                // So that the next start knows what this one was about to do, should it be killed before it is done.
                kept.error = .unavailable
                kept.errorMessage = "the daemon was stopped before it was put in place; it is still here: earshot file get"
            }
            try await self.persist([.putResource(kept), .removeTransfer(id)])
        } catch {
            // Where this node stops, the next start takes it up from here.
            if !self.isStopping { try? await self.spool.remove(id) }
            throw error
        }
        guard self.isOpen(id) else {
            // Cancelled while the disk was busy: the cancellation was told, so it holds.
            try? await self.spool.remove(id)
            if let current = self.transfers[id]?.row { self.persist([.putResource(current)]) { _ in } }
            throw EarshotError(.cancelled, "the transfer has ended")
        }
        if let destination {
            self.transfers[id]?.isPublishing = true
            try await self.putInPlace(&row, destination)
            self.transfers[id]?.isPublishing = false
        }
        self.transfers[id]?.row = row
        self.transfers[id]?.stored = nil
        self.transfers[id]?.signals?.finish()
        self.transfers[id]?.signals = nil
        self.closeData(TransferID(id))
        self.publish(.resourceFinished(row))
        self.forgetFinishedTransfers(endedBy: row.peerID)
    }

    // MARK: Putting in place

    /// What an earlier run has received and not put into the directory of received files, killed or because it could not: tried once more,
    /// at the start. Meanwhile it can be neither fetched nor deleted.
    func publishLeft(to destination: Publisher.Destination) async {
        let left = self.transfers.values.filter { $0.row.isLeft && $0.isPublishing }.map(\.row)
        for var row in left where !self.isStopping {
            row.error = nil
            row.errorMessage = nil
            try? await self.putInPlace(&row, destination, isLeft: true)
            self.transfers[row.id]?.row = row
            self.transfers[row.id]?.isPublishing = false
            if !row.inSpool { self.publish(.resourceFinished(row)) }
        }
    }

    /// From the spool into the directory of received files. Where that fails the content stays in the spool, and the row says why.
    /// - Throws: `conflict` where the name was taken meanwhile and nothing is to be replaced or renamed; not for one that `isLeft`, of
    ///   which the sender may have been told that it is here.
    private func putInPlace(
        _ row: inout Resource, _ destination: Publisher.Destination, isLeft: Bool = false
    ) async throws(EarshotError) {
        do throws(EarshotError) {
            guard let name = try? SafeName(row.name) else { throw EarshotError(.nameRejected, "the name is not that of a file") }
            let content = try await self.spool.content(row.id)
            let publisher = self.spool.publisher
            // The run before may have come as far as that, and no further.
            let found = isLeft ? try await publisher.find(content, as: name, in: destination, since: row.completedAt ?? .now) : nil
            if let found {
                row.path = found
            } else if let path = try await publisher.publish(content, as: name, destination) {
                row.path = path
            } else {
                throw Publisher.taken(name)
            }
            row.inSpool = false
        } catch  where error.code == .conflict && !isLeft {
            self.transfers[row.id]?.isPublishing = false
            try? await self.spool.remove(row.id)
            throw error
        } catch {
            self.logger.error("a received file stays in the spool", metadata: ["id": "\(row.id)", "error": "\(error)"])
            row.error = error.code
            row.errorMessage = "\(error.message); it is still here: earshot file get"
        }
        do throws(EarshotError) {
            try await self.persist([.putResource(row)])
            if !row.inSpool { try await self.spool.remove(row.id) }
        } catch {
            // The file is where it belongs; the store says that it is in the spool, where the next start looks for it.
            self.logger.error("cannot record where a received file is", metadata: ["id": "\(row.id)", "error": "\(error)"])
        }
    }

    // MARK: The window

    private func window(for peer: PeerID) -> UInt64 {
        self.transfers.count(of: peer, .openIncoming) > 1 ? EarshotLimits.sharedResourceWindow : EarshotLimits.resourceWindow
    }
}
