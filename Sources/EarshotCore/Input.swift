package import EarshotWire
package import NIOCore

/// What reaches a ``NodeCore`` from outside.
package enum Input: Sendable, Equatable {
    case call(CallID, Command)
    case link(LinkID, LinkEvent)
    case discovery(DiscoveryInput)
    /// Of a dial that an effect has asked for.
    case dial(PeerID, DialEvent)
    case configuredDial(ConfiguredPeer, DialEvent)
    /// What has become of a transaction; an error where nothing of it was written.
    case committed(CommitID, EarshotError?)
    /// What was in the outbox on disk when this run began, in its order.
    case outbox([QueuedMessageRow])
    /// Changes of the outbox are on disk together; an error where none of them is.
    case kept([KeepID], EarshotError?)
    /// What has become of messages for the inbox; those of one transaction together.
    case delivered([DeliveryReport])
    /// Bodies of messages of the outbox, of as many as are there.
    case bodies(Conversation, [MessageID], Result<[LoadedBody], EarshotError>)
    /// The messages of a peer that were read here and of which it has not taken note, by the disk; `nil` where that could not be read.
    case receipts(PeerID, [MessageID]?)
    /// The program has taken messages of a peer that were held in memory for it.
    case taken([MessageID], of: PeerID)
    /// Messages of a peer were read here, and that it is to hear that is on disk.
    case read([MessageID], of: PeerID)
    /// What else was to be sent in a conversation with the last message has come.
    case flush(Conversation)
    /// A session with a peer is needed, or a connection for the one that there is.
    case need(PeerID, PeerNeed)
    /// Of a transfer that needs a data connection.
    case dataPath(TransferID, DataPathEvent)
    /// A report of a stream's mover.
    case stream(StreamID, StreamReport)
    /// A caller that waits for an answer, which may be long in coming, has gone.
    case callerGone(CallID)
    /// A report of a transfer's mover.
    case transfer(ResourceID, TransferReport)
    /// The signatures that were asked for, in their order.
    case signed(SignatureID, Result<[[UInt8]], EarshotError>)
    /// Whether what was to be checked is valid, in its order.
    case checked(SignatureID, [Bool])
    /// What was on disk of transfers when this run began, the oldest first.
    case transfers([LoadedTransfer], [EndedTransfer])
    /// The disk has not taken what was to be kept of these.
    case rowsRefused([ResourceID])
    /// This machine's peer is about to end: no stream begins any more, and those that there are end; so do transfers whose callers bring their
    /// bytes, and, once it stops, all others wait for the next start.
    case streamsOver
    /// The settings are these from now on.
    case settings(CoreSettings)
    /// This machine's peer begins to work, or is about to end.
    case start
    case stop
    /// Nothing is written any more, and nothing will be answered later.
    case stopped
    /// Time has passed; what is due is dealt with before any input.
    case deadline
}

/// What happens on a control connection.
package enum LinkEvent: Sendable, Equatable {
    /// The peer has proven its key on it; whether the one that stands until now is known to be dead, though its end is not reported yet.
    case proven(LinkFacts, isOtherDead: Bool)
    /// A frame that is legal where the connection stands, and that the core deals with.
    case frame(Frame)
    /// Frames that other parts of the node deal with: a sign of life.
    case heard
    /// Messages that came together.
    case messages([MessageFrame])
    /// The same, all of them unreliable, whose bodies have storage of about their own size.
    case liveMessages([MessageFrame])
    case closed(LinkEnd)
}

/// Why a control connection ended.
package enum LinkEnd: Sendable, Hashable, CustomStringConvertible {
    /// By a `goodbye` of either side.
    case inOrder
    /// Reset, or the stream ended.
    case lost
    /// Silence for `EarshotLimits.deadAfter`.
    case dead
    /// One side has refused what the other sent.
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

/// What discovery reports, with its addresses read.
package enum DiscoveryInput: Sendable, Hashable {
    case found(DiscoveryStatus.Backend, SeenAddresses)
    case lost(DiscoveryStatus.Backend, Sighting.Key)
    case reset(DiscoveryStatus.Backend)
    case status(DiscoveryStatus)
    case advertised(instanceName: String?)
}

/// A sighting, and those of its addresses that are numeric.
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

/// The body of a message of the outbox, read from disk.
package struct LoadedBody: Sendable, Hashable {
    package let id: MessageID
    package let body: ByteBuffer

    package init(id: MessageID, body: ByteBuffer) {
        self.id = id
        self.body = body
    }
}

/// How a dial goes.
package enum DialEvent: Sendable, Equatable {
    /// It has addresses to try: these, where it is a peer of the settings.
    case began([PeerAddress])
    /// None of the peer's addresses is on a network of this machine's.
    case nowhere
    /// At an address of the settings a peer has answered with which a connection stands.
    case answered(PeerID)
    /// It is over; without an error its connection has been reported as proven before.
    case ended(EarshotError?)
}

/// Why a part of the node that has something for a peer asks for more than there is.
package enum PeerNeed: Sendable, Hashable {
    /// Something is sent to it by a caller's wish: invite it, unless that is under way.
    case session
    /// Something waits on disk for it: invite it where it is trusted and within reach.
    case sessionForQueue
    /// Something waits for its connection; `now` also where earlier failures have earned a pause.
    case connection(now: Bool)
}

/// What happens to a transfer's data connection, or on the way to one.
package enum DataPathEvent: Sendable, Hashable {
    /// Both sides have agreed that the transfer's bytes go over a data connection; the one that it had is closed. `link` is the control
    /// connection, which this side has opened where it `isInitiator`; no other one was wanted as this `attempt`.
    case wanted(PeerID, link: LinkID, isInitiator: Bool, attempt: UInt64)
    /// It needs none any more.
    case over
    /// A peer's ticket, or its word that it can not dial.
    case ticket(DataToken, from: PeerID)
    case unavailable(from: PeerID)
    /// An attempt of this side's to dial has come to nothing.
    case dialFailed(attempt: UInt64)
    /// A connection stands that one of the two has dialled.
    case attached(attempt: UInt64)
    /// Its time is over.
    case expired(attempt: UInt64)
}
