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
        let (signals, continuation) = AsyncStream.makeStream(of: Transfer.Signal.self)
        self.transfers[offer.id] = Transfer(row: row, signals: continuation)
        self.tell(.resourceOffered(row))
        self.persist([.putResource(row)]) { _ in }
        self.spawn { [weak self] in await self?.download(row, on: connection, signals: signals) }
    }

    private func check(_ offer: ResourceOffer, from record: PeerRecord) throws(EarshotError) {
        guard record.session?.id == offer.session else { throw EarshotError(.notConnected, "there is no such session") }
        guard offer.kind == .file else { throw EarshotError(.unsupported, "directories are not accepted by this version") }
        guard self.transfers[offer.id] == nil else { throw EarshotError(.conflict, "the transfer's id is taken") }
        guard (try? SafeName(offer.name)) != nil else { throw EarshotError(.nameRejected, "the name is not that of a file") }
        if let maximum = self.configuration.maximumResourceSize, offer.size > maximum {
            throw EarshotError(.tooLarge, "it is larger than \(maximum) bytes")
        }
        let running = self.transfers.values.count { $0.row.peerID == record.id && $0.row.direction == .incoming && !$0.row.state.isFinal }
        guard running < EarshotLimits.incomingTransfers else { throw EarshotError(.busy, "too many transfers at a time") }
    }

    private func download(_ row: Resource, on connection: Connection, signals: AsyncStream<Transfer.Signal>) async {
        do throws(EarshotError) {
            try await self.pump(row, on: connection, signals: signals)
        } catch {
            // What still waits is dropped, and the connection reads on.
            self.transfers[row.id]?.signals?.finish()
            for await case .chunk(_, _, let weight) in signals { connection.processed(weight) }
            await self.spool.abandon(row.id)
            guard self.isRunning(row.id) else { return }
            let refusal = Refusal(error)
            connection.send([.resourceRefuse(ResourceRefuse(id: row.id, refusal: refusal))])
            self.interruptTransfer(row.id, error.code, error.message)
        }
    }

    private func pump(_ row: Resource, on connection: Connection, signals: AsyncStream<Transfer.Signal>) async throws(EarshotError) {
        let id = row.id
        var written = try await self.spool.begin(id, size: row.size)
        guard self.isRunning(id) else { throw EarshotError(.cancelled, "the transfer has ended") }
        var limit = min(row.size, written + self.window(for: row.peerID))
        self.progressed(id, to: written)
        connection.send([.resourceAccept(ResourceAccept(id: id, offset: written, limit: limit))])
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
                let text = try await self.spool.finish(id, algorithm: algorithm, digest: digest)
                guard self.isRunning(id) else {
                    try await self.spool.remove(id)
                    return
                }
                try await self.publish(id, digest: text)
                connection.send([.resourceDone(id)])
                return
            case .attached, .accepted, .done: break
            }
        }
        throw EarshotError(.cancelled, "the transfer has ended")
    }

    /// The content is whole and on disk; with the row on disk too the sender may be told.
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
        self.transfers[id]?.row = row
        self.transfers[id]?.signals?.finish()
        self.transfers[id]?.signals = nil
        self.tell(.resourceFinished(row))
    }

    private func window(for peer: PeerID) -> UInt64 {
        let running = self.transfers.values.count { $0.row.peerID == peer && $0.row.direction == .incoming && !$0.row.state.isFinal }
        return running > 1 ? EarshotLimits.sharedResourceWindow : EarshotLimits.resourceWindow
    }
}
