package import EarshotWire
import OrderedCollections

/// Peers' frames about streams, and the end of streams.
extension NodeCore {
    // MARK: Frames

    mutating func streamFrameCame(_ frame: StreamFrame, from peer: PeerID, on link: LinkID) {
        switch frame {
        case .open(let open): self.streamCame(open, from: peer, on: link)
        case .accept(let accept): self.streamAccepted(accept, by: peer)
        case .refuse(let refuse): self.streamRefused(refuse, by: peer)
        case .done(let stream): self.streamDone(stream, by: peer)
        case .abort(let abort): self.streamAborted(abort, by: peer)
        case .reroute(let reroute): self.streamRerouteCame(reroute, from: peer)
        case .rerouted(let rerouted): self.streamRerouted(rerouted, by: peer)
        // The movers of bytes handle these.
        case .data, .end: break
        }
    }

    mutating func streamCame(_ open: StreamOpen, from peer: PeerID, on link: LinkID) {
        guard let record = self.records[peer] else { return }
        do throws(EarshotError) {
            try self.check(open, from: record)
        } catch {
            return self.send(.stream(.refuse(StreamRefuse(id: open.id, refusal: Refusal(error.code, error.message)))), on: link)
        }
        let row = ByteStream(
            id: open.id, direction: .incoming, peerID: record.id, peerName: record.name, name: open.name.description,
            opened: self.now.wall)
        if let before = self.streams[open.id] { self.forgetStream(before) }
        self.streams.add(StreamRecord(row: row, link: link, hasMover: false))
        self.publish(.streamOpened(row))
        guard let acceptor = self.streams.popAcceptor(of: row) else {
            self.set(.stream(open.id), after: EarshotLimits.streamWaitTime)
            let hold = self.hold(EarshotLimits.waitCharge)
            self.streams[open.id]?.charge(hold)
            return
        }
        self.deadlines.cancel(.streamAcceptor(acceptor.call))
        do throws(EarshotError) {
            try self.acceptStream(open.id, acceptor.call)
        } catch {
            self.answer(acceptor.call, .failure(error))
        }
    }

    private func check(_ open: StreamOpen, from sender: PeerRecord) throws(EarshotError) {
        guard sender.sessionID == open.session else { throw EarshotError(.notConnected, "there is no such session") }
        guard !self.streams.isOver else { throw .stopping }
        // A stream whose connection was lost before acceptance is opened again under its id.
        guard self.streams[open.id].map({ $0.row.state == .closed && $0.peerID == sender.id }) ?? true else {
            throw EarshotError(.conflict, "the stream's id is taken")
        }
        guard !self.offersInVain(sender.id, at: self.now.monotonic) else {
            throw EarshotError(.busy, "too many streams came to nothing; open it again in a while")
        }
        guard self.streams.count(of: sender.id, .waiting) < EarshotLimits.waitingStreams else {
            throw EarshotError(.busy, "too many streams wait to be accepted")
        }
    }

    /// Handles the peer's acceptance of a stream of this side, or of more of its bytes.
    mutating func streamAccepted(_ accept: StreamAccept, by peer: PeerID) {
        guard let stream = self.streams[accept.id], stream.peerID == peer, stream.row.direction == .outgoing, stream.row.state != .closed,
            let link = stream.link
        else { return }
        if stream.row.state == .opening {
            self.deadlines.cancel(.stream(accept.id))
            let hold = self.streams[accept.id]?.open() ?? nil
            self.release(hold)
        }
        self.emit(.stream(accept.id, .permit(upTo: accept.limit, on: link)))
    }

    /// Handles the peer's report that its reader has taken everything.
    mutating func streamDone(_ id: StreamID, by peer: PeerID) {
        guard let stream = self.streams[id], stream.peerID == peer, stream.row.direction == .outgoing else { return }
        self.closeStream(id, nil)
    }

    mutating func streamRefused(_ refuse: StreamRefuse, by peer: PeerID) {
        guard let row = self.streams[refuse.id]?.row, row.peerID == peer, row.direction == .outgoing else { return }
        let code = refuse.refusal.code.earshotCode
        let words = refuse.refusal.explanation.isEmpty ? refuse.refusal.code.name : refuse.refusal.explanation
        self.closeStream(refuse.id, EarshotError(code, "\(row.peerName) did not take the stream: \(words)"))
    }

    mutating func streamAborted(_ abort: StreamRefuse, by peer: PeerID) {
        guard let row = self.streams[abort.id]?.row, row.peerID == peer else { return }
        if row.direction == .incoming, row.state != .closed { self.offeredInVain(peer) }
        let code = abort.refusal.code.earshotCode
        let words = abort.refusal.explanation.isEmpty ? "" : ": \(abort.refusal.explanation)"
        self.closeStream(abort.id, EarshotError(code, "\(row.peerName) aborted the stream\(words)"))
    }

    // MARK: Failed offers

    /// Whether so many of a peer's offers and streams have failed that no more are accepted for the moment.
    package func offersInVain(_ peer: PeerID, at now: MonotonicInstant) -> Bool {
        guard var offers = self.records[peer]?.vainOffers else { return false }
        return offers.isTooMuch(at: now)
    }

    /// Counts an offer or a stream of a peer that has failed.
    mutating func offeredInVain(_ peer: PeerID) { self.records[peer]?.vainOffers.count(at: self.now.monotonic) }

    // MARK: Ends

    /// Aborts an open stream, and tells the peer.
    mutating func abortStream(_ id: StreamID, _ error: EarshotError) {
        guard let stream = self.streams[id], stream.row.state != .closed else { return }
        self.send(.stream(.abort(StreamRefuse(id: id, refusal: Refusal(error.code, error.message)))), on: stream.link)
        self.closeStream(id, error)
    }

    /// Closes a stream, with an error if it failed.
    mutating func closeStream(_ id: StreamID, _ error: EarshotError?) {
        guard let before = self.streams.close(id, error, at: self.now.wall), let row = self.streams[id]?.row else { return }
        self.deadlines.cancel(.stream(id))
        self.release(before.hold)
        self.closeData(TransferID(id))
        if before.hasMover { self.emit(.stream(id, .end(error))) }
        self.publish(.streamClosed(row))
        if let opener = before.opener { self.answer(opener, error.map(Answer.failure) ?? .stream(row)) }
        while let old = self.streams.surplus(endedBy: row.peerID), let record = self.streams[old] { self.forgetStream(record) }
        self.rerouteNext(to: row.peerID)
    }

    /// Removes a closed stream from the list.
    mutating func forgetStream(_ record: StreamRecord) {
        self.streams.remove(record.row.id)
        if record.hasMover { self.emit(.stream(record.row.id, .forget)) }
    }

    /// Aborts a stream that nobody has accepted in time.
    mutating func streamExpired(_ id: StreamID) {
        guard let stream = self.streams[id], stream.row.state == .opening else { return }
        let time = "\(EarshotLimits.streamOpenTime.components.seconds) s"
        let name = stream.row.peerName
        switch (stream.row.direction, stream.link) {
        case (.incoming, _): self.abortStream(id, EarshotError(.timedOut, "nobody accepted it in time"))
        case (.outgoing, nil): self.abortStream(id, EarshotError(.timedOut, "\(name) could not be reached in \(time)"))
        case (.outgoing, .some):
            self.abortStream(id, EarshotError(.timedOut, "nobody at \(name) accepted the stream in \(time)"))
        }
    }

    /// Ends a peer's streams that depend on something that has ended, or keeps them waiting, as the table of ``Ending`` says. `error` is
    /// reported for the ended ones.
    mutating func endStreams(of peer: PeerID, by ending: Ending, _ error: EarshotError) {
        for id in self.streams.ids(of: peer, .open) {
            guard let stream = self.streams[id] else { continue }
            switch ending.fate(of: stream.isOpeningHere ? .openingStreams : .streams) {
            case .stays: break
            // The stream is opened again on the next connection.
            case .waits: self.streams[id]?.speak(on: nil)
            case .ends: self.end(stream, by: ending, error)
            }
        }
    }

    private mutating func end(_ stream: StreamRecord, by ending: Ending, _ error: EarshotError) {
        let id = stream.row.id
        switch ending {
        case .connection: self.closeStream(id, EarshotError(.unavailable, "the connection to \(stream.row.peerName) was lost"))
        // The side that ends the session has aborted its streams.
        case .session: self.abortStream(id, EarshotError(.cancelled, "the session has ended"))
        case .trust, .declinedInvitation, .invitation: self.abortStream(id, error)
        }
    }
}
