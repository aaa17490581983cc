import EarshotCore
package import EarshotSafety
import EarshotWaiting
public import EarshotWire
public import NIOCore

/// Opening, accepting, listing and ending streams. The core decides; ``OutgoingFlow`` and ``IncomingFlow`` move the bytes.
extension Node {
    // MARK: Listing

    /// Returns every open stream of both directions, and the most recently closed ones, oldest first.
    public func openStreams() -> [ByteStream] { self.core.allStreams.map(self.shown) }

    /// Returns a stream.
    /// - Throws: `not-found`.
    public func stream(_ id: StreamID) throws(EarshotError) -> ByteStream { self.shown(try self.core.stream(id)) }

    /// Aborts an open stream and returns its row, or removes a closed one from the list and returns `nil`.
    /// - Throws: `not-found`.
    @discardableResult
    public func removeStream(_ id: StreamID) async throws(EarshotError) -> ByteStream? {
        let removed = OneShot<Result<ByteStream?, EarshotError>>()
        self.call(.stream(.remove(id))) { answer in
            if case .done = answer { return removed.settle(.success(nil)) }
            removed.settle(self.row(answer).map { $0 })
        }
        return try await removed.value().get()
    }

    // MARK: Opening

    /// Sends a stream to a peer while its body is read, and returns when the peer's reader has taken everything.
    ///
    /// The stream waits up to 30 s until a reader at the peer accepts it. If the caller's task is cancelled, the stream is aborted.
    /// - Throws: as ``send(to:contentType:body:id:timeout:)``; `timed-out` if the stream was not accepted in time; `busy` if one of the
    ///   sides has too many; `cancelled` if either side aborted it; `unavailable` if the peer was lost.
    @discardableResult
    public func openStream<Body: AsyncSequence & Sendable>(
        to peer: any PeerReference, name: String, body: Body
    ) async throws(EarshotError) -> ByteStream where Body.Element == ByteBuffer {
        try await self.openStream(to: peer, name: name) { flow in try await flow.send(ThrowingBytes(body)) }
    }

    /// Sends everything from a descriptor as a stream; otherwise as ``openStream(to:name:body:)``.
    /// - Throws: also `storage` if the descriptor cannot be read.
    package func openStream(
        to peer: any PeerReference, name: String, from input: PassedDescriptor
    ) async throws(EarshotError) -> ByteStream {
        try await self.openStream(to: peer, name: name) { flow in
            try await ThreadExecutor.blocking("earshot-stream") { try await flow.send(StreamIntake(input), mayBlock: true) }
        }
    }

    private func openStream(
        to peer: any PeerReference, name: String, _ send: @escaping @Sendable (OutgoingFlow) async throws -> Void
    ) async throws(EarshotError) -> ByteStream {
        let ended = OneShot<Result<ByteStream, EarshotError>>()
        let call = self.call(.stream(.open(to: peer.description, name: name))) { ended.settle(self.row($0)) }
        guard let (id, flow) = self.coreShell.opened.removeValue(forKey: call) else { return try await ended.value().get() }
        return try await withTaskCancellationHandler {
            await self.pump(id, flow, send, until: ended)
        } onCancel: {
            // Also aborts the stream if all bytes are sent and the peer's reader has not taken them yet.
            self.abandonStream(id)
        }.get()
    }

    private enum Step: Sendable {
        case sent
        case broken(EarshotError)
        case ended(Result<ByteStream, EarshotError>)
    }

    /// Sends the body and waits for the stream's end concurrently. If the reader leaves, the end must not wait for an idle writer.
    private func pump(
        _ id: StreamID, _ flow: OutgoingFlow, _ send: @escaping @Sendable (OutgoingFlow) async throws -> Void,
        until ended: OneShot<Result<ByteStream, EarshotError>>
    ) async -> Result<ByteStream, EarshotError> {
        await withTaskGroup(of: Step.self) { group in
            group.addTask {
                do {
                    try await send(flow)
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

    /// Converts the core's answer into a row with its progress.
    private func row(_ answer: Answer) -> Result<ByteStream, EarshotError> {
        Result { () throws(EarshotError) in self.shown(try answer.stream) }
    }

    // MARK: Accepting

    /// Accepts a waiting stream.
    /// - Throws: `not-found`; `conflict` if this side opened the stream, or if the stream no longer waits.
    public func acceptStream(_ id: StreamID) async throws(EarshotError) -> StreamContent {
        let accepted = OneShot<Result<StreamContent, EarshotError>>()
        self.call(.stream(.accept(id))) { accepted.settle(self.content($0)) }
        return try await accepted.value().get()
    }

    /// Accepts a stream with this name and from this peer; `nil` matches any. The stream is the one that has waited longest, or else the
    /// next one that a peer opens. If several callers wait, the first caller gets the stream.
    ///
    /// Without a timeout, the wait is unlimited. If the caller's task is cancelled, the wait ends.
    /// - Throws: `invalid-parameter`, `unknown-peer`, `ambiguous-peer`; `timed-out`; `busy` if too many callers wait already; `cancelled`.
    public func acceptNextStream(
        name: String? = nil, from peer: (any PeerReference)? = nil, timeout: Duration? = nil
    ) async throws(EarshotError) -> StreamContent {
        let accepted = OneShot<Result<StreamContent, EarshotError>>()
        let call = self.call(.stream(.acceptNext(name: name, from: peer?.description, timeout: timeout))) {
            accepted.settle(self.content($0))
        }
        return try await withTaskCancellationHandler {
            await accepted.value()
        } onCancel: {
            self.input.yield(.core(.callerGone(call)))
        }.get()
    }

    /// Returns an accepted stream for its reader. The flow is taken when the core answers, because the stream may end before its caller
    /// runs.
    private func content(_ answer: Answer) -> Result<StreamContent, EarshotError> {
        self.row(answer).flatMap { row in
            guard case .incoming(let flow)? = self.streamMovers[row.id]?.half else { return .failure(Self.stopping) }
            return .success(StreamContent(stream: row, flow: flow, node: self))
        }
    }

    /// Reports that the reader has taken everything.
    func finishStream(_ id: StreamID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.stream(.finish(id))) { throw error }
    }

    nonisolated func abandonStream(_ id: StreamID) { self.input.yield(.core(.stream(id, .abandoned))) }

    // MARK: Ending

    /// Ends all streams and all transfers of bodies, and rejects new ones. Called before the daemon stops, so that readers and writers
    /// learn of it.
    package nonisolated func endStreams() { self.input.yield(.streamsOver) }

    func endAllStreams() { self.handle(Input.streamsOver) }
}
