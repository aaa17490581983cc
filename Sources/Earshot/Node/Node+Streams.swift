import EarshotCore
public import EarshotWire
public import NIOCore

/// Opening, accepting, listing and ending streams, as programs do it: the core decides, and the bytes move in ``OutgoingFlow`` and
/// ``IncomingFlow``.
extension Node {
    // MARK: What there is

    /// Every open stream of both directions, and the last ones that were closed, oldest first.
    public func openStreams() -> [ByteStream] { self.core.allStreams.map(self.shown) }

    /// - Throws: `not-found`.
    public func stream(_ id: StreamID) throws(EarshotError) -> ByteStream { self.shown(try self.core.stream(id)) }

    /// Aborts an open stream, and gives its row; forgets a closed one, and gives `nil`.
    /// - Throws: `not-found`.
    public func removeStream(_ id: StreamID) async throws(EarshotError) -> ByteStream? {
        let removed = OneShot<Result<ByteStream?, EarshotError>>()
        self.call(.stream(.remove(id))) { answer in
            if case .done = answer { return removed.settle(.success(nil)) }
            removed.settle(self.row(answer).map { $0 })
        }
        return try await removed.value().get()
    }

    // MARK: Opening

    /// Sends a stream to a peer as its bytes come in, and returns when the far reader has taken everything.
    ///
    /// The stream waits up to 30 s for a reader there to accept it. A caller whose task is cancelled has aborted it.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `timed-out` where it was not accepted in time; `busy` where one of the sides has
    ///   too many; `cancelled` where either side aborted it; `unavailable` where the peer was lost.
    public func openStream<Body: AsyncSequence & Sendable>(
        to peer: String, name: String, body: Body
    ) async throws(EarshotError) -> ByteStream where Body.Element == ByteBuffer {
        let ended = OneShot<Result<ByteStream, EarshotError>>()
        let call = self.call(.stream(.open(to: peer, name: name))) { ended.settle(self.row($0)) }
        guard let (id, flow) = self.coreShell.opened.removeValue(forKey: call) else { return try await ended.value().get() }
        return try await withTaskCancellationHandler {
            await self.pump(id, flow, ThrowingBytes(body), until: ended)
        } onCancel: {
            // Also where all is sent and the far reader has not taken it yet.
            self.abandonStream(id)
        }.get()
    }

    private enum Step: Sendable {
        case sent
        case broken(EarshotError)
        case ended(Result<ByteStream, EarshotError>)
    }

    /// Sends the body beside waiting for the stream's end: a reader that goes must not wait for a writer that has nothing to say.
    private func pump(
        _ id: StreamID, _ flow: OutgoingFlow, _ body: some AsyncSequence<ByteBuffer, any Error> & Sendable,
        until ended: OneShot<Result<ByteStream, EarshotError>>
    ) async -> Result<ByteStream, EarshotError> {
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
            group.addTask { .ended(await ended.value()) }
            for await step in group {
                switch step {
                case .sent: break
                case .broken(let error): self.handle(.stream(id, .broken(error)))
                case .ended(let result):
                    group.cancelAll()
                    return result
                }
            }
            return await ended.value()
        }
    }

    /// The row that the core answers, with what has moved.
    private func row(_ answer: Answer) -> Result<ByteStream, EarshotError> {
        Result { () throws(EarshotError) in self.shown(try answer.stream) }
    }

    // MARK: Accepting

    /// Accepts a stream that waits here.
    /// - Throws: `not-found`; `conflict` where it was opened by this side, or waits no more.
    public func acceptStream(_ id: StreamID) async throws(EarshotError) -> StreamContent {
        let accepted = OneShot<Result<StreamContent, EarshotError>>()
        self.call(.stream(.accept(id))) { accepted.settle(self.content($0)) }
        return try await accepted.value().get()
    }

    /// Accepts the next stream of this name and from this peer, or any: the one that waits longest, or the next that is opened. Of several
    /// callers the first one gets it.
    ///
    /// Waits for as long as it takes, where no timeout is given. A caller whose task is cancelled waits no more.
    /// - Throws: `invalid-parameter`, `unknown-peer`, `ambiguous-peer`; `timed-out`; `busy` where too many wait already; `cancelled`.
    public func acceptNextStream(
        name: String? = nil, from peer: String? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> StreamContent {
        let accepted = OneShot<Result<StreamContent, EarshotError>>()
        let call = self.call(.stream(.acceptNext(name: name, from: peer, timeout: timeout))) { accepted.settle(self.content($0)) }
        return try await withTaskCancellationHandler {
            await accepted.value()
        } onCancel: {
            self.input.yield(.core(.callerGone(call)))
        }.get()
    }

    /// A stream that was accepted, for its reader: taken when the core answers, since it may be over before its caller has its turn.
    private func content(_ answer: Answer) -> Result<StreamContent, EarshotError> {
        self.row(answer).flatMap { row in
            guard case .incoming(let flow)? = self.streamMovers[row.id]?.half else { return .failure(Self.stopping) }
            return .success(StreamContent(stream: row, flow: flow, node: self))
        }
    }

    /// The reader has taken everything.
    func finishStream(_ id: StreamID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.stream(.finish(id))) { throw error }
    }

    nonisolated func abandonStream(_ id: StreamID) { self.input.yield(.core(.stream(id, .abandoned))) }

    // MARK: Ending

    /// Ends all streams and all transfers of bodies, and lets no caller begin or wait for one: the daemon is about to stop, and who reads or
    /// writes here is to know.
    public nonisolated func endStreams() { self.input.yield(.streamsOver) }

    func endAllStreams() { self.handle(Input.streamsOver) }
}
