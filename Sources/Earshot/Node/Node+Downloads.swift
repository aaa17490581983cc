import EarshotSafety
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Receiving resources: into the spool under our own id, checked, then published there; the name is only metadata.
extension Node {
    func received(_ offer: ResourceOffer, from peer: PeerID) {
        guard let record = self.records[peer], let connection = record.connection else { return }
        do throws(EarshotError) {
            try self.check(offer, from: record)
        } catch {
            let refusal = Refusal(error)
            connection.send([.resourceRefuse(ResourceRefuse(id: offer.id, refusal: refusal))])
            self.logger.info("refused a file", metadata: ["peer": "\(peer)", "reason": "\(error)"])
            return
        }
        let row = Resource(
            id: offer.id, direction: .incoming, peerID: peer, peerName: record.name, name: offer.name, kind: .file, size: offer.size,
            state: .offered, createdAt: Date())
        var transfer = Transfer(row: row)
        transfer.isTaken = self.configuration.acceptResources == .session
        self.transfers[offer.id] = transfer
        self.persist([.putResource(row)]) { _ in }
        self.tell(.resourceOffered(row))
        if transfer.isTaken {
            self.spawn { [weak self] in try? await self?.take(row.id) }
        } else {
            self.limit(row.id, to: .decision)
            self.spawn { [weak self] in await self?.consider(row) }
        }
    }

    private func check(_ offer: ResourceOffer, from record: PeerRecord) throws(EarshotError) {
        guard record.session?.id == offer.session else { throw EarshotError(.notConnected, "there is no such session") }
        guard offer.kind == .file else { throw EarshotError(.unsupported, "directories are not accepted by this version") }
        guard self.transfers[offer.id] == nil else { throw EarshotError(.conflict, "the transfer's id is taken") }
        guard (try? SafeName(offer.name)) != nil else { throw EarshotError(.nameRejected, "the name is not that of a file") }
        if let maximum = self.configuration.maximumResourceSize, offer.size > maximum {
            throw EarshotError(.tooLarge, "it is larger than \(maximum) bytes")
        }
        let asks = self.configuration.acceptResources == .ask
        let isBusy =
            asks
            ? self.transfers.keys.count { self.isWaiting($0) && self.transfers[$0]?.row.peerID == record.id } >= EarshotLimits.waitingOffers
            : self.takenTransfers(of: record.id) >= EarshotLimits.incomingTransfers
        guard !isBusy else { throw EarshotError(.busy, asks ? "too many offers wait for an answer" : "too many transfers at a time") }
        let kept = self.transfers.values.count { $0.row.inSpool || ($0.isTaken && !$0.row.state.isFinal) }
        guard kept < EarshotLimits.spooledResources else {
            throw EarshotError(.noSpace, "\(kept) received files wait to be fetched already")
        }
    }

    /// Whether it is an offer that waits for a person.
    func isWaiting(_ id: ResourceID) -> Bool {
        guard let transfer = self.transfers[id] else { return false }
        return transfer.row.direction == .incoming && transfer.row.state == .offered && !transfer.isTaken
    }

    /// How many of a peer's transfers hold space here or are about to.
    func takenTransfers(of peer: PeerID) -> Int {
        self.transfers.values.count { $0.isTaken && $0.row.peerID == peer && !$0.row.state.isFinal }
    }

    /// An offer that could not be taken now is not worth a person's attention.
    private func consider(_ row: Resource) async {
        do throws(EarshotError) {
            try await self.checkRoom(row)
        } catch {
            guard self.isWaiting(row.id) else { return }
            self.refuse(row.id, error)
        }
    }

    private func checkRoom(_ row: Resource) async throws(EarshotError) {
        if let destination = self.destination, let name = try? SafeName(row.name) {
            do throws(EarshotError) {
                try await self.spool.publisher.check(name, size: row.size, spool: self.spool.directory, destination)
            } catch {
                // A directory that is away now may be back at the end; else the content stays in the spool.
                if error.code != .storage { throw error }
            }
        }
        try await self.spool.check(row.id, size: row.size, self.allowance)
    }

    private var allowance: Spool.Allowance { Spool.Allowance(quota: self.configuration.quota, reserve: self.configuration.reserve) }

    /// Where received files go, as it is configured now.
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

    private func refuse(_ id: ResourceID, _ error: EarshotError) {
        guard self.isRunning(id), let peer = self.transfers[id]?.row.peerID else { return }
        self.records[peer]?.connection?.send([.resourceRefuse(ResourceRefuse(id: id, refusal: Refusal(error)))])
        self.interruptTransfer(id, error.code, error.message)
    }

    /// Takes an offer: space for it first, then the sender's go-ahead. When it throws, the sender has been told.
    func take(_ id: ResourceID) async throws(EarshotError) {
        guard let row = self.transfers[id]?.row, self.isRunning(id), let connection = self.records[row.peerID]?.connection else {
            throw EarshotError(.cancelled, "the transfer has ended")
        }
        let (signals, continuation) = AsyncStream.makeStream(of: Transfer.Signal.self)
        self.transfers[id]?.signals = continuation
        self.limit(id, to: nil)
        do throws(EarshotError) {
            try await self.checkRoom(row)
            let start = try await self.spool.begin(id, size: row.size, self.allowance)
            guard self.isRunning(id) else { throw EarshotError(.cancelled, "the transfer has ended") }
            let limit = min(row.size, start + self.window(for: row.peerID))
            self.progressed(id, to: start)
            connection.send([.resourceAccept(ResourceAccept(id: id, offset: start, limit: limit))])
            self.limit(id, to: .movement(beyond: start))
            self.spawn { [weak self] in await self?.download(row, from: start, limit: limit, on: connection, signals: signals) }
        } catch {
            await self.abandon(row, on: connection, signals: signals, error)
            throw error
        }
    }

    private func download(
        _ row: Resource, from start: UInt64, limit: UInt64, on connection: Connection, signals: AsyncStream<Transfer.Signal>
    ) async {
        do throws(EarshotError) {
            try await self.pump(row, from: start, limit: limit, on: connection, signals: signals)
        } catch {
            await self.abandon(row, on: connection, signals: signals, error)
        }
    }

    /// What still waits is dropped, and the connection reads on.
    private func abandon(
        _ row: Resource, on connection: Connection, signals: AsyncStream<Transfer.Signal>, _ error: EarshotError
    ) async {
        self.transfers[row.id]?.signals?.finish()
        for await case .chunk(_, _, let weight) in signals { connection.processed(weight) }
        await self.spool.abandon(row.id)
        self.refuse(row.id, error)
    }

    private func pump(
        _ row: Resource, from start: UInt64, limit: UInt64, on connection: Connection, signals: AsyncStream<Transfer.Signal>
    ) async throws(EarshotError) {
        let id = row.id
        var (written, limit) = (start, limit)
        for await signal in signals {
            switch signal {
            case .chunk(let offset, let data, let weight):
                defer { connection.processed(weight) }
                guard self.isRunning(id) else { continue }
                written = try await self.spool.write(id, offset: offset, data)
                self.progressed(id, to: written)
                let window = self.window(for: row.peerID)
                if limit < row.size, limit - written <= window / 2 {
                    limit = max(limit, min(row.size, written + window))
                    connection.send([.resourceAccept(ResourceAccept(id: id, offset: written, limit: limit))])
                }
            case .end(let algorithm, let digest):
                guard self.isRunning(id) else { continue }
                // From here on it is this machine's disk that takes its time.
                self.limit(id, to: nil)
                let text = try await self.spool.finish(id, algorithm: algorithm, digest: digest)
                guard self.isRunning(id) else {
                    try await self.spool.remove(id)
                    return
                }
                try await self.publish(id, digest: text)
                connection.send([.resourceDone(id)])
                return
            case .attached, .accepted, .have, .from, .done: break
            }
        }
        throw EarshotError(.cancelled, "the transfer has ended")
    }

    /// The content is whole and on disk; with the row on disk too, and the content where it belongs, the sender may be told.
    private func publish(_ id: ResourceID, digest: String) async throws(EarshotError) {
        guard var row = self.transfers[id]?.row else { return }
        row.digest = digest
        row.inSpool = true
        row.state = .completed
        row.transferred = row.size
        row.bytesPerSecond = 0
        row.completedAt = Date()
        do throws(EarshotError) {
            try await self.persist([.putResource(row)])
        } catch {
            try? await self.spool.remove(id)
            throw error
        }
        guard self.isRunning(id) else {
            // Cancelled while the disk was busy: the cancellation was told, so it holds.
            try? await self.spool.remove(id)
            if let current = self.transfers[id]?.row { self.persist([.putResource(current)]) { _ in } }
            throw EarshotError(.cancelled, "the transfer has ended")
        }
        if let destination = self.destination {
            self.transfers[id]?.isPublishing = true
            try await self.putInPlace(&row, destination)
            self.transfers[id]?.isPublishing = false
        }
        self.transfers[id]?.row = row
        self.transfers[id]?.signals?.finish()
        self.transfers[id]?.signals = nil
        self.tell(.resourceFinished(row))
        self.forgetFinishedTransfers()
    }

    /// From the spool into the directory of received files. Where that fails the content stays in the spool, and the row says why.
    /// - Throws: `conflict` where the name was taken meanwhile and nothing is to be replaced or renamed.
    private func putInPlace(_ row: inout Resource, _ destination: Publisher.Destination) async throws(EarshotError) {
        do throws(EarshotError) {
            guard let name = try? SafeName(row.name) else { throw EarshotError(.nameRejected, "the name is not that of a file") }
            let content = try await self.spool.content(row.id)
            guard let path = try await self.spool.publisher.publish(content, as: name, destination) else { throw Publisher.taken(name) }
            row.path = path
            row.inSpool = false
        } catch  where error.code == .conflict {
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

    private func window(for peer: PeerID) -> UInt64 {
        let running = self.transfers.values.count { $0.row.peerID == peer && $0.row.direction == .incoming && !$0.row.state.isFinal }
        return running > 1 ? EarshotLimits.sharedResourceWindow : EarshotLimits.resourceWindow
    }
}
