package import EarshotWire
package import OrderedCollections

/// The id of a call while its caller waits: a counter.
package struct CallID: Sendable, Hashable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }
}

/// A request of a user or a program to this machine's node. Each command is answered once (``Effect/answer(_:_:)``). A command that fails
/// has changed nothing. Peers are named as users name them (``PeerNaming``).
package enum Command: Sendable, Hashable {
    /// Asks a peer to join a session, and dials it until the timeout. If `timeout` is `nil` or not above zero, the settings' timeout
    /// applies. Answered with the invitation: the pending one, or an accepted one if the session exists already.
    case invite(String, context: [UInt8], timeout: Duration?)
    /// Withdraws an invitation by this machine.
    case withdraw(InvitationID)
    /// Answers an incoming invitation on behalf of a user; `always` trusts the peer from now on.
    case respond(InvitationID, Invitation.Decision, always: Bool)
    /// Answered when the invitation is decided.
    case awaitInvitation(InvitationID)
    /// Applies a user's decision about a peer. Trust expires at `until`. Answered with the peer.
    case setTrust(Trust, String, until: WallTime?)
    /// Gives a peer an alias, which goes before its own name; `nil` removes the alias. Answered with the peer.
    case setAlias(DisplayName?, String)
    /// Sends messages in their order. Answered when the outcome of each is known. `room` gives the number of bytes of unreliable messages
    /// that each connection accepts now.
    case send([MessageDraft], room: OrderedDictionary<LinkID, Int>)
    /// Cancels a message that waits in the outbox. Answered like `send`.
    case cancelQueued(MessageID)
    /// Ends a session for both sides.
    case leave(SessionID)
    /// Starts a comparison of digits with a peer. Answered with its state.
    case verify(String, timeout: Duration?)
    /// Cancels a comparison, or reports that the digits differ.
    case endVerification(String, mismatch: Bool)
    /// A request about streams.
    case stream(StreamRequest)
    /// A request about resources.
    case resource(ResourceRequest)
    /// A request about groups.
    case group(GroupRequest)
    /// A request of a LocalSend device.
    case device(DeviceCommand)
}

/// The result of a `Command`.
package enum Answer: Sendable, Equatable {
    case done
    /// The outcomes of messages, in their order.
    case sent([MessageOutcome])
    case invitation(Invitation)
    case peer(Peer)
    case verification(Verification)
    case stream(ByteStream)
    case resource(Resource)
    case resources([Resource])
    case group(Group)
    case invitations([Invitation])
    /// The answer to a device's accepted offer.
    case deviceOffer(DeviceOfferAnswer)
    /// The refusal of a device's request.
    case deviceRefusal(DeviceRefusal)
    case failure(EarshotError)
}
