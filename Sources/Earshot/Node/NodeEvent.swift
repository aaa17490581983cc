public import EarshotWire
public import FoundationEssentials

/// Something that happened, in the order in which it did.
public struct NodeEvent: Sendable, Hashable, Codable {
    /// Rises by exactly 1 within one run of the node, from 1.
    public let sequence: UInt64
    /// When it happened, by this machine's clock, to the millisecond.
    public let time: Date
    /// What happened.
    public let kind: Kind

    package init(sequence: UInt64, time: Date, kind: Kind) { self.init(sequence: sequence, at: WallTime(time).date, kind) }

    /// The same at a time that is to the millisecond already.
    init(sequence: UInt64, at time: Date, _ kind: Kind) {
        self.sequence = sequence
        self.time = time
        self.kind = kind
    }

    /// What happened; the raw names are in the control API's description, `openapi.json`. Indirect, because an event is handed from one to the next many times, and what
    /// it tells of is large.
    public indirect enum Kind: Sendable, Hashable {
        case peerFound(Peer)
        case peerChanged(Peer)
        case peerLost(Peer)
        case invitationReceived(Invitation)
        case invitationResolved(Invitation)
        case verificationChanged(Verification)
        /// Made, attached, detached or ended; the members of an ended session are listed as not connected.
        case sessionChanged(Session, ended: Bool)
        case messageReceived(Message)
        case messageStatus(MessageID, Message.Recipient)
        case resourceOffered(Resource)
        case resourceProgress(Resource)
        case resourceFinished(Resource)
        /// A stream is there, and waits to be accepted.
        case streamOpened(ByteStream)
        case streamClosed(ByteStream)
        case discoveryChanged(DiscoveryStatus)
        /// Made, joined, or changed in its name or its members; their states too.
        case groupChanged(Group)
        /// This machine is not in it any more.
        case groupLeft(GroupID, GroupEnd)
        /// The settings were read again: the names of those that changed, and of those among them that wait for the next start.
        case settingsReloaded(changed: [String], needsRestart: [String])
        /// The reader missed the events of this range.
        case gap(ClosedRange<UInt64>)
    }
}
