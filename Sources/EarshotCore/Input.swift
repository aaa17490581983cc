package import EarshotWire
package import NIOCore

/// An event from outside that a ``NodeCore`` handles.
package enum Input: Sendable, Equatable {
    case call(CallID, Command)
    case link(LinkID, LinkEvent)
    case discovery(DiscoveryInput)
    /// An event of a dial that an effect has requested.
    case dial(PeerID, DialEvent)
    case configuredDial(ConfiguredPeer, DialEvent)
    /// The outcome of a transaction; with an error, nothing of it was written.
    case committed(CommitID, EarshotError?)
    /// The messages in the outbox on disk when this run began, in their order.
    case outbox([QueuedMessageRow])
    /// The outcome of changes of the outbox that were written together; with an error, none of them was written.
    case kept([KeepID], EarshotError?)
    /// The outcomes of deliveries to the inbox. Deliveries of one transaction are reported together.
    case delivered([DeliveryReport])
    /// Bodies of queued messages, as many as were found.
    case bodies(Conversation, [MessageID], Result<[LoadedBody], EarshotError>)
    /// The messages of a peer that were read here and that it has not noted, according to the disk; `nil` if they could not be read.
    case receipts(PeerID, [MessageID]?)
    /// The program has taken messages of a peer from memory.
    case taken([MessageID], of: PeerID)
    /// Messages of a peer were read here, and the pending receipts are on disk.
    case read([MessageID], of: PeerID)
    /// Other messages to send in the conversation together with the last one have come in.
    case flush(Conversation)
    /// A session with a peer is needed, or a connection for the existing session.
    case need(PeerID, PeerNeed)
    /// An event of a transfer that needs a data connection.
    case dataPath(TransferID, DataPathEvent)
    /// A report by a stream's mover.
    case stream(StreamID, StreamReport)
    /// A caller that waits for a long time has disconnected.
    case callerGone(CallID)
    /// A report by a transfer's mover.
    case transfer(ResourceID, TransferReport)
    /// The requested signatures, in their order.
    case signed(SignatureID, Result<[[UInt8]], EarshotError>)
    /// The results of the requested checks, in their order.
    case checked(SignatureID, [Bool])
    /// The transfers on disk when this run began, the oldest first.
    case transfers([LoadedTransfer], [EndedTransfer])
    /// The disk has refused rows of these resources.
    case rowsRefused([ResourceID])
    /// The node is about to end. No stream begins any more, and open streams end. Transfers whose callers bring their bytes end too. All
    /// other transfers wait for the next start when the node stops.
    case streamsOver
    /// An event that concerns LocalSend devices.
    case device(DeviceEvent)
    /// New settings.
    case settings(CoreSettings)
    /// The node begins to work, or is about to end.
    case start
    case stop
    /// Nothing is written any more, and no call will be answered later.
    case stopped
    /// A deadline has passed. Due deadlines are handled before any input.
    case deadline
}

/// An event on a control connection.
package enum LinkEvent: Sendable, Equatable {
    /// The peer has proven its key. `isOtherDead` says whether the peer's present connection is known to be dead, although its end was not
    /// reported yet.
    case proven(LinkFacts, isOtherDead: Bool)
    /// A frame that is legal in the connection's state and that the core handles.
    case frame(Frame)
    /// A frame that another part of the node handles: a sign of life.
    case heard
    /// Messages that came together.
    case messages([MessageFrame])
    /// Unreliable messages that came together. The storage of each body is about as large as the body.
    case liveMessages([MessageFrame])
    case closed(LinkEnd)
}

/// The reason why a control connection ended.
package enum LinkEnd: Sendable, Hashable, CustomStringConvertible {
    /// Either side sent `goodbye`.
    case inOrder
    /// The connection was reset, or its stream ended.
    case lost
    /// The peer was silent for `EarshotLimits.deadAfter`.
    case dead
    /// One side refused what the other sent.
    case refused(Refusal)

    package var description: String {
        switch self {
        case .inOrder: "closed in order"
        case .lost: "lost"
        case .dead: "no sign of life"
        case .refused(let refusal): "refused (\(refusal.code.name)) \(refusal.explanation)"
        }
    }
}

/// A discovery event, with its addresses parsed.
package enum DiscoveryInput: Sendable, Hashable {
    case found(DiscoveryStatus.Backend, SeenAddresses)
    case lost(DiscoveryStatus.Backend, Sighting.Key)
    case reset(DiscoveryStatus.Backend)
    case status(DiscoveryStatus)
    case advertised(instanceName: String?)
}

/// A sighting with its numeric addresses.
package struct SeenAddresses: Sendable, Hashable {
    package let sighting: Sighting
    package let addresses: [PeerAddress]
    /// Whether one of the addresses is this machine's own.
    package let isThisMachine: Bool

    package init(sighting: Sighting, addresses: [PeerAddress], isThisMachine: Bool = false) {
        self.sighting = sighting
        self.addresses = addresses
        self.isThisMachine = isThisMachine
    }
}

/// The body of a queued message, loaded from disk.
package struct LoadedBody: Sendable, Hashable {
    package let id: MessageID
    package let body: ByteBuffer

    package init(id: MessageID, body: ByteBuffer) {
        self.id = id
        self.body = body
    }
}

/// An event of a dial.
package enum DialEvent: Sendable, Equatable {
    /// The dial has addresses to try. They are listed for a configured peer.
    case began([PeerAddress])
    /// None of the peer's addresses is on a network of this machine.
    case nowhere
    /// At a configured address, a peer has answered that is connected already.
    case answered(PeerID)
    /// The dial has ended. Without an error, its connection was reported as proven before.
    case ended(EarshotError?)
}

/// The reason for which a caller or pending traffic needs a session or a connection with a peer.
package enum PeerNeed: Sendable, Hashable {
    /// A caller sends something to the peer: invite it, unless an invitation is pending.
    case session
    /// Messages for the peer wait on disk: invite it if it is trusted and within reach.
    case sessionForQueue
    /// Traffic waits for the peer's connection. With `now`, the dial does not wait for the pause after failures.
    case connection(now: Bool)
}

/// An event of a transfer's data connection, or of the attempts to make one.
package enum DataPathEvent: Sendable, Hashable {
    /// A peer's ticket, or its report that it cannot dial.
    case ticket(DataToken, from: PeerID)
    case unavailable(from: PeerID)
    /// A dial by this side has failed.
    case dialFailed(attempt: UInt64)
    /// A connection that one side has dialled is established.
    case attached(attempt: UInt64)
    /// The attempt has timed out.
    case expired(attempt: UInt64)
}
