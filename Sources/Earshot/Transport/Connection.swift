package import EarshotWire
package import FoundationEssentials
package import NIOCore
import Synchronization

/// One proven connection to a peer, as the node holds it: a handle on the channel that the event loop works on.
///
/// Frames go out in the order of the calls; what comes in reaches the node as ``ConnectionEvent``s.
package final class Connection: Sendable {
    /// Asks the handler for something that is not a frame.
    package enum Command: Sendable {
        /// Write unreliable messages that are encoded already.
        case sendUnreliable(ByteBuffer)
        /// Say why, then close.
        case close(Refusal?)
        /// Send a ping, and report how many nanoseconds its pong took.
        case ping(EventLoopPromise<Int64>)
    }

    /// Which connection it is, of all of this run.
    package let id = LinkID.next()
    package let channel: any Channel
    package let peer: ProvenPeer
    /// Where the other side is (``UnprovenConnections/origin(_:)``); empty where that cannot be told.
    package let origin: [UInt8]
    /// Whether we dialled.
    package let isInitiator: Bool
    /// Where we dialled; `nil` for a connection that came in.
    package let dialledAddress: PeerAddress?
    /// Until when an authority of ours speaks for the peer's certificate; `nil` where none does.
    package let vouchedUntil: Date?
    /// What of its frames the node has not dealt with.
    package let turns: Turns
    /// Bytes of unreliable messages that the socket has not taken.
    private let unreliableBytes = Mutex(0)
    /// How many calls from other threads the event loop has not got round to.
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

    /// Does what goes out at once on the connection's event loop, and else there: always in the order of the calls, of which those from
    /// other threads may still be on their way.
    private func inOrder(_ work: @escaping @Sendable (any Channel) -> Void) {
        let channel = self.channel
        guard !channel.eventLoop.inEventLoop || self.underWay.load(ordering: .acquiring) > 0 else { return work(channel) }
        self.underWay.add(1, ordering: .acquiringAndReleasing)
        channel.eventLoop.execute {
            self.underWay.subtract(1, ordering: .acquiringAndReleasing)
            work(channel)
        }
    }

    /// Writes frames; what cannot be written any more is lost with the connection, which the node hears about.
    package func send(_ frames: [Frame]) {
        self.inOrder { $0.writeAndFlush(frames, promise: nil) }
    }

    /// How many bytes of unreliable messages can go at once: it is less only by what is sent from here.
    package var unreliableRoom: Int {
        guard self.channel.isActive, self.channel.isWritable else { return 0 }
        return max(0, EarshotLimits.unreliableBytes - self.unreliableBytes.withLock { $0 })
    }

    /// Writes unreliable messages for which there is room.
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

    /// Writes frames; the future is done when the kernel has them.
    package func write(_ frames: [Frame]) -> EventLoopFuture<Void> {
        let written = self.channel.eventLoop.makePromise(of: Void.self)
        self.inOrder { $0.writeAndFlush(frames, promise: written) }
        return written.futureResult
    }

    /// The node has dealt with what it was given in one event, and holds nothing of this weight any more: the next ones have their turn.
    package func turnEnded(_ weight: Int, isMember: Bool) {
        self.processed(weight)
        self.turns.end(isMember: isMember)
    }

    /// Nothing of this ``EarshotWire/Frame/weight`` is held any more: the peer may send more.
    package func processed(_ weight: Int) {
        guard weight > 0 else { return }
        self.turns.account.giveBack(weight)
    }

    /// What the peer makes this machine hold is charged there.
    var account: PeerAccount { self.turns.account }

    /// Has the peer show that it is there; the time that takes is in nanoseconds.
    func askForSign(_ answer: EventLoopPromise<Int64>) {
        let asked = self.channel.eventLoop.makePromise(of: Void.self)
        // A channel that has ended has no handler that takes the event.
        asked.futureResult.whenFailure { answer.fail($0) }
        self.inOrder { $0.triggerUserOutboundEvent(Command.ping(answer), promise: asked) }
    }

    /// Ends the connection, in order (`goodbye`) or with a reason; what was written before still goes out.
    package func close(_ refusal: Refusal? = nil) {
        self.inOrder { $0.triggerUserOutboundEvent(Command.close(refusal), promise: nil) }
    }
}

/// What a connection's handler tells the node, in order.
package enum ConnectionEvent: Sendable {
    case proven(Connection)
    /// Frames that are legal where the connection stands; `turnEnded` must be called once for them, and their weight handed back by it or
    /// later by `processed`.
    case received(Connection, [Frame], weight: Int)
    /// The same of unreliable messages, whose bodies have storage of about their own size.
    case receivedUnreliable(Connection, [MessageFrame], weight: Int)
    case closed(Connection, LinkEnd)
}

extension Frame {
    /// What the frame costs while it waits, in bytes: its bulk and a share for everything else, so that small ones are not free.
    var weight: Int {
        switch self {
        case .message(let message): Self.weight(ofBody: message.body.readableBytes)
        case .resourceChunk(let chunk): chunk.data.readableBytes + Self.baseWeight
        case .streamData(let data): data.data.readableBytes + Self.baseWeight
        case .invite(let invite): invite.context.count + Self.baseWeight
        case .group(let group): group.bulk + Self.baseWeight
        case .messageReceipts(let receipts): receipts.count * 32 + Self.baseWeight
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd, .resourceOffer,
            .resourceAccept, .resourceRefuse, .resourceEnd, .resourceDone, .resourceCancel, .resourceHave, .resourceFrom, .dataTicket,
            .dataUnavailable, .dataAttach, .streamOpen, .streamAccept, .streamRefuse, .streamEnd, .streamDone, .streamAbort,
            .streamReroute, .streamRerouted, .verification:
            Self.baseWeight
        }
    }

    /// The same for a message with a body of so many bytes.
    static func weight(ofBody count: Int) -> Int { count + Self.baseWeight }

    /// About what a frame without bulk takes in memory.
    private static let baseWeight = 256
}
