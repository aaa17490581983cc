package import EarshotWire

/// An event about peers and sessions, for event readers.
package enum CoreEvent: Sendable, Equatable {
    case peerFound(Peer)
    case peerChanged(Peer)
    case peerLost(Peer)
    case invitationReceived(Invitation)
    case invitationResolved(Invitation)
    case verificationChanged(Verification)
    /// The session was made, attached, detached or ended. The members of an ended session are listed as not connected.
    case sessionChanged(Session, ended: Bool)
    case discoveryChanged(DiscoveryStatus)
    /// Messages were committed to the inbox.
    case messagesReceived([Message])
    /// Unreliable messages came. Only the present event readers get them.
    case liveMessages([Message])
    case messageStatuses([MessageStatus])
    /// A peer has opened a stream, which waits to be accepted.
    case streamOpened(ByteStream)
    case streamClosed(ByteStream)
    case resourceOffered(Resource)
    case resourceProgress(Resource)
    case resourceFinished(Resource)
    /// A group was made or joined, or its name, its members or their states changed.
    case groupChanged(Group)
    case groupLeft(GroupID, GroupEnd)
}
