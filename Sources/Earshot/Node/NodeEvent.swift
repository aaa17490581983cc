public import EarshotWire
public import FoundationEssentials

/// Something that happened, numbered in order.
public struct NodeEvent: Sendable, Hashable, Codable {
    /// The number of the event. Numbers start at 1 and rise by 1 within one run of the node.
    public let sequence: UInt64
    /// The time of the event by this machine's clock, in milliseconds.
    public let time: Date
    /// The type of the event, and its content.
    public let kind: Kind

    package init(sequence: UInt64, time: Date, kind: Kind) { self.init(sequence: sequence, at: WallTime(time).date, kind) }

    /// Creates an event with a time that is already rounded to milliseconds.
    init(sequence: UInt64, at time: Date, _ kind: Kind) {
        self.sequence = sequence
        self.time = time
        self.kind = kind
    }

    /// The type of an event, and its content. The control API's description, `openapi.json`, has the raw names. Indirect, because events
    /// are passed on many times and their content is large.
    public indirect enum Kind: Sendable, Hashable {
        case peerFound(Peer)
        case peerChanged(Peer)
        case peerLost(Peer)
        case invitationReceived(Invitation)
        case invitationResolved(Invitation)
        case verificationChanged(Verification)
        /// A session was created, attached, detached or ended. The members of an ended session are listed as not connected.
        case sessionChanged(Session, ended: Bool)
        case messageReceived(Message)
        case messageStatus(MessageID, Message.Recipient)
        case resourceOffered(Resource)
        case resourceProgress(Resource)
        case resourceFinished(Resource)
        /// A stream was opened and waits to be accepted.
        case streamOpened(ByteStream)
        case streamClosed(ByteStream)
        case discoveryChanged(DiscoveryStatus)
        /// A group was created or joined, or its name, its members or their states changed.
        case groupChanged(Group)
        /// This machine is no longer in the group.
        case groupLeft(GroupID, GroupEnd)
        /// The reader missed the events of this range.
        case gap(ClosedRange<UInt64>)
    }
}
