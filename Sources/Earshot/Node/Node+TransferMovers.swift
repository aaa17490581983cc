import EarshotCore
import EarshotSafety
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore

/// Movers of resources' bytes, as commanded by the core.
extension Node {
    // MARK: Allowances

    /// The allowance for content that this node stores for itself.
    var allowance: Spool.Allowance { Spool.Allowance(quota: self.configuration.quota, reserve: self.configuration.reserve) }

    /// Returns the allowance for content from a peer.
    func allowance(_ share: QuotaShare) -> Spool.Allowance {
        Spool.Allowance(quota: self.configuration.quota, reserve: self.configuration.reserve, share: share)
    }

    /// The current destination of received files.
    private var destination: Publisher.Destination? {
        guard let directory = self.configuration.receiveDirectory else { return nil }
        let conflict: SafeDirectory.Conflict =
            switch self.configuration.onNameConflict {
            case .rename: .rename
            case .overwrite: .overwrite
            case .skip: .skip
            }
        return Publisher.Destination(directory: directory, conflict: conflict, reserve: self.configuration.reserve)
    }

    // MARK: Bytes

    /// Returns how many bytes of a chunk's weight stay charged to its peer until the chunk is written.
    func received(_ chunk: ResourceChunk, weight: Int, on connection: Connection) -> Int {
        guard let mover = self.transferMovers[chunk.id], mover.peer == connection.peer.id,
            mover.order(DownloadJob.Order.write(chunk.data.compacted, at: chunk.offset, weight: weight, connection))
        else { return 0 }
        return weight
    }

    // MARK: Effects

    func carryOut(_ command: TransferCommand, for id: ResourceID) {
        switch command {
        case .open(let row, let source): self.beginUpload(row, source)
        case .compare(let count): self.order(id, UploadJob.Order.compare(count))
        case .send(let start, let end, let link):
            if let connection = self.links[link] { self.order(id, UploadJob.Order.send(from: start, upTo: end, on: connection)) }
        case .sendOverData(let offset):
            guard let data = self.dataConnections[TransferID(id)] else { return self.handle(.transfer(id, .dataSent(to: offset))) }
            self.order(id, UploadJob.Order.sendOverData(from: offset, data))
        case .digest(let algorithm): self.order(id, UploadJob.Order.digest(algorithm))
        case .checkRoom(let row, let share): self.checkRoom(row, share)
        case .resume(let row, let share, let attributes):
            self.beginDownload(row, attributes)
            self.order(id, DownloadJob.Order.resume(self.allowance(share)))
        case .begin(_, let share): self.order(id, DownloadJob.Order.begin(self.allowance(share), self.destination))
        case .receiveData: self.order(id, DownloadJob.Order.receive(self.dataConnections[TransferID(id)]))
        case .receiveBody(let row, let share, let attributes, let call):
            guard let feed = self.deviceBodies[call] else { return }
            self.beginDownload(row, attributes)
            self.order(id, DownloadJob.Order.receiveBody(self.allowance(share), self.destination, feed))
        case .settle(let digest): self.order(id, DownloadJob.Order.settle(digest))
        case .place(let row): self.place(row)
        case .removeContent(let call): self.removeContent(of: id, for: call)
        case .pace(let rate):
            self.transferMovers[id]?.state.pacer.pace(at: rate)
            self.paceShipment(of: id, at: rate)
        case .look: if let mover = self.transferMovers[id] { self.handle(.transfer(id, .moved(to: mover.state.position))) }
        case .stop(let isKept):
            guard let mover = self.transferMovers.removeValue(forKey: id) else { return self.handle(.transfer(id, .stopped)) }
            mover.stop(isKept: isKept)
        case .discard(let source): self.discard(id, source)
        }
    }

    private func order(_ id: ResourceID, _ order: UploadJob.Order) { _ = self.transferMovers[id]?.order(order) }

    private func order(_ id: ResourceID, _ order: DownloadJob.Order) { _ = self.transferMovers[id]?.order(order) }

    private func reporter(of id: ResourceID) -> @Sendable (TransferReport) -> Void {
        { [input] report in input.yield(.core(.transfer(id, report))) }
    }

    private func beginUpload(_ row: Resource, _ source: StoredTransfer.Source) {
        let (orders, continuation) = AsyncStream.makeStream(of: UploadJob.Order.self)
        let state = TransferMoverState()
        self.transferMovers[row.id] = TransferMover(peer: row.peerID, orders: .upload(continuation), state: state)
        let job = UploadJob(
            row: row, source: source, held: self.heldFiles[row.id], spool: self.spool, state: state, report: self.reporter(of: row.id))
        let opened = self.openedSources.removeValue(forKey: row.id)?.take()
        self.spawn { await job.run(orders, opened) }
    }

    private func beginDownload(_ row: Resource, _ attributes: FileAttributes?) {
        let (orders, continuation) = AsyncStream.makeStream(of: DownloadJob.Order.self)
        let state = TransferMoverState()
        self.transferMovers[row.id] = TransferMover(peer: row.peerID, orders: .download(continuation), state: state)
        let job = DownloadJob(
            row: row, attributes: attributes, spool: self.spool, state: state, report: self.reporter(of: row.id))
        self.spawn { await job.run(orders) }
    }

    private func checkRoom(_ row: Resource, _ share: QuotaShare) {
        let (report, allowance, destination) = (self.reporter(of: row.id), self.allowance(share), self.destination)
        self.spawn { [spool] in
            do throws(EarshotError) {
                try await spool.checkRoom(row, allowance, destination)
                report(.room(nil))
            } catch {
                report(.room(TransferFailure(error, told: Refusal(error))))
            }
        }
    }

    private func removeContent(of id: ResourceID, for call: CallID?) {
        // The mover removes its own content before it stops, because the content may be offered again after that.
        if call == nil, self.transferMovers[id]?.order(DownloadJob.Order.removeContent) == true { return }
        let report = self.reporter(of: id)
        self.spawn { [spool] in report(await spool.removal(of: id, for: call)) }
    }

    private func discard(_ id: ResourceID, _ source: StoredTransfer.Source) {
        switch source {
        case .path, .body, .held: self.openedSources[id] = nil
        case .spool:
            self.openedSources[id] = nil
            self.spawn { [spool] in await spool.dropOutgoing(id) }
        case .none: self.spawn { [spool] in await spool.abandon(id) }
        }
    }

    // MARK: Publishing

    private func place(_ row: Resource) {
        let report = self.reporter(of: row.id)
        // If no directory is configured any more, the content stays in the spool.
        guard let destination = self.destination else { return report(.placed(.success(nil))) }
        self.spawn { [spool] in report(.placed(await Self.place(row, from: spool, in: destination, isLeft: false))) }
    }

    /// Retries, at the start, to move the files that an earlier run received but did not move, because it was killed or failed. First
    /// removes the partial copies that the earlier run left. Runs in a job, because the directory may be slow. Replaces no file: the
    /// existing one may be newer, or changed by a user.
    func placeLeft(_ rows: [Resource]) {
        let destination = self.destination?.replacingNothing
        self.spawn { [input, spool, logger] in
            let removed = await spool.publisher.removeLeftParts()
            if removed > 0 {
                logger.info("removed what an earlier run had not put in place", metadata: ["parts": "\(removed)"])
            }
            guard let destination else { return }
            for row in rows where !Task.isCancelled {
                let result = await Self.place(row, from: spool, in: destination, isLeft: true)
                input.yield(.core(.transfer(row.id, .placed(result))))
            }
        }
    }

    /// Moves content from the spool into the directory of received files. Returns its new path.
    private static func place(
        _ row: Resource, from spool: Spool, in destination: Publisher.Destination, isLeft: Bool
    ) async -> Result<String?, EarshotError> {
        do throws(EarshotError) {
            guard let name = try? SafeName(row.name) else { throw EarshotError(.nameRejected, "the name is not that of a file") }
            let destination = try destination.under(row.folder)
            let content = try await spool.content(row.id)
            // An earlier run may already have moved the file, but stopped before it noted that.
            let since = row.completedAt ?? .now
            if isLeft, let found = try await spool.publisher.find(content, as: name, in: destination, since: since) {
                return .success(found)
            }
            guard let path = try await spool.publisher.publish(content, as: name, destination) else { throw Publisher.taken(name) }
            return .success(path)
        } catch {
            return .failure(error)
        }
    }
}
