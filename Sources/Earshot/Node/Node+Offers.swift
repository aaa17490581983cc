import EarshotSafety
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// What peers offer: taken by the policy, or shown to a person; and what comes again because an earlier connection was lost.
extension Node {
    func received(_ offer: ResourceOffer, from peer: PeerID) {
        guard let facts = self.core.facts(of: peer), let connection = self.connection(to: peer) else { return }
        do throws(EarshotError) {
            guard try self.check(offer, from: facts) else { return }
        } catch {
            connection.send([.resourceRefuse(ResourceRefuse(id: offer.id, refusal: Refusal(error)))])
            self.logger.info("refused a file", metadata: ["peer": "\(peer)", "reason": "\(error)"])
            return
        }
        let row = Resource(
            id: offer.id, direction: .incoming, peerID: peer, peerName: facts.name, name: offer.name,
            kind: offer.resourceKind, size: offer.size, state: .offered, createdAt: self.now)
        let isTaken = self.configuration.acceptResources == .session
        let stored = StoredTransfer(
            id: offer.id, source: .none, isTaken: isTaken,
            expiresAt: self.now.addingTimeInterval(EarshotLimits.resourceResumeTime / .seconds(1)))
        let isNew = self.transfers[offer.id] == nil
        self.transfers[offer.id] = Transfer(row: row, stored: stored)
        self.keepRows { rows in
            rows.put(row, isNew: isNew)
            rows.put(stored)
        }
        self.publish(.resourceOffered(row))
        if isTaken {
            self.beginDownload(row.id, on: connection)
        } else {
            self.limit(row.id, to: .decision)
            self.spawn { [weak self] in await self?.consider(row) }
        }
    }

    /// Whether to take it as a new one; `false` where it is known, and has been answered or goes on.
    private func check(_ offer: ResourceOffer, from sender: PeerFacts) throws(EarshotError) -> Bool {
        guard sender.session == offer.session else { throw EarshotError(.notConnected, "there is no such session") }
        if try self.answerEnded(offer, from: sender) { return false }
        if self.core.offersInVain(sender.id, at: self.transport.timers.now) {
            throw EarshotError(.busy, "too many offers came to nothing; offer again in a while")
        }
        guard (try? SafeName(offer.name)) != nil else { throw EarshotError(.nameRejected, "the name is not that of a file") }
        if let maximum = self.configuration.maximumResourceSize, offer.size > maximum {
            let error = EarshotError(.tooLarge, "it is larger than \(maximum) bytes")
            if let known = self.transfers[offer.id], known.row.peerID == sender.id {
                self.interruptTransfer(offer.id, error.code, error.message)
            }
            throw error
        }
        if let known = self.transfers[offer.id] {
            guard known.row.peerID == sender.id, known.row.direction == .incoming, known.row.name == offer.name,
                known.row.kind == offer.resourceKind
            else { throw EarshotError(.conflict, "the transfer's id is taken") }
            guard try self.receivedAgain(offer, known, from: sender) else { return false }
        }
        let asks = self.configuration.acceptResources == .ask
        let isBusy =
            asks
            ? self.transfers.count(of: sender.id, .waiting) >= EarshotLimits.waitingOffers
            : self.takenTransfers(of: sender.id) >= EarshotLimits.incomingTransfers
        guard !isBusy, self.transfers.count(of: sender.id, .incomingJob) < EarshotLimits.incomingJobs else {
            throw EarshotError(.busy, asks ? "too many offers wait for an answer" : "too many transfers at a time")
        }
        let kept = self.transfers.count(.kept)
        guard kept < EarshotLimits.spooledResources else {
            throw EarshotError(.noSpace, "\(kept) received files wait to be fetched already")
        }
        return true
    }

    /// An offer of a resource that is known here; whether it begins anew all the same.
    /// - Throws: why it ended here.
    private func receivedAgain(
        _ offer: ResourceOffer, _ known: Transfer, from sender: PeerFacts
    ) throws(EarshotError) -> Bool {
        guard let connection = self.connection(to: sender.id) else { return false }
        guard !known.hasJob else {
            // The last connection's job has not noticed yet that it is gone.
            self.transfers[offer.id]?.pendingOffer = Transfer.PendingOffer(offer: offer, connection: connection)
            return false
        }
        switch known.row.state {
        case .completed:
            connection.send([.resourceDone(offer.id)])
            return false
        case .cancelled: throw EarshotError(known.row.error ?? .cancelled, known.row.errorMessage ?? "it was cancelled")
        // What has failed here (its time was over, the disk was full) may be tried again, if its sender still wants to.
        case .failed: return true
        case .offered, .transferring, .paused:
            // Its source is another one by now; what is here of it, in another size, is dropped when it is taken.
            self.transfers[offer.id]?.row.size = offer.size
            if known.isTaken {
                self.beginDownload(offer.id, on: connection)
            } else {
                self.limit(offer.id, to: .decision)
            }
            return false
        }
    }

    /// Whether it is an offer that waits for a person.
    func isWaiting(_ id: ResourceID) -> Bool { self.transfers[id]?.facets.contains(.waiting) ?? false }

    /// How many of a peer's transfers are received or about to be; interrupted ones are not.
    func takenTransfers(of peer: PeerID) -> Int {
        self.transfers.count(of: peer, .taking)
    }

    /// An offer that could not be taken now is not worth a person's attention.
    private func consider(_ row: Resource) async {
        // Taken back before this had its turn.
        guard self.isWaiting(row.id) else { return }
        do throws(EarshotError) {
            try await self.checkRoom(row)
        } catch {
            guard self.isWaiting(row.id) else { return }
            self.handle(Input.vainOffer(row.peerID))
            self.endTransfer(row.id, error.code, error.message, told: Refusal(error))
        }
    }

    /// A person takes an offer. While its sender is away it waits as an interrupted one does, and is taken when it is offered again.
    func accept(_ id: ResourceID) async throws(EarshotError) {
        guard var transfer = self.transfers[id], var stored = transfer.stored else {
            throw EarshotError(.cancelled, "the transfer has ended")
        }
        stored.isTaken = true
        transfer.stored = stored
        let connection = self.attachment(to: transfer.row.peerID)?.connection
        if connection == nil { transfer.row.state = .paused }
        self.transfers[id] = transfer
        self.keepRows { rows in
            rows.put(transfer.row)
            rows.put(stored)
        }
        guard let connection else { return self.limit(id, to: .absence) }
        guard let signals = self.prepareDownload(id) else { return }
        // A directory may wait for another one of that peer, and a person does not wait with it.
        guard transfer.row.kind == .file || self.treeLists.begin(id, of: transfer.row.peerID) else {
            return self.spawn { [weak self] in try? await self?.take(id, on: connection, signals) }
        }
        try await self.take(id, on: connection, signals)
    }
}

extension ResourceOffer {
    /// What is offered, as the library calls it.
    var resourceKind: Resource.Kind {
        switch self.kind {
        case .file: .file
        case .directory: .directory
        }
    }
}
