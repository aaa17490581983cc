package import EarshotWire
package import OrderedCollections

/// Names a call for as long as its caller waits: a counter.
package struct CallID: Sendable, Hashable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }
}

/// What a person or a program asks of this machine's peer. Each is answered once (``Effect/answer(_:_:)``); one that fails has changed
/// nothing. Peers are named as people name them (``PeerNaming``).
package enum Command: Sendable, Hashable {
    /// Ask a peer to join a session, and go on dialling until the timeout, the settings' where it is `nil` or not above zero. Answers the
    /// invitation: the pending one, or an accepted one where the session is there already.
    case invite(String, context: [UInt8], timeout: Duration?)
    /// Take an invitation of this machine's back.
    case withdraw(InvitationID)
    /// A person's answer to an incoming invitation; `always` trusts the peer from now on.
    case respond(InvitationID, Invitation.Decision, always: Bool)
    /// Answered once the invitation is decided.
    case awaitInvitation(InvitationID)
    /// A person's decision about a peer; trust ends by itself at `until`. Answers the peer.
    case setTrust(Trust, String, until: WallTime?)
    /// Send messages, in their order. Answered once what becomes of each is known; `room` is how many bytes of unreliable messages each
    /// connection takes now.
    case send([MessageDraft], room: OrderedDictionary<LinkID, Int>)
    /// Take back a message that waits in the outbox. Answered as `send` is.
    case cancelQueued(MessageID)
    /// End a session for both sides.
    case leave(SessionID)
    /// Compare digits with a peer. Answers how that stands.
    case verify(String, timeout: Duration?)
    /// Give a comparison up, or say that the digits differ.
    case endVerification(String, mismatch: Bool)
    /// Something about streams.
    case stream(StreamRequest)
    /// Something about resources.
    case resource(ResourceRequest)
    /// Something about groups.
    case group(GroupRequest)
}

/// What has become of a ``Command``.
package enum Answer: Sendable, Equatable {
    case done
    /// What became of each message, in their order.
    case sent([MessageOutcome])
    case invitation(Invitation)
    case peer(Peer)
    case verification(Verification)
    case stream(ByteStream)
    case resource(Resource)
    case resources([Resource])
    case group(Group)
    case invitations([Invitation])
    case failure(EarshotError)
}
