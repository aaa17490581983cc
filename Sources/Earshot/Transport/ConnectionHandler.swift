package import EarshotWire
import FoundationEssentials
package import Logging
package import NIOCore
import NIOTLS

/// The last handler of a connection's pipeline: the codec of frames, the handshake, and liveness.
///
/// The handler runs the pure state machines of EarshotWire (``HandshakeStateMachine``, then ``ConnectionStateMachine``) on the event loop
/// and performs their actions. Until the peer has proven its key, the node receives nothing. After that, it receives ``ConnectionEvent``s,
/// each with at most a turn's worth of frames. Connections take turns: while a turn is not over, or while the peer's ``PeerAccount`` is
/// full, nothing is decoded and the channel is not read, so TCP slows the peer down.
package final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundIn = [Frame]
    package typealias OutboundOut = ByteBuffer

    /// One word in size, because the large cases are indirect. The state is read several times per frame, each time as a copy.
    enum State {
        /// TCP or TLS is being set up.
        case waiting
        indirect case handshaking(Handshake)
        /// The peer of a data connection is proven, and its token has not arrived.
        indirect case attaching(ProvenPeer)
        /// The peer is proven, and its certificates are being validated. Its trust must be known before its first frame is handled.
        indirect case examining(ProvenPeer)
        case proven(Connection)
        case closed
    }

    let settings: Settings
    let logger: Logger
    private let localID: PeerID
    let security: Security
    var state = State.waiting
    /// The rules for frames between two proven peers. Not part of the state, so that it is changed in place and not copied.
    var machine: ConnectionStateMachine?
    private var preamble = PreambleDecoder()
    private var hasPreamble = false
    var decoder = FrameDecoder()
    let writer: FrameWriter
    var signsOfLife: SignsOfLife?
    /// Callers that wait for the peer's pong.
    var pongs = AwaitedPongs()
    var heartbeatTask: Scheduled<Void>?
    var deadline: Scheduled<Void>?
    private var end: LinkEnd?
    var isClosing = false
    /// Bytes that were dropped after closing began.
    var dropped = 0
    /// The bytes of undecoded input that are charged to the accounts.
    var undecoded = 0
    /// Whether the connection waits for its turn.
    var isStalled = false
    var takesBulk = false
    var wantsRead = false

    package init(settings: Settings, logger: Logger, security: Security) {
        self.settings = settings
        self.logger = logger
        self.localID = PeerID(subjectPublicKeyInfo: settings.hello.publicKey)
        self.security = security
        self.writer = FrameWriter(settings.accounts)
        self.writer.hasRoom = { [weak self] context in self?.wasTaken(context: context) }
    }

    // MARK: Setup

    package func handlerAdded(context: ChannelHandlerContext) {
        let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        self.deadline = context.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.handshakeTime)) {
            let (this, context) = loopBound.value
            this.fail(EarshotError(.timedOut, "the peer did not finish its handshake in \(EarshotLimits.handshakeTime)"), context: context)
        }
        self.beginInPlaintext(context: context)
    }

    /// Also called for a channel that never connected, which has no other end event.
    package func handlerRemoved(context: ChannelHandlerContext) {
        self.pongs.end()
        self.deadline?.cancel()
        self.heartbeatTask?.cancel()
    }

    package func channelActive(context: ChannelHandlerContext) {
        self.beginInPlaintext(context: context)
        context.fireChannelActive()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event, self.security) {
        case (TLSUserEvent.handshakeCompleted, .tls(_, let peerKey)):
            HandshakeGate.open(context.pipeline.syncOperations)
            if case .waiting = self.state, let key = peerKey(context) {
                self.begin(.tls(peerKey: key), context: context)
            } else {
                self.fail(EarshotError(.identityMismatch, "the peer presented no certificate"), context: context)
            }
        case (let answer as PlaintextRefusal, .tls):
            self.fail(EarshotError(answer.refusal.code.earshotCode, answer.description, underlying: answer), context: context)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func beginInPlaintext(context: ChannelHandlerContext) {
        guard case .plaintext = self.security, case .waiting = self.state, context.channel.isActive else { return }
        self.begin(.plaintext, context: context)
    }

    private func begin(_ carrier: HandshakeStateMachine.Carrier, context: ChannelHandlerContext) {
        var handshake = Handshake(settings: self.settings, carrier: carrier)
        let outcome = handshake.start()
        self.state = .handshaking(handshake)
        self.perform(outcome, context: context)
    }

    // MARK: Reading

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Input after closing began is dropped, so that it does not accumulate.
        var buffer = self.unwrapInboundIn(data)
        guard !self.isClosing else {
            self.dropped += buffer.readableBytes
            return
        }
        self.signsOfLife?.heard(at: context.eventLoop.now)
        do throws(WireError) {
            if !self.hasPreamble {
                self.hasPreamble = try self.preamble.consume(&buffer)
            }
            guard self.hasPreamble else { return }
            self.decoder.feed(buffer)
            try self.decode(context: context)
            self.boundUndecoded(context: context)
        } catch {
            self.refuse(error, context: context)
        }
    }

    /// Decodes as much as fits into a turn. The rest waits.
    func decode(context: ChannelHandlerContext) throws(WireError) {
        var frames: [Frame] = []
        // Written together: separate writes for each pong were most of the cost of a flood of pings.
        var replies: [Frame] = []
        defer { self.answer(&replies, context: context) }
        var work = 0
        let began = self.isProven ? self.settings.turns.map { _ in ContinuousClock.now } : nil
        defer { if let began { self.settings.turns?.pace.note(work: work, took: .now - began) } }
        if case .proven(let connection) = self.state { self.takeBulk(connection, context: context) }
        var size: Int?
        while true {
            if case .proven(let connection) = self.state {
                let most = size ?? self.turnSize(of: connection)
                size = most
                guard work < most else {
                    self.letOthersIn(context: context)
                    break
                }
                guard self.mayHandOn(connection, context: context) else { break }
                let unreliable = self.takeUnreliable(upTo: (most - work) * EarshotLimits.unreliableMessagesPerWork)
                if !unreliable.isEmpty {
                    self.emit(frames)
                    self.emit(unreliable)
                    frames = []
                    work += 1 + unreliable.count / EarshotLimits.unreliableMessagesPerWork
                    continue
                }
            }
            guard !self.isExamining, let frame = try self.decoder.next() else { break }
            switch self.state {
            case .handshaking(var handshake):
                let outcome = handshake.received(frame)
                self.state = .handshaking(handshake)
                if let id = self.connectedPeer(outcome) {
                    let already = ConnectedPeers.AlreadyConnected(id: id)
                    let why = EarshotError(.conflict, "a connection with the peer stands", underlying: already)
                    return self.fail(why, context: context)
                }
                self.perform(outcome, context: context)
            case .proven:
                let action = self.machine?.received(frame) ?? .ignore
                // Frames that are answered or ignored here also take time of this loop, for which other connections wait.
                work += action == .deliver ? frame.work : 1
                switch action {
                case .deliver:
                    switch frame {
                    case .pong(let value): self.pongs.came(value, at: context.eventLoop.now)
                    case .goodbye: self.finish(.inOrder, behind: &replies, context: context)
                    case .refusal(let refusal): self.finish(.refused(refusal), behind: &replies, context: context)
                    default: frames.append(frame)
                    }
                case .ignore: break
                case .reply(let reply): replies.append(reply)
                case .violation(let error):
                    self.emit(frames)
                    throw error
                }
            case .attaching(let peer): try self.received(frame, attaching: peer, context: context)
            case .waiting, .examining, .closed: return
            }
        }
        self.emit(frames)
    }

    private var isProven: Bool { if case .proven = self.state { true } else { false } }

    package func read(context: ChannelHandlerContext) {
        if self.mayRead {
            context.read()
        } else {
            self.wantsRead = true
        }
    }

    // MARK: Handshake

    private func perform(_ outcome: Handshake.Outcome, context: ChannelHandlerContext) {
        switch outcome {
        case .wait: break
        case .send(let frames, let withPreamble): self.writeAccounted(frames, withPreamble: withPreamble, context: context)
        case .proven(let peer, let frames):
            if !frames.isEmpty { self.writeAccounted(frames, context: context) }
            self.proven(peer, context: context)
        case .refuse(let error): self.refuse(error, context: context)
        case .fail(let error): self.fail(error, context: context)
        }
    }

    private func proven(_ peer: ProvenPeer, context: ChannelHandlerContext) {
        guard !self.isForData(peer) else { return self.proven(forData: peer, context: context) }
        guard self.askAuthorities(about: peer, context: context) else { return }
        self.settled(peer, vouchedUntil: nil, context: context)
    }

    /// Reports a proven peer to the node.
    func settled(_ peer: ProvenPeer, vouchedUntil: Date?, context: ChannelHandlerContext) {
        self.deadline?.cancel()
        self.decoder.phase = .proven
        let connection = Connection(
            channel: context.channel, peer: peer, isInitiator: self.settings.role == .initiator,
            dialledAddress: self.settings.dialledAddress, vouchedUntil: vouchedUntil,
            account: self.settings.accounts.account(of: peer.id))
        self.machine = ConnectionStateMachine(
            localID: self.localID, peerID: peer.id, reroutesStreams: self.settings.reroutesStreams(with: peer),
            knowsGroups: self.settings.knowsGroups(with: peer), takesAttributes: self.settings.takesAttributes(with: peer),
            takesReplies: self.settings.takesReplies(with: peer))
        self.state = .proven(connection)
        self.startHeartbeat(context: context)
        if peer.transport == .tls { self.settings.tlsPins.insert(peer.id) }
        // The node learns of the connection before its dialler does.
        self.settings.emit(.proven(connection))
        self.settings.settled(.success(()))
    }

    // MARK: Writing

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let frames = self.unwrapOutboundIn(data)
        guard case .proven = self.state else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let allowed = self.allowed(frames)
        do {
            try self.writer.write(allowed, context: context, promise: promise)
            self.boundUnread(context: context)
        } catch {
            self.logger.error("a frame of ours is outside the protocol's limits", metadata: ["error": "\(error)"])
            promise?.fail(error)
        }
    }

    /// Writes the frames that the state machine allows, immediately.
    func write(_ frames: [Frame], context: ChannelHandlerContext) {
        guard case .proven = self.state else { return }
        self.writeAccounted(self.allowed(frames), context: context)
    }

    /// Returns the frames that are legal now. The state machine counts them as sent.
    func allowed(_ frames: [Frame]) -> [Frame] {
        frames.filter { self.machine?.sent($0) == .send }
    }

    /// Writes frames that need no check, or have already been checked.
    func writeAccounted(_ frames: [Frame], withPreamble: Bool = false, context: ChannelHandlerContext) {
        do {
            try self.writer.write(frames, withPreamble: withPreamble, context: context)
            context.flush()
        } catch {
            self.logger.error("a frame of ours is outside the protocol's limits", metadata: ["error": "\(error)"])
            self.close(context: context)
        }
    }

    package func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        switch event as? Connection.Command {
        case .sendUnreliable(let messages)?: self.writeUnreliable(messages, context: context, promise: promise)
        case .close(let refusal)?:
            self.write([refusal.map(Frame.refusal) ?? .goodbye], context: context)
            self.finish(refusal.map(LinkEnd.refused) ?? .inOrder, context: context)
            promise?.succeed()
        case .ping(let answer)?: self.ping(answer, taken: promise, context: context)
        case nil:
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    // MARK: End

    /// Refuses the peer's violation with an explanation, and closes.
    func refuse(_ error: WireError, context: ChannelHandlerContext) {
        let refusal = error.refusal
        switch self.state {
        case .proven:
            self.logger.warning(
                "closing a connection", metadata: ["peer": "\(self.provenID)", "reason": "\(error)"])
            self.writeAccounted([.refusal(refusal)], context: context)
            self.finish(.refused(refusal), context: context)
        case .handshaking(let handshake):
            self.writeAccounted([.refusal(refusal)], withPreamble: handshake.hasSaidNothing, context: context)
            self.fail(EarshotError(error.code.earshotCode, error.description, underlying: error), context: context)
        case .attaching, .examining:
            self.writeAccounted([.refusal(refusal)], context: context)
            self.fail(EarshotError(error.code.earshotCode, error.description, underlying: error), context: context)
        case .waiting:
            self.fail(EarshotError(error.code.earshotCode, error.description, underlying: error), context: context)
        case .closed: break
        }
    }

    private var provenID: String {
        if case .proven(let connection) = self.state { connection.peer.id.description } else { "-" }
    }

    func finish(_ end: LinkEnd, context: ChannelHandlerContext) {
        if self.end == nil { self.end = end }
        self.close(context: context)
    }

    func fail(_ error: EarshotError, context: ChannelHandlerContext) {
        guard case .proven = self.state else {
            if case .closed = self.state { return }
            self.validation?.withdraw()
            self.state = .closed
            self.deadline?.cancel()
            self.settings.settled(.failure(error))
            self.close(context: context)
            return
        }
        self.close(context: context)
    }

    /// Closes the connection when its output is sent, or after `EarshotLimits.closingTime`.
    func close(context: ChannelHandlerContext) {
        guard !self.isClosing else { return }
        self.isClosing = true
        if case .proven(let connection) = self.state { self.settings.connectedPeers.remove(connection) }
        switch self.security {
        case .tls:
            // TLS waits that long for the other side's close notification.
            context.flush()
            context.close(promise: nil)
        case .plaintext:
            // Closes only the output until the other side has closed too. Unread input would otherwise reset the connection, and the peer
            // would lose output that it has not read yet.
            let channel = context.channel
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer())).whenComplete { _ in channel.close(mode: .output, promise: nil) }
            context.eventLoop.scheduleTask(in: TimeAmount(EarshotLimits.closingTime)) { channel.close(mode: .all, promise: nil) }
        }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.fail(
            EarshotError(.notConnected, "the connection failed: \(error)", underlying: error), context: context)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.pongs.end()
        self.heartbeatTask?.cancel()
        self.deadline?.cancel()
        self.dropUndecoded()
        switch self.state {
        case .proven(let connection):
            self.state = .closed
            self.settings.emit(.closed(connection, self.end ?? .lost))
        case .waiting, .handshaking, .attaching, .examining:
            self.validation?.withdraw()
            self.state = .closed
            self.settings.settled(.failure(EarshotError(.notConnected, "the connection closed before the peer had proven who it is")))
        case .closed: break
        }
        context.fireChannelInactive()
    }
}
