public import EarshotWire
import FoundationEssentials
public import NIOCore
import OrderedCollections

/// Opening, accepting, listing and ending streams; their bytes move in ``OutgoingFlow`` and ``IncomingFlow``.
extension Node {
    // MARK: What there is

    /// Every open stream of both directions, and the last ones that were closed, oldest first.
    public func openStreams() -> [ByteStream] {
        let now = self.transport.timers.now
        return self.streams.values.map { $0.shown(at: now) }
    }

    /// - Throws: `not-found`.
    public func stream(_ id: StreamID) throws(EarshotError) -> ByteStream {
        guard let record = self.streams[id] else { throw EarshotError(.notFound, "there is no stream \(id)") }
        return record.shown(at: self.transport.timers.now)
    }

    /// Aborts an open stream, and gives its row; forgets a closed one, and gives `nil`.
    /// - Throws: `not-found`.
    public func removeStream(_ id: StreamID) throws(EarshotError) -> ByteStream? {
        let row = try self.stream(id)
        guard row.state != .closed else {
            self.streams[id] = nil
            return nil
        }
        self.abortStream(id, EarshotError(.cancelled, "aborted here"))
        return try self.stream(id)
    }

    // MARK: Opening

    /// Sends a stream to a peer as its bytes come in, and returns when the far reader has taken everything.
    ///
    /// The stream waits up to 30 s for a reader there to accept it. A caller whose task is cancelled has aborted it.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `timed-out` where it was not accepted in time; `busy` where one of the sides has
    ///   too many; `cancelled` where either side aborted it; `unavailable` where the peer was lost.
    public func openStream(
        to peer: String, name: String, body: some AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(EarshotError) -> ByteStream {
        let name = try Self.streamName(name)
        guard !self.areStreamsOver, let peer = try self.recipients([peer]).first else { throw Self.stopping }
        let peerName = self.name(of: peer)
        guard self.streamCount(of: peer, .outgoing) < EarshotLimits.outgoingStreams else {
            throw EarshotError(.busy, "\(EarshotLimits.outgoingStreams) streams to \(peerName) are open already; try again later")
        }
        let row = ByteStream(
            id: .random(), direction: .outgoing, peerID: peer, peerName: peerName, name: name.description,
            openedAt: self.now)
        let flow = OutgoingFlow(row.id, self.transport.timers) { [input] in input.yield(.streamIsLarge(row.id)) }
        self.streams[row.id] = StreamRecord(row: row, flow: .outgoing(flow))
        self.streams[row.id]?.expiry = self.schedule(.stream(row.id), after: EarshotLimits.streamOpenTime)
        self.publish(.streamOpened(row))
        self.offerStreams(to: peer)
        let final = await withTaskCancellationHandler {
            await self.pump(row.id, flow, body)
        } onCancel: {
            // Also where all is sent and the far reader has not taken it yet.
            self.abandonStream(row.id)
        }
        if let code = final.error { throw EarshotError(code, final.errorMessage ?? "the stream failed") }
        return final
    }

    private static func streamName(_ text: String) throws(EarshotError) -> StreamName {
        do {
            return try StreamName(text)
        } catch {
            throw EarshotError(.invalidParameter, error.description)
        }
    }

    private enum Step: Sendable {
        case sent
        case broken(EarshotError)
        case closed(ByteStream)
    }

    /// Sends the body beside waiting for the stream's end: a reader that goes must not wait for a writer that has nothing to say.
    private func pump(
        _ id: StreamID, _ flow: OutgoingFlow, _ body: some AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async -> ByteStream {
        await withTaskGroup(of: Step.self) { group in
            group.addTask {
                do {
                    try await flow.send(body)
                    return .sent
                } catch let error as EarshotError {
                    return .broken(error)
                } catch {
                    return .broken(EarshotError(.cancelled, "the stream's body was cut off", underlying: error))
                }
            }
            group.addTask { .closed(await flow.closed.value()) }
            for await step in group {
                switch step {
                case .sent: break
                case .broken(let error): self.abortStream(id, error)
                case .closed(let row):
                    group.cancelAll()
                    return row
                }
            }
            return await flow.closed.value()
        }
    }

    /// Tells the peer of the streams that it has not heard of: when one is opened, and when its session has attached.
    func offerStreams(to peer: PeerID) {
        guard let (connection, session) = self.attachment(to: peer) else { return }
        for id in self.streams.ids(of: peer, .openOutgoing) {
            guard let stream = self.streams[id], stream.isOpeningHere, stream.connection == nil, let name = try? StreamName(stream.row.name)
            else { continue }
            self.streams[stream.row.id]?.connection = connection
            connection.send([.streamOpen(StreamOpen(session: session, id: stream.row.id, name: name))])
        }
    }

    // MARK: Accepting

    /// Accepts a stream that waits here.
    /// - Throws: `not-found`; `conflict` where it was opened by this side, or waits no more.
    public func acceptStream(_ id: StreamID) throws(EarshotError) -> StreamContent {
        let row = try self.stream(id)
        guard row.direction == .incoming else { throw EarshotError(.conflict, "the stream \(id) was opened by this side") }
        guard row.state == .opening, let connection = self.streams[id]?.connection else {
            throw EarshotError(.conflict, "the stream \(id) waits for nobody any more: it is \(row.state.rawValue)")
        }
        return self.take(row, on: connection)
    }

    /// Accepts the next stream of this name and from this peer, or any: the one that waits longest, or the next that is opened. Of several
    /// callers the first one gets it.
    ///
    /// Waits for as long as it takes, where no timeout is given. A caller whose task is cancelled waits no more.
    /// - Throws: `invalid-parameter`, `unknown-peer`, `ambiguous-peer`; `timed-out`; `busy` where too many wait already; `cancelled`.
    public func acceptNextStream(
        name: String? = nil, from peer: String? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> StreamContent {
        let name = try name.map { text throws(EarshotError) in try Self.streamName(text).description }
        let peer = try peer.map { text throws(EarshotError) in try self.core.resolve(text) }
        guard !self.areStreamsOver else { throw Self.stopping }
        guard self.streamAcceptors.count < EarshotLimits.streamAcceptors else {
            throw EarshotError(.busy, "\(EarshotLimits.streamAcceptors) callers wait for streams already; try again later")
        }
        self.nextStreamAcceptor += 1
        let id = self.nextStreamAcceptor
        var acceptor = StreamAcceptor(id: id, name: name, peer: peer, accepted: OneShot())
        let waiting = self.streams.ids(.waiting).first { self.streams[$0].map { acceptor.takes($0.row) } ?? false }
        if let waiting { return try self.acceptStream(waiting) }
        if let timeout { acceptor.expiry = self.schedule(.streamAcceptor(id), after: timeout) }
        self.streamAcceptors.append(acceptor)
        let accepted = acceptor.accepted
        return try await withTaskCancellationHandler {
            await accepted.value()
        } onCancel: {
            self.input.yield(.streamAcceptorGone(id))
        }.get()
    }

    /// An acceptor that waits no more: it has gone, or its time is over.
    func dismissStreamAcceptor(_ id: UInt64, _ error: EarshotError) {
        guard let index = self.streamAcceptors.firstIndex(where: { $0.id == id }) else { return }
        let acceptor = self.streamAcceptors.remove(at: index)
        acceptor.expiry?.cancel()
        acceptor.accepted.settle(.failure(error))
    }

    private func take(_ row: ByteStream, on connection: Connection) -> StreamContent {
        let id = row.id
        let shared = EarshotLimits.streamWindows / UInt64(max(1, self.streamCount(of: row.peerID, .incoming)))
        let window = min(EarshotLimits.streamWindow, max(EarshotLimits.streamWindowMinimum, shared))
        let flow = IncomingFlow(window: window, self.transport.timers) { limit in
            connection.send([.streamAccept(StreamAccept(id: id, limit: limit))])
        }
        self.streams[id]?.expiry?.cancel()
        self.streams[id]?.expiry = nil
        self.streams[id]?.flow = .incoming(flow)
        self.streams[id]?.row.state = .open
        connection.send([.streamAccept(StreamAccept(id: id, limit: window))])
        return StreamContent(stream: self.streams[id]?.row ?? row, flow: flow, node: self)
    }

    /// The reader has taken everything.
    func finishStream(_ id: StreamID) throws(EarshotError) {
        let row = try self.stream(id)
        if row.state != .closed {
            self.streams[id]?.connection?.send([.streamDone(id)])
            self.closeStream(id, nil)
        } else if let code = row.error {
            throw EarshotError(code, row.errorMessage ?? "the stream failed")
        }
    }

    nonisolated func abandonStream(_ id: StreamID) { self.input.yield(.streamAbandoned(id)) }

    func streamAbandoned(_ id: StreamID) {
        let end = self.streams[id]?.row.direction == .outgoing ? "writer" : "reader"
        self.abortStream(id, EarshotError(.cancelled, "its \(end) has gone"))
    }

    // MARK: Counting

    func streamCount(of peer: PeerID, _ direction: Direction) -> Int {
        self.streams.count(of: peer, direction == .incoming ? .openIncoming : .openOutgoing)
    }
}
