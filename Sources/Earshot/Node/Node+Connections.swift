import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Reaching peers, and which of their connections stands.
extension Node {
    // MARK: Reaching

    /// Whether this peer should be connected now: somebody decided so.
    private func isWanted(_ record: PeerRecord) -> Bool {
        guard record.trust != .blocked else { return false }
        return record.session != nil || self.isInviting(record.id) || record.comparison?.state == .waiting
    }

    /// Dials a peer that is wanted and not connected, at once or after the pause that its failures have earned.
    func ensureConnection(_ id: PeerID, now: Bool = false) {
        guard !self.isStopping, let record = self.records[id], self.isWanted(record), record.connection == nil, !self.isDialling(record)
        else { return }
        record.redial.timer?.cancel()
        self.records[id]?.redial.timer = nil
        guard !now, record.redial.attempts > 0 else {
            self.dial(id)
            return
        }
        self.records[id]?.redial.timer = self.schedule(.redial(.peer(id)), after: record.redial.delay)
    }

    /// Whether a connection to it is being made from here: it may supersede the one that stands.
    func isDialling(_ record: PeerRecord) -> Bool {
        record.redial.isDialling || record.configured.contains { self.configuredDials[$0]?.redial.isDialling == true }
    }

    private func dial(_ id: PeerID) {
        guard var record = self.records[id] else { return }
        let links = LocalLinks.current()
        let seen = record.sightedAddresses.filter { links.permit($0.address, fromLoopback: $0.isLoopback) }.map(\.address)
        // One that is only configured is dialled by that schedule of its own, which asks for its addresses anew.
        guard !seen.isEmpty || record.configured.isEmpty else { return }
        let candidates = record.nextAddresses(of: seen)
        guard !candidates.isEmpty else {
            // A sighting, or the peer's own dial, will bring it back.
            self.records[id]?.redial.lastError = EarshotError(.unavailable, "it is not seen on the network")
            return
        }
        record.redial.isDialling = true
        self.records[id] = record
        self.publishPeer(id)
        let transport = self.transport
        self.spawn { [input] in
            do throws(EarshotError) {
                try await transport.dial(candidates, expecting: id)
                input.yield(.dialled(.peer(id), nil))
            } catch {
                input.yield(.dialled(.peer(id), error))
            }
        }
    }

    func redial(_ target: DialTarget) {
        switch target {
        case .peer(let id): self.ensureConnection(id, now: true)
        case .configured(let peer): self.dialConfigured(peer)
        }
    }

    func dialFinished(_ target: DialTarget, _ error: EarshotError?) {
        switch target {
        case .peer(let id): self.dialFinished(id, error)
        case .configured(let peer): self.configuredDialFinished(peer, error)
        }
    }

    private func dialFinished(_ id: PeerID, _ error: EarshotError?) {
        guard self.records[id] != nil else { return }
        self.records[id]?.redial.isDialling = false
        self.beginComparison(id)
        if let error {
            let error = self.explained(error, name: self.records[id]?.name ?? id.description)
            let isNews = self.records[id]?.redial.lastError?.code != error.code
            self.records[id]?.redial.attempts += 1
            self.records[id]?.redial.lastError = error
            if error.isFinalForDial {
                self.logger.log(
                    level: isNews ? .warning : .debug, "cannot agree with a peer", metadata: ["peer": "\(id)", "error": "\(error)"])
                self.failInvitations(to: id, error)
                self.failComparison(with: id, error)
                self.failUnsent(to: id, error)
            } else {
                self.logger.debug("cannot reach a peer", metadata: ["peer": "\(id)", "error": "\(error)"])
            }
            self.ensureConnection(id)
        }
        self.publishPeer(id)
    }

    // MARK: Connections

    func connectionProven(_ connection: Connection) {
        let id = connection.peer.id
        var record = self.records[id] ?? PeerRecord(id: id, now: self.now)
        // Where our preference has changed during the handshake, the next one will say so.
        guard !self.isStopping, self.preferencesYield(connection) else {
            connection.close()
            return
        }
        if record.trust == .blocked {
            // It hears what a rejected peer hears, and is not spoken of.
            self.records[id]?.isProven = true
            self.noteProven(id)
            self.unmuteConnections(of: id)
            self.mutedConnections[connection.id] = connection
            self.schedule(.idle(FadingConnection(connection)), after: EarshotLimits.idleConnectionTime)
            self.closeExcessConnections()
            return
        }
        if let standing = record.connection {
            guard self.stands(connection, against: standing) else {
                connection.close(Refusal(code: .superseded, explanation: "another connection stands"))
                return
            }
            record.connection = nil
            record.isAttached = false
            self.records[id] = record
            self.links[standing.id] = nil
            self.detached(id)
            // What was on its way has been taken back meanwhile: it must not be overwritten.
            record = self.records[id] ?? record
            standing.close(Refusal(code: .superseded, explanation: "a newer connection stands"))
        }
        record.connection = connection
        self.links[connection.id] = connection
        record.isProven = true
        record.lastSeen = self.now
        record.isAttached = false
        record.hasSentMessage = false
        record.isRefusing = false
        record.redial.attempts = 0
        record.redial.lastError = nil
        record.redial.timer?.cancel()
        record.redial.timer = nil
        if let address = connection.dialledAddress { record.lastGoodAddress = address }
        record.hasNamedSession = record.session != nil
        self.records[id] = record
        self.noteProven(id)
        self.noteName(connection.peer.displayName.description, of: id)
        self.noteSpokenTLS(connection)
        self.noteVoucher(id, connection)
        self.noteConfigured(id, connection)
        if let session = record.session { connection.send([.sessionResume(session.id)]) }
        self.inviteForQueue(id)
        self.sendInvitations(to: id)
        self.inviterReturned(id)
        self.resumeComparison(id, on: connection)
        self.publishPeer(id)
        self.schedule(.idle(FadingConnection(connection)), after: EarshotLimits.idleConnectionTime)
        self.closeExcessConnections()
    }

    /// Keeps the connections of strangers few: whoever has nothing to do with us longest goes first.
    private func closeExcessConnections() {
        let connected = self.records.values.filter { $0.connection != nil && !self.isNeeded($0) }.compactMap(\.connection)
        guard connected.count + self.mutedConnections.count > EarshotLimits.idleConnections else { return }
        let oldest = (connected + self.mutedConnections.values).min { $0.provenAt < $1.provenAt }
        oldest?.close()
    }

    /// Whether a session, an invitation or the settings need the peer's connection.
    private func isNeeded(_ record: PeerRecord) -> Bool {
        record.session != nil || !record.configured.isEmpty || record.comparison?.state == .waiting
            || record.comparison?.state == .requested
            || Direction.allCases.contains { self.pendingInvitation(with: record.id, $0) != nil }
    }

    /// Of two connections between the same pair the newest proven one stands; when both dialled at once, the lower id's.
    private func stands(_ connection: Connection, against standing: Connection) -> Bool {
        // One in TLS and one in plaintext were not: a preference has changed in between.
        let isSimultaneous =
            connection.isInitiator != standing.isInitiator && connection.protection == standing.protection
            && connection.provenAt - standing.provenAt < EarshotLimits.simultaneousDialTime && standing.channel.isActive
        guard isSimultaneous else { return true }
        return connection.isInitiator == (self.id < connection.peer.id)
    }

    /// A peer that somebody decided about by its id alone is here for the first time: that is kept.
    private func noteProven(_ id: PeerID) {
        guard self.records[id]?.stored?.isProven == false else { return }
        self.records[id]?.stored?.isProven = true
        self.keepPeer(id)
    }

    private func noteName(_ name: String, of id: PeerID) {
        guard self.records[id]?.provenName != name else { return }
        self.records[id]?.provenName = name
        guard self.records[id]?.stored != nil else { return }
        self.records[id]?.stored?.name = name
        self.keepPeer(id)
    }

    func connectionClosed(_ connection: Connection, _ end: ConnectionEnd) {
        self.links[connection.id] = nil
        if self.mutedConnections.removeValue(forKey: connection.id) != nil { return }
        let id = connection.peer.id
        guard let record = self.records[id], record.connection === connection else { return }
        self.logger.debug("a connection ended", metadata: ["peer": "\(id)", "end": "\(end)"])
        self.records[id]?.connection = nil
        self.records[id]?.isAttached = false
        self.records[id]?.lastSeen = self.now
        // Tried again, it would come to the same.
        if case .refused(let refusal) = end, refusal.code == .protocolViolation {
            self.interruptMovingTransfers(of: id, .protocolViolation, "the connection was closed for a fault: \(refusal.explanation)")
        }
        self.detached(id)
        guard !self.isStopping else { return }
        // Whoever we deal with has the same grace as one whose advertisement went; a stranger is gone.
        if record.isKept, record.sightings.isEmpty, record.lossGrace == nil {
            self.records[id]?.lossGrace = self.schedule(.lossGrace(id), after: EarshotLimits.lossGrace)
        }
        self.publishPeer(id)
        guard let left = self.records[id], left.trust != .blocked else { return }
        // The lower id dials first, so that the two seldom dial at once; and one that was superseded waits for the one that did it.
        var pause: Duration = self.id < id ? .zero : EarshotLimits.higherPeerDialDelay
        if case .refused(let refusal) = end, refusal.code == .superseded { pause = EarshotLimits.supersededDialDelay }
        self.redialConfigured(id, after: pause)
        guard self.isWanted(left), !left.redial.isDialling else { return }
        left.redial.timer?.cancel()
        self.records[id]?.redial.timer = nil
        guard pause > .zero else { return self.ensureConnection(id) }
        self.records[id]?.redial.timer = self.schedule(.redial(.peer(id)), after: pause)
    }

    /// A connection that neither a session, an invitation nor the settings need goes.
    func closeIfIdle(_ connection: Connection) {
        if self.mutedConnections[connection.id] != nil {
            connection.close()
            return
        }
        guard let record = self.records[connection.peer.id], record.connection === connection else { return }
        if self.isNeeded(record) {
            self.schedule(.idle(FadingConnection(connection)), after: EarshotLimits.idleConnectionTime)
        } else {
            connection.close()
        }
    }

    // MARK: Blocked peers

    func muteConnection(of id: PeerID) {
        guard let connection = self.records[id]?.connection else { return }
        self.records[id]?.connection = nil
        self.records[id]?.isAttached = false
        self.mutedConnections[connection.id] = connection
    }

    /// Closes the connections of a peer that was blocked; it dials again when it has something to say.
    func unmuteConnections(of id: PeerID) {
        for (key, connection) in self.mutedConnections where connection.peer.id == id {
            self.mutedConnections.removeValue(forKey: key)
            connection.close()
        }
    }

    /// What a blocked peer sends: invitations are declined after a while, as by a person; a session is over; the rest is silence.
    func receivedFromBlocked(_ frames: [Frame], on connection: Connection) {
        for frame in frames {
            switch frame {
            case .invite(let invite): self.receivedFromBlocked(invite, on: connection)
            case .sessionResume(let session): connection.send([.sessionEnd(session)])
            case .message(let message):
                guard message.mode != .unreliable else { break }
                connection.send([.messageReceipts([MessageReceipt(id: message.id, outcome: .refused)])])
            case .resourceOffer(let offer):
                let refusal = Refusal(code: .notConnected, explanation: "")
                connection.send([.resourceRefuse(ResourceRefuse(id: offer.id, refusal: refusal))])
            case .streamOpen(let open):
                let refusal = Refusal(code: .notConnected, explanation: "")
                connection.send([.streamRefuse(StreamRefuse(id: open.id, refusal: refusal))])
            case .hello, .proof, .refusal, .ping, .pong, .goodbye, .inviteAnswer, .inviteWithdraw, .sessionEnd, .messageReceipts,
                .resourceAccept, .resourceRefuse, .resourceChunk, .resourceEnd, .resourceDone, .resourceCancel, .resourceHave,
                .resourceFrom, .dataTicket, .dataUnavailable, .dataAttach, .streamAccept, .streamRefuse, .streamData, .streamEnd,
                .streamDone, .streamAbort, .streamReroute, .streamRerouted, .verification:
                break
            }
        }
    }

    func answerBlocked(_ id: InvitationID?, on connection: Connection) {
        guard let id else { return }
        connection.send([.inviteAnswer(InviteAnswer(id: id, decision: .declined))])
    }

    // MARK: Frames

    func received(_ frames: [Frame], weight: Int, on connection: Connection) {
        let id = connection.peer.id
        guard self.mutedConnections[connection.id] == nil else {
            self.receivedFromBlocked(frames, on: connection)
            connection.turnEnded(weight, isMember: false)
            return
        }
        // A connection that another has superseded has nothing to say any more.
        guard self.records[id]?.connection === connection else {
            connection.turnEnded(weight, isMember: false)
            return
        }
        self.records[id]?.lastSeen = self.now
        let hasSession = self.records[id]?.session != nil
        var handedOn = 0
        var messages: [MessageFrame] = []
        for frame in frames {
            // As many messages together as follow each other.
            if case .message(let message) = frame {
                messages.append(message)
                continue
            }
            if !messages.isEmpty {
                handedOn += self.received(messages, on: connection)
                messages = []
            }
            switch frame {
            case .invite(let invite): self.received(invite, from: id)
            case .inviteAnswer(let answer): self.received(answer, from: id)
            case .inviteWithdraw(let withdraw): self.received(withdraw, from: id)
            case .sessionResume(let session): self.receivedResume(session, from: id)
            case .sessionEnd(let session): self.receivedEnd(session, from: id)
            // What is sent in a session that has ended meanwhile is on its way for a moment: it is passed over.
            case .messageReceipts(let receipts): if hasSession { self.received(receipts, from: id) }
            case .resourceOffer(let offer): self.received(offer, from: id)
            case .resourceAccept(let accept): self.received(accept, from: id)
            case .resourceRefuse(let refuse): self.receivedRefusal(refuse, from: id)
            case .resourceChunk(let chunk):
                let signal = Transfer.Signal.chunk(offset: chunk.offset, chunk.data.compacted, weight: frame.weight)
                if self.signal(chunk.id, from: id, .incoming, signal) { handedOn += frame.weight }
            case .resourceEnd(let end): self.signal(end.id, from: id, .incoming, .end(end.algorithm, end.digest))
            case .resourceDone(let resource): self.signal(resource, from: id, .outgoing, .done)
            case .resourceCancel(let cancel): self.receivedCancel(cancel, from: id)
            case .resourceHave(let have):
                self.signal(have.id, from: id, .outgoing, .have(offset: have.offset, digest: have.digest))
            case .resourceFrom(let from): self.signal(from.id, from: id, .incoming, .from(offset: from.offset))
            case .dataTicket(let ticket): self.received(ticket, from: id)
            case .dataUnavailable(let transfer): self.receivedDataUnavailable(transfer, from: id)
            case .streamOpen(let open): self.received(open, from: id)
            case .streamAccept(let accept): self.received(accept, from: id)
            case .streamRefuse(let refuse): self.receivedRefusal(refuse, from: id)
            // Its window bounds what waits for a reader, so that one that pauses holds nothing else up.
            case .streamData(let data): self.received(data, from: id)
            case .streamEnd(let end): self.received(end, from: id)
            case .streamDone(let stream): self.receivedDone(stream, from: id)
            case .streamAbort(let abort): self.receivedAbort(abort, from: id)
            case .streamReroute(let reroute): self.received(reroute, from: id)
            case .streamRerouted(let rerouted): self.receivedRerouted(rerouted, from: id)
            case .verification(let verification): self.received(verification, from: id)
            case .message, .hello, .proof, .refusal, .ping, .pong, .goodbye, .dataAttach: break
            }
        }
        if !messages.isEmpty { handedOn += self.received(messages, on: connection) }
        connection.turnEnded(weight - handedOn, isMember: self.isMember(connection))
    }

    /// Whether the peer is in a session with us, and this is its connection.
    func isMember(_ connection: Connection) -> Bool {
        guard let record = self.records[connection.peer.id] else { return false }
        return record.session != nil && record.connection === connection
    }
}
