package import EarshotWire
import OrderedCollections

/// Opening, accepting, listing and ending streams. Their bytes move outside the core.
extension NodeCore {
    // MARK: Listing

    /// Every open stream of both directions, and the last closed ones, oldest first; without the counts of bytes.
    package var allStreams: [ByteStream] { self.streams.rows }

    /// - Throws: `not-found`.
    package func stream(_ id: StreamID) throws(EarshotError) -> ByteStream { try self.known(id).row }

    /// Whether the daemon is about to stop, so that no stream or body of a caller begins any more.
    package var areStreamsOver: Bool { self.streams.isOver }

    private func known(_ id: StreamID) throws(EarshotError) -> StreamRecord {
        guard let record = self.streams[id] else { throw EarshotError(.notFound, "there is no stream \(id)") }
        return record
    }

    // MARK: Calls

    mutating func take(_ request: StreamRequest, _ call: CallID) {
        do throws(EarshotError) {
            switch request {
            case .open(let peer, let name): try self.openStream(to: peer, name: name, call)
            case .accept(let id): try self.acceptStream(id, call)
            case .acceptNext(let name, let peer, let timeout): try self.acceptNextStream(name, from: peer, timeout: timeout, call)
            case .finish(let id): try self.finishStream(id, call)
            case .remove(let id): try self.removeStream(id, call)
            }
        } catch {
            self.answer(call, .failure(error))
        }
    }

    private static func streamName(_ text: String) throws(EarshotError) -> StreamName {
        do {
            return try StreamName(text)
        } catch {
            throw EarshotError(.invalidParameter, error.description)
        }
    }

    // MARK: Opening

    private mutating func openStream(to peer: String, name: String, _ call: CallID) throws(EarshotError) {
        let name = try Self.streamName(name)
        guard !self.streams.isOver, !self.isStopping else { throw .stopping }
        let record = try self.streamReceiver(peer)
        guard self.streams.count(of: record.id, .openOutgoing) < EarshotLimits.outgoingStreams else {
            throw EarshotError(.busy, "\(EarshotLimits.outgoingStreams) streams to \(record.name) are open already; try again later")
        }
        self.inviteUnlessUnderWay(record.id)
        let row = ByteStream(
            id: self.fresh(), direction: .outgoing, peerID: record.id, peerName: record.name, name: name.description,
            opened: self.now.wall)
        self.streams.add(StreamRecord(row: row, opener: call, hasMover: true))
        self.set(.stream(row.id), after: EarshotLimits.streamOpenTime)
        self.emit(.stream(row.id, .send(to: record.id, for: call)))
        self.publish(.streamOpened(row))
        self.offerStreams(to: record.id)
    }

    private func streamReceiver(_ name: String) throws(EarshotError) -> PeerRecord {
        _ = try self.resolvePeer(name)
        let id = try self.recipient(name)
        guard let record = self.records[id] else { throw .unseen(id) }
        guard !self.settings.sessionsEndWithPrograms || record.sessionID != nil else { throw .withoutSession(record.name) }
        return record
    }

    /// Offers the peer the streams that it has not heard of. Called when a stream is opened, and when the session has attached.
    mutating func offerStreams(to peer: PeerID) {
        guard let record = self.records[peer], record.isAttached, let link = record.connection, let session = record.sessionID
        else { return }
        for id in self.streams.ids(of: peer, .openOutgoing) {
            guard let stream = self.streams[id], stream.isOpeningHere, stream.link == nil, let name = try? StreamName(stream.row.name)
            else { continue }
            self.streams[id]?.speak(on: link)
            self.send(.stream(.open(StreamOpen(session: session, id: id, name: name))), on: link)
        }
    }

    // MARK: Accepting

    mutating func acceptStream(_ id: StreamID, _ call: CallID) throws(EarshotError) {
        let record = try self.known(id)
        guard record.row.direction == .incoming else { throw EarshotError(.conflict, "the stream \(id) was opened by this side") }
        guard record.row.state == .opening, let link = record.link else {
            throw EarshotError(.conflict, "the stream \(id) waits for nobody any more: it is \(record.row.state.rawValue)")
        }
        // The incoming streams of one peer share a window for all of them.
        let shared = EarshotLimits.streamWindows / UInt64(max(1, self.streams.count(of: record.peerID, .openIncoming)))
        let window = min(EarshotLimits.streamWindow, max(EarshotLimits.streamWindowMinimum, shared))
        self.deadlines.cancel(.stream(id))
        let hold = self.streams[id]?.open() ?? nil
        self.release(hold)
        self.emit(.stream(id, .receive(from: record.peerID, on: link, window: window)))
        self.send(.stream(.accept(StreamAccept(id: id, limit: window))), on: link)
        self.answer(call, .stream(self.streams[id]?.row ?? record.row))
    }

    private mutating func acceptNextStream(
        _ name: String?, from peer: String?, timeout: Duration?, _ call: CallID
    ) throws(EarshotError) {
        let name = try name.map { text throws(EarshotError) in try Self.streamName(text).description }
        let peer = try peer.map { text throws(EarshotError) in try self.resolvePeer(text) }
        guard !self.streams.isOver else { throw .stopping }
        guard self.streams.acceptors.count < EarshotLimits.streamAcceptors else {
            throw EarshotError(.busy, "\(EarshotLimits.streamAcceptors) callers wait for streams already; try again later")
        }
        let acceptor = StreamAcceptor(call: call, name: name, peer: peer)
        if let waiting = self.streams.ids(.waiting).first(where: { self.streams[$0].map { acceptor.takes($0.row) } ?? false }) {
            return try self.acceptStream(waiting, call)
        }
        if let timeout {
            guard timeout > .zero else { throw .noStreamInTime }
            self.set(.streamAcceptor(call), after: timeout)
        }
        self.streams.wait(acceptor)
    }

    /// Handles the disconnection of a caller that waits for a stream, or of a device.
    mutating func callerGone(_ call: CallID) {
        if self.deviceGone(call) { return }
        self.dismissAcceptor(call, EarshotError(.cancelled, "whoever waited for a stream has gone"))
    }

    mutating func acceptorExpired(_ call: CallID) { self.dismissAcceptor(call, .noStreamInTime) }

    private mutating func dismissAcceptor(_ call: CallID, _ error: EarshotError) {
        guard self.streams.dismiss(call) else { return }
        self.deadlines.cancel(.streamAcceptor(call))
        self.answer(call, .failure(error))
    }

    // MARK: Ending

    private mutating func finishStream(_ id: StreamID, _ call: CallID) throws(EarshotError) {
        let record = try self.known(id)
        switch record.row.state {
        case .opening: throw EarshotError(.conflict, "the stream \(id) is not accepted yet")
        case .open:
            guard record.row.direction == .incoming else { throw EarshotError(.conflict, "the stream \(id) was opened by this side") }
            self.send(.stream(.done(id)), on: record.link)
            self.closeStream(id, nil)
        case .closed: if let code = record.row.error { throw EarshotError(code, record.row.errorMessage ?? "the stream failed") }
        }
        self.answer(call, .done)
    }

    private mutating func removeStream(_ id: StreamID, _ call: CallID) throws(EarshotError) {
        let record = try self.known(id)
        guard record.row.state != .closed else {
            self.forgetStream(record)
            return self.answer(call, .done)
        }
        self.abortStream(id, EarshotError(.cancelled, "aborted here"))
        self.answer(call, .stream(self.streams[id]?.row ?? record.row))
    }

    /// Ends all streams and all waits for one, because the daemon is about to stop. No stream begins any more.
    mutating func endAllStreams() {
        self.streams.finish()
        for acceptor in self.streams.acceptors { self.dismissAcceptor(acceptor.call, .stopping) }
        for id in self.streams.ids(.open) { self.abortStream(id, .stopping) }
        self.endBodies()
        if self.isStopping { self.stopTransfers() }
    }

    // MARK: Reports

    /// Handles a report of a stream's mover.
    mutating func streamReported(_ id: StreamID, _ report: StreamReport) {
        guard let record = self.streams[id], record.row.state != .closed else { return }
        switch report {
        case .isLarge: self.streamIsLarge(record)
        case .abandoned:
            let end = record.row.direction == .outgoing ? "writer" : "reader"
            self.abortStream(id, EarshotError(.cancelled, "its \(end) has gone"))
        case .broken(let error): self.abortStream(id, error)
        case .dataAsked: self.openData(.stream(id), with: record.peerID)
        case .dataUnneeded: self.streamDataUnneeded(record)
        case .dataEnded(let error):
            if let error { return self.abortStream(id, error) }
            self.stepInlet(of: id) { $0.lost() }
        }
    }
}

extension EarshotError {
    fileprivate static var noStreamInTime: Self { Self(.timedOut, "no stream came in time") }
}
