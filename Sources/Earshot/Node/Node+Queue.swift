import DequeModule
import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// The outbox on disk over restarts, and the sessions that it needs.
extension Node {
    /// Takes up what was queued when the last run ended, and what became of the rest.
    func loadOutbox(_ rows: [QueuedMessageRow]) {
        let now = self.transport.timers.now
        for row in rows {
            var message = OutgoingMessage(
                id: row.id, contentType: row.contentType, size: row.size, body: nil, fingerprint: row.fingerprint, mode: .reliable,
                isQueued: true, sentAt: row.sentAt, deadline: now + .seconds(row.deadline.timeIntervalSince(self.now)),
                recipients: row.recipients)
            for index in message.recipients.indices where !message.recipients[index].status.isFinal {
                message.recipients[index].status = .queued
            }
            self.outgoing[row.id] = message
            guard !message.isFinal else {
                self.keepFinished(message)
                continue
            }
            self.queueUsage.add(message.cost)
            for recipient in message.recipients where recipient.status == .queued {
                let facts = self.core.facts(of: recipient.peerID)
                if let facts, facts.session != nil || facts.trust == .trusted {
                    self.append(message, for: recipient.peerID, body: nil)
                } else {
                    self.settle(row.id, recipient.peerID, .failed, EarshotError(.notConnected, "the session has ended"))
                }
            }
        }
    }

    /// Invites a trusted peer that is within reach, where messages or files are queued for it and there is no session.
    func inviteForQueue(_ peer: PeerID) {
        guard self.traffic[peer]?.outbox.hasQueued == true || self.hasQueuedUploads(for: peer) else { return }
        self.handle(.need(peer, .sessionForQueue))
    }

    /// Asks again from time to time: who did not answer may be there later.
    func inviteForQueues() {
        for facts in self.core.allFacts { self.inviteForQueue(facts.id) }
        self.schedule(.queueInvitations, after: EarshotLimits.queueInvitationInterval)
    }

    // MARK: Receipts of ours

    /// Tells a peer which of its messages were read here, as far as it has not taken note.
    func sendReceipts(to peer: PeerID) {
        guard self.configuration.receipts else { return }
        guard !self.unnotedReads.isLoaded(peer) else { return self.send(read: self.unnotedReads.all(of: peer), to: peer) }
        // Those of before the store was asked too: they may be on disk by the time of its answer.
        let noted = self.notes
        self.spawn { [weak self, store, logger] in
            do throws(EarshotError) {
                await self?.loadedReceipts(try await store.receipts(for: peer), of: peer, except: noted)
            } catch {
                logger.error("cannot read the receipts", metadata: ["error": "\(error)"])
            }
        }
    }

    private func loadedReceipts(_ ids: [MessageID], of peer: PeerID, except noted: ReceiptNotes) {
        self.unnotedReads.load(ids.filter { !noted.contains($0, by: peer) && !self.notes.contains($0, by: peer) }, of: peer)
        self.send(read: self.unnotedReads.all(of: peer), to: peer)
    }

    func send(read ids: [MessageID], to peer: PeerID) {
        guard !ids.isEmpty, let (connection, _) = self.attachment(to: peer) else { return }
        connection.send(
            stride(from: 0, to: ids.count, by: WireLimits.receiptsPerFrame).map { start in
                let end = min(start + WireLimits.receiptsPerFrame, ids.count)
                return .messageReceipts(ids[start..<end].map { MessageReceipt(id: $0, outcome: .read) })
            })
    }

    /// The sender knows that these were read: nothing more is to be told, from now on. They are written together, for one commit; what it
    /// makes up is none.
    func keepNote(_ ids: [MessageID], by peer: PeerID) {
        let ids = self.unnotedReads.noted(ids, by: peer)
        guard !ids.isEmpty else { return }
        self.notes.add(ids, by: peer)
        guard self.notes.count < WireLimits.receiptsPerFrame else {
            self.keepNotes()
            return
        }
        guard !self.isNoting else { return }
        self.isNoting = true
        self.schedule(.notes, after: EarshotLimits.noteDelay)
    }

    func keepNotes() {
        self.isNoting = false
        let changes = self.notes.take().map { OutboxChange.noted(Array($0.value), by: $0.key) }
        guard !changes.isEmpty else { return }
        self.enqueue(.outbox(changes) { _ in self.notes.settled() })
    }
}
