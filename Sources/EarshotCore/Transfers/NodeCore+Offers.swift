import EarshotWire
import OrderedCollections

/// Peers' offers: accepted by the policy or shown to the user, and repeated offers after a lost connection.
extension NodeCore {
    mutating func resourceFrameCame(_ frame: ResourceFrame, from peer: PeerID, on link: LinkID) {
        switch frame {
        case .offer(let offer): self.resourceOffered(offer, by: peer, on: link)
        case .accept(let accept): self.resourceAccepted(accept, by: peer)
        case .refuse(let refuse): self.resourceRefused(refuse, by: peer)
        case .end(let end): self.resourceEnded(end, by: peer)
        case .done(let resource): self.resourceDone(resource, by: peer)
        case .cancel(let cancel): self.resourceCancelled(cancel, by: peer)
        case .have(let have): self.resourceHeld(have, by: peer)
        case .from(let from): self.resourceGoesOn(from, by: peer)
        // The mover of bytes handles it.
        case .chunk: break
        }
    }

    mutating func resourceOffered(_ offer: ResourceOffer, by peer: PeerID, on link: LinkID) {
        guard let sender = self.records[peer] else { return }
        guard let conversation = self.conversation(naming: offer.session, with: peer) else {
            self.refuse(offer, of: peer, EarshotError(.notConnected, "there is no such session"), on: link)
            return self.showEnd(of: GroupID(session: offer.session), to: peer)
        }
        do throws(EarshotError) {
            guard try self.check(offer, from: sender, in: conversation, on: link) else { return }
        } catch {
            return self.refuse(offer, of: peer, error, on: link)
        }
        let isNew = self.transfers[offer.id] == nil
        let row = Resource(
            id: offer.id, direction: .incoming, peerID: peer, peerName: sender.name,
            group: conversation.group.map(self.label), name: offer.name,
            kind: offer.resourceKind, size: offer.size, state: .offered, created: self.now.wall)
        let isTaken = self.isTaken(in: conversation, from: sender)
        let stored = StoredTransfer(
            id: offer.id, source: .none, isTaken: isTaken, expiry: self.now.running + EarshotLimits.resourceResumeTime)
        self.release(self.transfers[offer.id]?.hold)
        let record = TransferRecord(
            row: row, stored: stored, attributes: offer.attributes, offeredOn: link, charged: self.hold(EarshotLimits.waitCharge))
        self.transfers.put(record)
        self.keepTransfer(record, isNew: isNew)
        self.publish(.resourceOffered(row))
        if isTaken {
            self.beginDownload(row.id, on: link)
        } else {
            self.limit(row.id, to: .decision)
            self.emit(.transfer(row.id, .checkRoom(row, self.share(of: peer))))
        }
    }

    private mutating func refuse(_ offer: ResourceOffer, of peer: PeerID, _ error: EarshotError, on link: LinkID) {
        self.send(.resource(.refuse(ResourceRefuse(id: offer.id, refusal: TransferFailure(error).told))), on: link)
        self.log(Notice(.info, "refused a file", ["peer": peer, "reason": error]))
    }

    /// Whether an offer is accepted without asking the user. In a group, offers of members that are neither trusted nor in a session may
    /// need the user's decision.
    private func isTaken(in conversation: Conversation, from sender: PeerRecord) -> Bool {
        guard conversation.group != nil else { return self.settings.policy.acceptResources == .session }
        return self.policy(of: sender).groupFile(self.settings.groupFiles).isTaken
    }

    /// Returns whether the offer is to be accepted as a new one; `false` if the resource is known and was answered or resumed.
    private mutating func check(
        _ offer: ResourceOffer, from sender: PeerRecord, in conversation: Conversation, on link: LinkID
    ) throws(EarshotError) -> Bool {
        if let ended = self.transfers.ended(offer.id, of: sender.id) {
            if let error = ended.error { throw EarshotError(error, ended.message) }
            self.send(.resource(.done(offer.id)), on: link)
            return false
        }
        let known = self.transfers[offer.id]
        // The resource is here or about to be, even if the checks below would refuse it today.
        if let known, known.isOffered(by: offer, in: conversation), known.row.state == .completed || known.reception.isPlacing {
            return try self.offeredAgain(offer, known, on: link)
        }
        // A transfer that resumes does not count as a failed offer.
        if known?.isOpen != true, self.offersInVain(sender.id, at: self.now.monotonic) {
            throw EarshotError(.busy, "too many offers came to nothing; offer again in a while")
        }
        guard offer.isNameSafe else { throw EarshotError(.nameRejected, "the name is not that of a file") }
        if let maximum = self.settings.maximumResourceSize, offer.size > maximum {
            let error = EarshotError(.tooLarge, "it is larger than \(maximum) bytes")
            if let known, known.peerID == sender.id {
                self.interruptTransfer(offer.id, error.code, error.message)
            }
            throw error
        }
        if let known {
            guard known.isOffered(by: offer, in: conversation) else { throw EarshotError(.conflict, "the transfer's id is taken") }
            guard try self.offeredAgain(offer, known, on: link) else { return false }
        }
        let asks = !self.isTaken(in: conversation, from: sender)
        let isBusy =
            asks
            ? self.transfers.count(of: sender.id, .waiting) >= EarshotLimits.waitingOffers
            : !self.mayTakeMore(of: sender.id)
        guard !isBusy, self.transfers.count(of: sender.id, .incomingMover) < EarshotLimits.incomingMovers else {
            throw EarshotError(.busy, asks ? "too many offers wait for an answer" : "too many transfers at a time")
        }
        let kept = self.transfers.count(.kept)
        guard kept < EarshotLimits.spooledResources else {
            throw EarshotError(.noSpace, "\(kept) received files wait to be fetched already")
        }
        return true
    }

    /// Whether one more of a peer's transfers may be in progress.
    private func mayTakeMore(of peer: PeerID) -> Bool {
        self.transfers.count(of: peer, .taking) < EarshotLimits.incomingTransfers
            && self.transfers.count(of: peer, .incomingMover) < EarshotLimits.incomingMovers
    }

    /// Takes up offers that a peer has repeated, after one of its transfers is no longer in progress.
    mutating func takeOffersAgain(of peer: PeerID) {
        for id in self.transfers.ids(of: peer, .offeredAgain) where self.mayTakeMore(of: peer) {
            guard let pending = self.transfers.change(id, { $0.takeOffer() }) ?? nil,
                self.records[peer]?.connection == pending.link
            else { continue }
            self.cause = pending.link
            self.resourceOffered(pending.offer, by: peer, on: pending.link)
            self.cause = nil
        }
    }

    /// Handles an offer of a resource that is known here. Returns whether it starts from the beginning nevertheless.
    /// - Throws: The error with which the transfer ended here.
    private mutating func offeredAgain(_ offer: ResourceOffer, _ known: TransferRecord, on link: LinkID) throws(EarshotError) -> Bool {
        guard known.isAtRest else {
            // The mover of the last connection has not stopped yet, or the disk is still busy with its content.
            self.transfers.change(offer.id) { $0.postpone(offer, on: link) }
            return false
        }
        switch known.row.state {
        case .completed:
            self.send(.resource(.done(offer.id)), on: link)
            return false
        // A transfer that failed here (timed out, disk full) may be retried if its sender still wants to. Not while content is left: it is
        // about to be removed, or the spool could not remove it.
        case .failed where !known.hasContent: return true
        case .cancelled, .failed: throw EarshotError(known.row.error ?? .cancelled, known.row.errorMessage ?? "it was cancelled")
        case .offered, .transferring, .paused:
            self.transfers.change(offer.id) { $0.offeredAgain(offer, on: link) }
            if known.isTaken {
                guard self.mayTakeMore(of: known.peerID) else {
                    // The other transfers began on earlier connections. This one resumes when one of them has ended.
                    self.transfers.change(offer.id) { $0.postpone(offer, on: link) }
                    return false
                }
                self.beginDownload(offer.id, on: link)
            } else {
                self.limit(offer.id, to: .decision)
            }
            return false
        }
    }

    /// Ends an offer that cannot be accepted now, before a user is asked.
    mutating func offerChecked(_ id: ResourceID, _ failure: TransferFailure?) {
        // The offer was withdrawn or accepted before this check ran.
        guard let failure, let offer = self.transfers[id], offer.isWaiting else { return }
        self.offeredInVain(offer.peerID)
        self.endTransfer(id, failure.error.code, failure.error.message, told: failure.told)
    }

    // MARK: The user's answer

    mutating func respond(to id: ResourceID, _ decision: Resource.Decision, _ call: CallID) throws(EarshotError) {
        let record = try self.knownTransfer(id)
        let row = record.row
        guard row.direction == .incoming else { throw EarshotError(.conflict, "the resource \(id) was offered by this side") }
        guard record.isWaiting else {
            throw EarshotError(.conflict, "the resource \(id) waits for no answer: it is \(row.state.rawValue)")
        }
        switch decision {
        case .accept:
            guard self.transfers.count(of: row.peerID, .taking) < EarshotLimits.incomingTransfers else {
                throw EarshotError(.busy, "\(EarshotLimits.incomingTransfers) files of \(row.peerName) are on their way; accept it later")
            }
            self.accept(id, call)
        case .refuse:
            _ = self.tellEnd(of: id, Refusal(code: .declined))
            self.finishTransfer(id, .cancelled, EarshotError(.declined, "refused here"))
            self.answer(call, .resource(self.transfers[id]?.row ?? row))
        }
    }

    /// Accepts an offer. If its sender is away, or has not offered it on its present connection, the transfer waits like an interrupted one
    /// and begins when it is offered again.
    private mutating func accept(_ id: ResourceID, _ call: CallID) {
        let offerLink = self.transfers[id]?.offerLink
        let carrier = self.transfers[id].flatMap { self.carrier(of: $0.conversation) }
        let link = carrier?.link == offerLink ? offerLink : nil
        let latest = self.now.running + EarshotLimits.resourceResumeTime
        self.transfers.change(id) { $0.accepted(on: link, until: latest) }
        guard let transfer = self.transfers[id] else { return }
        self.keepTransfer(transfer)
        guard let link else {
            self.limit(id, to: .absence)
            self.settleHold(of: id)
            return self.answer(call, .resource(transfer.row))
        }
        self.beginDownload(id, on: link, call)
    }
}

extension TransferRecord {
    /// Whether an offer with its id is of the same resource. Its size may have changed.
    fileprivate func isOffered(by offer: ResourceOffer, in conversation: Conversation) -> Bool {
        self.conversation == conversation && self.row.direction == .incoming && self.row.name.utf8.elementsEqual(offer.name.utf8)
            && self.row.kind == offer.resourceKind
    }
}

extension ResourceOffer {
    /// The kind of the offered resource, in the library's terms.
    var resourceKind: Resource.Kind {
        switch self.kind {
        case .file: .file
        case .directory: .directory
        }
    }
}
