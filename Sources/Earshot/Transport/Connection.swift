package import EarshotWire
package import FoundationEssentials
package import NIOCore
import Synchronization

/// A proven connection to a peer, as a handle for the node on the channel of the event loop.
///
/// Frames are sent in the order of the calls. Received frames reach the node as ``ConnectionEvent``s.
package final class Connection: Sendable {
    /// A command for the handler that is not a frame.
    package enum Command: Sendable {
        /// Write unreliable messages that are already encoded.
        case sendUnreliable(ByteBuffer)
        /// Send the reason, then close.
        case close(Refusal?)
        /// Send a ping, and report the nanoseconds until its pong.
        case ping(EventLoopPromise<Int64>)
    }

    /// The connection's id, unique in this run.
    package let id = LinkID.next()
    package let channel: any Channel
    package let peer: ProvenPeer
    /// The network origin of the other side (``UnprovenConnections/origin(_:)``); empty if unknown.
    package let origin: [UInt8]
    /// Whether this side dialled.
    package let isInitiator: Bool
    /// The dialled address; `nil` for an incoming connection.
    package let dialledAddress: PeerAddress?
    /// The time until which one of the configured authorities vouches for the peer's certificate; `nil` if none does.
    package let vouchedUntil: Date?
    /// The peer's frames that the node has not yet handled.
    package let turns: Turns
    /// Bytes of unreliable messages that the socket has not accepted.
    private let unreliableBytes = Mutex(0)
    /// The number of calls from other threads that the event loop has not yet executed.
    private let underWay = Atomic(0)

    package init(
        channel: any Channel, peer: ProvenPeer, isInitiator: Bool, dialledAddress: PeerAddress?,
        vouchedUntil: Date? = nil, account: PeerAccount? = nil
    ) {
        self.turns = Turns(account: account ?? PeerAccounts().account(of: peer.id))
        self.channel = channel
        self.peer = peer
        self.origin = channel.remoteAddress.flatMap(UnprovenConnections.origin) ?? []
        self.isInitiator = isInitiator
        self.dialledAddress = dialledAddress
        self.vouchedUntil = vouchedUntil
    }

    package var protection: Protection { self.peer.transport.protection }

    /// Runs output work immediately on the connection's event loop, or schedules it there from another thread. The order of the calls is
    /// preserved, also while calls from other threads are pending.
    private func inOrder(_ work: @escaping @Sendable (any Channel) -> Void) {
        let channel = self.channel
        guard !channel.eventLoop.inEventLoop || self.underWay.load(ordering: .acquiring) > 0 else { return work(channel) }
        self.underWay.add(1, ordering: .acquiringAndReleasing)
        channel.eventLoop.execute {
            self.underWay.subtract(1, ordering: .acquiringAndReleasing)
            work(channel)
        }
    }

    /// Writes frames. Frames that can no longer be written are lost with the connection, whose end the node learns separately.
    package func send(_ frames: [Frame]) {
        self.inOrder { $0.writeAndFlush(frames, promise: nil) }
    }

    /// The number of bytes of unreliable messages that can be sent immediately. Only sends from here reduce it.
    package var unreliableRoom: Int {
        guard self.channel.isActive, self.channel.isWritable else { return 0 }
        return max(0, EarshotLimits.unreliableBytes - self.unreliableBytes.withLock { $0 })
    }

    /// Writes unreliable messages that fit into ``unreliableRoom``.
    package func sendUnreliable(_ messages: UnreliableMessages) {
        self.unreliableBytes.withLock { $0 += messages.cost }
        let written = self.channel.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in
            self.unreliableBytes.withLock { $0 -= messages.cost }
        }
        self.inOrder { channel in
            if messages.encoded.readableBytes > 0 {
                let isLast = messages.frames.isEmpty
                channel.triggerUserOutboundEvent(Command.sendUnreliable(messages.encoded), promise: isLast ? written : nil)
            }
            if !messages.frames.isEmpty { channel.writeAndFlush(messages.frames.map { Frame.message($0) }, promise: written) }
        }
    }

    /// Writes frames. The future completes when the kernel has accepted them.
    package func write(_ frames: [Frame]) -> EventLoopFuture<Void> {
        let written = self.channel.eventLoop.makePromise(of: Void.self)
        self.inOrder { $0.writeAndFlush(frames, promise: written) }
        return written.futureResult
    }

    /// Ends a turn: the node has handled the frames of one event, and holds nothing of this weight any more. The next frames may follow.
    package func turnEnded(_ weight: Int, isMember: Bool) {
        self.processed(weight)
        self.turns.end(isMember: isMember)
    }

    /// Releases this ``EarshotWire/Frame/weight``, so that the peer may send more.
    package func processed(_ weight: Int) {
        guard weight > 0 else { return }
        self.turns.account.giveBack(weight)
    }

    /// The account to which the peer's use of this machine is charged.
    var account: PeerAccount { self.turns.account }

    /// Pings the peer. `answer` receives the time until its pong, in nanoseconds.
    func askForSign(_ answer: EventLoopPromise<Int64>) {
        let asked = self.channel.eventLoop.makePromise(of: Void.self)
        // A channel that has ended has no handler for the event.
        asked.futureResult.whenFailure { answer.fail($0) }
        self.inOrder { $0.triggerUserOutboundEvent(Command.ping(answer), promise: asked) }
    }

    /// Closes the connection, in order (`goodbye`) or with a reason. Earlier writes are still sent.
    package func close(_ refusal: Refusal? = nil) {
        self.inOrder { $0.triggerUserOutboundEvent(Command.close(refusal), promise: nil) }
    }
}

/// The events from a connection's handler for the node, in order.
package enum ConnectionEvent: Sendable {
    case proven(Connection)
    /// Frames that are legal in the connection's current state. The node must call `turnEnded` once for them, and release their weight
    /// with it or later with `processed`.
    case received(Connection, [Frame], weight: Int)
    /// Unreliable messages, with the same rules. The storage of each body has about the body's size.
    case receivedUnreliable(Connection, [MessageFrame], weight: Int)
    case closed(Connection, LinkEnd)
}

extension Frame {
    /// The cost of the frame while it waits, in bytes: its bulk, and a fixed part, so that small frames have a cost too.
    var weight: Int {
        switch self {
        case .message(let message): Self.weight(ofBody: message.body.readableBytes)
        case .resource(let resource): (resource.content?.readableBytes ?? 0) + Self.baseWeight
        case .stream(let stream): (stream.content?.readableBytes ?? 0) + Self.baseWeight
        case .invite(let invite): invite.context.count + Self.baseWeight
        case .group(let group): group.bulk + Self.baseWeight
        case .messageReceipts(let receipts): receipts.count * 32 + Self.baseWeight
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd, .dataTicket,
            .dataUnavailable, .dataAttach, .verification:
            Self.baseWeight
        }
    }

    /// Returns the weight of a message with a body of this size.
    static func weight(ofBody count: Int) -> Int { count + Self.baseWeight }

    /// The approximate memory of a frame without bulk.
    private static let baseWeight = 256
}
