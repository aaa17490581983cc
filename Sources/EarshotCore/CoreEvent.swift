package import EarshotWire

/// What readers of events hear of peers and sessions.
package enum CoreEvent: Sendable, Equatable {
    case peerFound(Peer)
    case peerChanged(Peer)
    case peerLost(Peer)
    case invitationReceived(Invitation)
    case invitationResolved(Invitation)
    case verificationChanged(Verification)
    /// Made, attached, detached or ended; the members of an ended session are listed as not connected.
    case sessionChanged(Session, ended: Bool)
    case discoveryChanged(DiscoveryStatus)
    /// Messages were committed to the inbox.
    case messagesReceived([Message])
    /// Unreliable messages came: for those who read the events now, and no others.
    case liveMessages([Message])
    case messageStatuses([MessageStatus])
    /// One is there, and waits to be accepted.
    case streamOpened(ByteStream)
    case streamClosed(ByteStream)
    case resourceOffered(Resource)
    case resourceProgress(Resource)
    case resourceFinished(Resource)
    /// Made, joined, or changed in its name or its members; their states too.
    case groupChanged(Group)
    case groupLeft(GroupID, GroupEnd)
}
