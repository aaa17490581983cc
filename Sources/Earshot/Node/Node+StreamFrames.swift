import EarshotWire
import FoundationEssentials
import NIOCore
import OrderedCollections

/// What peers say of streams, and how streams end.
extension Node {
    // MARK: Frames

    func received(_ open: StreamOpen, from peer: PeerID) {
        guard let facts = self.core.facts(of: peer), let connection = self.connection(to: peer) else { return }
        do throws(EarshotError) {
            try self.check(open, from: facts)
        } catch {
            connection.send([.streamRefuse(StreamRefuse(id: open.id, refusal: Refusal(error)))])
            return
        }
        let row = ByteStream(
            id: open.id, direction: .incoming, peerID: peer, peerName: facts.name, name: open.name.description, openedAt: self.now)
        self.streams.removeValue(forKey: open.id)
        self.streams[open.id] = StreamRecord(row: row, flow: .incoming(nil), connection: connection)
        self.publish(.streamOpened(row))
        guard let index = self.streamAcceptors.firstIndex(where: { $0.takes(row) }) else {
            self.streams[open.id]?.expiry = self.schedule(.stream(open.id), after: EarshotLimits.streamWaitTime)
            return
        }
        let acceptor = self.streamAcceptors.remove(at: index)
        acceptor.expiry?.cancel()
        do throws(EarshotError) {
            acceptor.accepted.settle(.success(try self.acceptStream(open.id)))
        } catch {
            acceptor.accepted.settle(.failure(error))
        }
    }

    private func check(_ open: StreamOpen, from sender: PeerFacts) throws(EarshotError) {
        guard sender.session == open.session else { throw EarshotError(.notConnected, "there is no such session") }
        guard !self.areStreamsOver else { throw Self.stopping }
        // One that was not accepted before its connection was lost is opened again under its id.
        guard self.streams[open.id].map({ $0.row.state == .closed && $0.row.peerID == sender.id }) ?? true else {
            throw EarshotError(.conflict, "the stream's id is taken")
        }
        guard self.traffic[sender.id]?.vainOffers.isTooMuch(at: self.transport.timers.now) != true else {
            throw EarshotError(.busy, "too many streams came to nothing; open it again in a while")
        }
        guard self.streams.count(of: sender.id, .waiting) < EarshotLimits.waitingStreams else {
            throw EarshotError(.busy, "too many streams wait to be accepted")
        }
    }

    func received(_ accept: StreamAccept, from peer: PeerID) {
        guard let stream = self.streams[accept.id], stream.row.peerID == peer, stream.row.state != .closed,
            case .outgoing(let flow) = stream.flow, let connection = stream.connection
        else { return }
        if stream.row.state == .opening {
            self.streams[accept.id]?.expiry?.cancel()
            self.streams[accept.id]?.expiry = nil
            self.streams[accept.id]?.row.state = .open
        }
        flow.accepted(accept.limit, on: connection)
    }

    func received(_ data: StreamData, from peer: PeerID) {
        guard let stream = self.streams[data.id], stream.row.peerID == peer, case .incoming(let flow?) = stream.flow else { return }
        flow.append(data.data)
    }

    func received(_ end: StreamEnd, from peer: PeerID) {
        guard let stream = self.streams[end.id], stream.row.peerID == peer, case .incoming(let flow?) = stream.flow else { return }
        flow.finish(at: end.size)
    }

    func receivedDone(_ id: StreamID, from peer: PeerID) {
        guard let stream = self.streams[id], stream.row.peerID == peer, stream.row.direction == .outgoing else { return }
        self.closeStream(id, nil)
    }

    func receivedRefusal(_ refuse: StreamRefuse, from peer: PeerID) {
        guard let row = self.streams[refuse.id]?.row, row.peerID == peer, row.direction == .outgoing else { return }
        let code = refuse.refusal.code.earshotCode
        let words = refuse.refusal.explanation.isEmpty ? refuse.refusal.code.name : refuse.refusal.explanation
        self.closeStream(refuse.id, EarshotError(code, "\(row.peerName) did not take the stream: \(words)"))
    }

    func receivedAbort(_ abort: StreamRefuse, from peer: PeerID) {
        guard let row = self.streams[abort.id]?.row, row.peerID == peer else { return }
        if row.direction == .incoming, row.state != .closed {
            self.traffic[peer, default: PeerTraffic()].vainOffers.count(at: self.transport.timers.now)
        }
        let code = abort.refusal.code.earshotCode
        let words = abort.refusal.explanation.isEmpty ? "" : ": \(abort.refusal.explanation)"
        self.closeStream(abort.id, EarshotError(code, "\(row.peerName) aborted the stream\(words)"))
    }

    // MARK: Ends

    /// Ends a stream before its end, and tells the peer.
    func abortStream(_ id: StreamID, _ error: EarshotError) {
        guard let stream = self.streams[id], stream.row.state != .closed else { return }
        stream.connection?.send([.streamAbort(StreamRefuse(id: id, refusal: Refusal(error)))])
        self.closeStream(id, error)
    }

    /// The stream is over: by a fault, where there is an error.
    func closeStream(_ id: StreamID, _ error: EarshotError?) {
        guard let stream = self.streams[id], stream.row.state != .closed else { return }
        var row = stream.shown(at: self.transport.timers.now)
        row.state = .closed
        row.bytesPerSecond = 0
        row.closedAt = self.now
        row.error = error?.code
        row.errorMessage = error?.message
        stream.expiry?.cancel()
        self.closeData(TransferID(id))
        self.streams[id]?.outlet = .settled
        self.streams[id]?.row = row
        self.streams[id]?.connection = nil
        self.streams[id]?.expiry = nil
        switch stream.flow {
        case .outgoing(let flow): flow.close(row)
        case .incoming(let flow): if let error { flow?.fail(error) }
        }
        self.publish(.streamClosed(row))
        while let old = self.streams.surplus(beyond: EarshotLimits.closedStreams, endedBy: row.peerID) { self.streams[old] = nil }
        self.rerouteNext(to: row.peerID)
    }

    func streamExpired(_ id: StreamID) {
        guard let row = self.streams[id]?.row, row.state == .opening else { return }
        let time = "\(EarshotLimits.streamOpenTime.components.seconds) s"
        switch row.direction {
        case .incoming: self.abortStream(id, EarshotError(.timedOut, "nobody accepted it in time"))
        case .outgoing:
            let reason =
                self.streams[id]?.connection == nil
                ? "\(row.peerName) could not be reached in \(time)" : "nobody at \(row.peerName) accepted the stream in \(time)"
            self.abortStream(id, EarshotError(.timedOut, reason))
        }
    }

    /// Ends all streams and all transfers of bodies, and lets no caller begin or wait for one: the daemon is about to stop, and who reads or
    /// writes here is to know.
    public nonisolated func endStreams() { self.input.yield(.streamsOver) }

    func endAllStreams() {
        self.areStreamsOver = true
        for acceptor in self.streamAcceptors { self.dismissStreamAcceptor(acceptor.id, Self.stopping) }
        for id in self.streams.ids(.open) { self.abortStream(id, Self.stopping) }
        self.endBodies()
    }
}
