package import EarshotWire
package import Logging
package import NIOCore
import NIOSSL
import NIOTLS

/// The last handler of a connection's pipeline: bytes to frames and back, the handshake, and signs of life.
///
/// It runs the pure machines of EarshotWire (``HandshakeStateMachine``, then ``ConnectionStateMachine``) on the event loop and
/// performs their actions. Until the peer has proven its key nothing reaches the node; afterwards the node gets ``ConnectionEvent``s,
/// one for all the frames of a read. What the node has not dealt with yet is bounded: beyond
/// `EarshotLimits.unprocessedBytes` the channel is no longer read, and TCP slows the peer down.
package final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundIn = [Frame]
    package typealias OutboundOut = ByteBuffer

    private enum State {
        /// TLS is being set up.
        case waitingForTLS
        case handshaking(HandshakeStateMachine)
        case proven(Connection, ConnectionStateMachine)
        case closed
    }

    private let settings: Settings
    private let logger: Logger
    private let localID: PeerID
    private let peerKey: (ChannelHandlerContext) -> [UInt8]?
    private var state = State.waitingForTLS
    private var preamble = PreambleDecoder()
    private var hasPreamble = false
    private var decoder = FrameDecoder()
    private var heardSinceCheck = false
    private var silence: TimeAmount = .zero
    private var heartbeat: RepeatedTask?
    private var deadline: Scheduled<Void>?
    private var end: ConnectionEnd?
    private var unprocessed = 0
    private var unwritten = 0
    private var wantsRead = false

    /// `peerKey` reads the key of the other side's certificate once TLS stands.
    package init(settings: Settings, logger: Logger, peerKey: @escaping (ChannelHandlerContext) -> [UInt8]?) {
        self.settings = settings
        self.logger = logger
        self.localID = PeerID(subjectPublicKeyInfo: settings.hello.publicKey)
        self.peerKey = peerKey
    }

    // MARK: Beginning

    package func handlerAdded(context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.deadline = context.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.handshakeTime)) {
            let (this, context) = loopBound.value
            this.fail(EarshotError(.timedOut, "the peer did not finish its handshake in \(EarshotLimits.handshakeTime)"), context: context)
        }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            self.begin(context: context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func begin(context: ChannelHandlerContext) {
        guard case .waitingForTLS = self.state, let key = self.peerKey(context) else {
            self.fail(EarshotError(.identityMismatch, "the peer presented no certificate"), context: context)
            return
        }
        var machine = HandshakeStateMachine(
            role: self.settings.role, hello: self.settings.hello, carrier: .tls(peerKey: key), expectedPeer: self.settings.expectedPeer)
        let action = machine.start()
        self.state = .handshaking(machine)
        switch action {
        case .send(let hello): self.writeAccounted([.hello(hello)], withPreamble: true, context: context)
        case .wait: break
        case .refuse(let error): self.refuse(error, context: context)
        }
    }

    // MARK: Reading

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = self.unwrapInboundIn(data)
        self.heardSinceCheck = true
        do throws(WireError) {
            if !self.hasPreamble {
                self.hasPreamble = try self.preamble.consume(&buffer)
            }
            guard self.hasPreamble else { return }
            self.decoder.feed(buffer)
            try self.decode(context: context)
        } catch {
            self.refuse(error, context: context)
        }
    }

    private func decode(context: ChannelHandlerContext) throws(WireError) {
        var frames: [Frame] = []
        while let frame = try self.decoder.next() {
            switch self.state {
            case .handshaking(var machine):
                let action = machine.received(frame)
                self.state = .handshaking(machine)
                self.perform(action, context: context)
            case .proven(let connection, var machine):
                // Taken out while it is changed, so that it is not copied.
                self.state = .closed
                let action = machine.received(frame)
                self.state = .proven(connection, machine)
                switch action {
                case .deliver, .deliverCrossing:
                    switch frame {
                    case .pong: break
                    case .goodbye: self.finish(.inOrder, context: context)
                    case .refusal(let refusal): self.finish(.refused(refusal), context: context)
                    default: frames.append(frame)
                    }
                case .ignore: break
                case .reply(let reply): self.writeAccounted([reply], context: context)
                case .violation(let error):
                    self.emit(frames)
                    throw error
                }
            case .waitingForTLS, .closed: return
            }
        }
        self.emit(frames)
    }

    private func emit(_ frames: [Frame]) {
        guard case .proven(let connection, _) = self.state, !frames.isEmpty else { return }
        let weight = frames.reduce(0) { $0 + $1.weight }
        self.unprocessed += weight
        self.settings.emit(.received(connection, frames, weight: weight))
    }

    package func read(context: ChannelHandlerContext) {
        if self.mayRead {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    private var mayRead: Bool {
        self.unprocessed < EarshotLimits.unprocessedBytes && self.unwritten < EarshotLimits.unwrittenBytes
    }

    /// Something that held the reading up is less.
    private func resumeReading(context: ChannelHandlerContext) {
        guard self.wantsRead, self.mayRead else { return }
        self.wantsRead = false
        context.read()
    }

    // MARK: Handshake

    private func perform(_ action: HandshakeStateMachine.ReceivedAction, context: ChannelHandlerContext) {
        switch action {
        case .wait, .ignore: break
        case .sign(let input): self.sign(input, context: context)
        case .verify(let check):
            guard case .handshaking(var machine) = self.state else { return }
            let action = machine.verified(ProofVerifier.isValid(check))
            self.state = .handshaking(machine)
            switch action {
            case .sign(let input): self.sign(input, context: context)
            case .proven(let peer): self.proven(peer, context: context)
            case .refuse(let error): self.refuse(error, context: context)
            }
        case .refuse(let error): self.refuse(error, context: context)
        case .refused(let refusal):
            self.fail(EarshotError(refusal.code.earshotCode, "the peer refused the connection: \(refusal.code.name)"), context: context)
        }
    }

    private func sign(_ input: [UInt8], context: ChannelHandlerContext) {
        guard case .handshaking(var machine) = self.state else { return }
        let signature: [UInt8]
        do {
            signature = try self.settings.sign(input)
        } catch {
            self.fail(EarshotError(.unavailable, "cannot sign with the identity's key: \(error)", underlying: error), context: context)
            return
        }
        let action = machine.signed(signature)
        self.state = .handshaking(machine)
        switch action {
        case .send(let hello, let proof): self.writeAccounted([.hello(hello), .proof(proof)], withPreamble: true, context: context)
        case .sendAndFinish(let proof, let peer):
            self.writeAccounted([.proof(proof)], context: context)
            self.proven(peer, context: context)
        case .refuse(let error): self.refuse(error, context: context)
        }
    }

    private func proven(_ peer: ProvenPeer, context: ChannelHandlerContext) {
        self.deadline?.cancel()
        self.decoder.phase = .proven
        let connection = Connection(
            channel: context.channel, peer: peer, isInitiator: self.settings.role == .initiator, provenAt: .now,
            dialledAddress: self.settings.dialledAddress)
        self.state = .proven(connection, ConnectionStateMachine(localID: self.localID, peerID: peer.id))
        self.startHeartbeat(context: context)
        // The node hears of the connection before whoever dialled it does.
        self.settings.emit(.proven(connection))
        self.settings.settled(.success(()))
    }

    // MARK: Writing

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let frames = self.unwrapOutboundIn(data)
        guard case .proven(let connection, var machine) = self.state else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        self.state = .closed
        let allowed = frames.filter { machine.sent($0) == .send }
        self.state = .proven(connection, machine)
        do {
            try self.encode(allowed, into: context.channel.allocator.buffer(capacity: 256), context: context, promise: promise)
        } catch {
            self.logger.error("a frame of ours is outside the protocol's limits", metadata: ["error": "\(error)"])
            promise?.fail(error)
        }
    }

    /// One write for small frames together; a large body is written as the buffer that it is, not copied.
    private func encode(
        _ frames: [Frame], into buffer: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil
    ) throws(WireError) {
        var buffer = buffer
        for frame in frames {
            if let body = try FrameEncoder.encodeHead(frame, into: &buffer) {
                context.write(self.wrapOutboundOut(buffer), promise: nil)
                context.write(self.wrapOutboundOut(body), promise: nil)
                buffer = context.channel.allocator.buffer(capacity: 256)
            }
        }
        self.write(buffer, context: context, promise: promise)
    }

    /// Small frames are mostly answers: while the socket is full they are counted until it takes them. Bodies are bounded elsewhere.
    private func write(_ buffer: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        guard !context.channel.isWritable, buffer.readableBytes > 0 else {
            context.write(self.wrapOutboundOut(buffer), promise: promise)
            return
        }
        let weight = buffer.readableBytes + Self.writeOverhead
        let written = promise ?? context.eventLoop.makePromise()
        self.unwritten += weight
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            let (this, context) = loopBound.value
            this.unwritten -= weight
            this.resumeReading(context: context)
        }
        context.write(self.wrapOutboundOut(buffer), promise: written)
    }

    /// About what a write that waits takes in memory beyond its bytes.
    private static let writeOverhead = 256

    /// Writes frames that the machine allows, at once.
    private func write(_ frames: [Frame], context: ChannelHandlerContext) {
        guard case .proven(let connection, var machine) = self.state else { return }
        let allowed = frames.filter { machine.sent($0) == .send }
        self.state = .proven(connection, machine)
        self.writeAccounted(allowed, context: context)
    }

    /// Writes what no machine has a say in, or had it already.
    private func writeAccounted(_ frames: [Frame], withPreamble: Bool = false, context: ChannelHandlerContext) {
        var buffer = context.channel.allocator.buffer(capacity: 512)
        if withPreamble { buffer.writeBytes(WireLimits.preamble) }
        do {
            try self.encode(frames, into: buffer, context: context)
            context.flush()
        } catch {
            self.logger.error("a frame of ours is outside the protocol's limits", metadata: ["error": "\(error)"])
            self.close(context: context)
        }
    }

    package func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        switch event as? Connection.Command {
        case .processed(let bytes)?:
            self.unprocessed -= bytes
            self.resumeReading(context: context)
            promise?.succeed()
        case .close(let refusal)?:
            self.write([refusal.map(Frame.refusal) ?? .goodbye], context: context)
            self.finish(refusal.map(ConnectionEnd.refused) ?? .inOrder, context: context)
            promise?.succeed()
        case nil:
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    // MARK: Life

    private func startHeartbeat(context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let interval = TimeAmount.nanoseconds(TimeAmount(EarshotLimits.deadAfter).nanoseconds / 10)
        self.heartbeat = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            let (this, context) = loopBound.value
            this.checkLife(interval: interval, context: context)
        }
    }

    private func checkLife(interval: TimeAmount, context: ChannelHandlerContext) {
        // A connection that we do not read from because the node is behind is not silent.
        if self.heardSinceCheck || self.unprocessed >= EarshotLimits.unprocessedBytes {
            self.heardSinceCheck = false
            self.silence = .zero
            return
        }
        self.silence = self.silence + interval
        if self.silence >= TimeAmount(EarshotLimits.deadAfter) {
            // The node hears of it at once: closing waits for a peer that does not answer.
            if case .proven(let connection, _) = self.state {
                self.state = .closed
                self.settings.emit(.closed(connection, .dead))
            }
            self.heartbeat?.cancel()
            self.close(context: context)
        } else if self.silence >= TimeAmount(EarshotLimits.pingAfter) {
            self.write([.ping(UInt64(truncatingIfNeeded: self.silence.nanoseconds))], context: context)
        }
    }

    // MARK: End

    /// Refuses what the peer did, in words, and closes.
    private func refuse(_ error: WireError, context: ChannelHandlerContext) {
        let refusal = error.refusal
        switch self.state {
        case .proven:
            self.logger.warning(
                "closing a connection", metadata: ["peer": "\(self.provenID)", "reason": "\(error)"])
            self.writeAccounted([.refusal(refusal)], context: context)
            self.finish(.refused(refusal), context: context)
        case .handshaking(let machine):
            // A responder that refuses the first hello has not sent its preamble yet.
            let isFirst = self.settings.role == .responder && !machine.hasSentHello
            self.writeAccounted([.refusal(refusal)], withPreamble: isFirst, context: context)
            self.fail(EarshotError(error.code.earshotCode, error.description, underlying: error), context: context)
        case .waitingForTLS:
            self.fail(EarshotError(error.code.earshotCode, error.description, underlying: error), context: context)
        case .closed: break
        }
    }

    private var provenID: String {
        if case .proven(let connection, _) = self.state { connection.peer.id.description } else { "-" }
    }

    private func finish(_ end: ConnectionEnd, context: ChannelHandlerContext) {
        if self.end == nil { self.end = end }
        self.close(context: context)
    }

    private func fail(_ error: EarshotError, context: ChannelHandlerContext) {
        guard case .proven = self.state else {
            if case .closed = self.state { return }
            self.state = .closed
            self.deadline?.cancel()
            self.settings.settled(.failure(error))
            self.close(context: context)
            return
        }
        self.close(context: context)
    }

    /// Closes for good: TLS's own closing would wait for a peer that may be gone.
    private func close(context: ChannelHandlerContext) {
        context.flush()
        let channel = context.channel
        context.close(promise: nil)
        context.eventLoop.scheduleTask(in: .seconds(1)) {
            // From in front of TLS: asked again, it would only wait on for the other side's word.
            let pipeline = channel.pipeline.syncOperations
            (try? pipeline.context(handlerType: NIOSSLServerHandler.self))?.close(mode: .all, promise: nil)
            (try? pipeline.context(handlerType: NIOSSLClientHandler.self))?.close(mode: .all, promise: nil)
        }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.fail(
            EarshotError(.notConnected, "the connection failed: \(error)", underlying: error), context: context)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.heartbeat?.cancel()
        self.deadline?.cancel()
        switch self.state {
        case .proven(let connection, _):
            self.state = .closed
            self.settings.emit(.closed(connection, self.end ?? .lost))
        case .waitingForTLS, .handshaking:
            self.state = .closed
            self.settings.settled(.failure(EarshotError(.notConnected, "the connection closed before the peer had proven who it is")))
        case .closed: break
        }
        context.fireChannelInactive()
    }
}
