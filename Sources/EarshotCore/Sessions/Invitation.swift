public import EarshotWire

/// The direction of a transfer or an invitation, as seen from this machine.
public enum Direction: String, Sendable, Hashable, Codable, CaseIterable {
    case incoming
    case outgoing
}

/// One peer's request to another to join a session.
public struct Invitation: Sendable, Hashable, Codable, Identifiable {
    /// The state of an invitation.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        case pending, accepted, declined
        case timedOut = "timed_out"
        case cancelled, failed
    }

    /// A user's or a policy's answer.
    public enum Decision: String, Sendable, Hashable, Codable, CaseIterable {
        case accept, reject, block
    }

    /// Chosen by the inviter's node.
    public let id: InvitationID
    /// Whether it was received or sent.
    public let direction: Direction
    /// The peer at the other side; its key is proven if the invitation is incoming.
    /// A LocalSend sender without a certificate has no id: it is ``PeerID/unprovenDevice``.
    public let peerID: PeerID
    /// The peer's display name at the time: a label.
    public let peerName: String
    /// Opaque bytes of the inviter, at most 8 KiB.
    public let context: [UInt8]
    /// The state of the invitation.
    public internal(set) var state: State
    /// The error for `failed`; may be set for other final states.
    public internal(set) var error: EarshotError.Code?
    /// The error as text.
    public internal(set) var errorMessage: String?
    /// When it was created or received.
    package let created: WallTime
    /// When it times out.
    package let end: WallTime
    /// The session that began with its acceptance.
    public internal(set) var sessionID: SessionID?
    /// The group that it invites to; `nil` for a session of two.
    public let group: InvitedGroup?
    /// The files that a LocalSend device offers; `nil` for an invitation to a session or a group. A decided invitation lists the first
    /// ones only.
    public internal(set) var offer: [OfferedFile]?

    package init(
        id: InvitationID, direction: Direction, peerID: PeerID, peerName: String, context: [UInt8], state: State, created: WallTime,
        end: WallTime, sessionID: SessionID? = nil, group: InvitedGroup? = nil,
        offer: [OfferedFile]? = nil
    ) {
        self.offer = offer
        self.group = group
        self.id = id
        self.direction = direction
        self.peerID = peerID
        self.peerName = peerName
        self.context = context
        self.state = state
        self.created = created
        self.end = end
        self.sessionID = sessionID
    }
}

extension Invitation {
    private enum CodingKeys: String, CodingKey {
        case id, direction
        case peerID = "peerId"
        case peerName, context, state, error, errorMessage
        case created = "createdAt"
        case end = "expiresAt"
        case sessionID = "sessionId"
        case group, offer
    }

    /// Decodes an invitation.
    /// - Throws: `DecodingError` if the context is longer than 8 KiB, or any other field is invalid.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.id = try fields.decode(InvitationID.self, forKey: .id)
        self.direction = try fields.decode(Direction.self, forKey: .direction)
        self.peerID = try fields.decode(PeerID.self, forKey: .peerID)
        self.peerName = try fields.decode(String.self, forKey: .peerName)
        self.context = try fields.decode([UInt8].self, forKey: .context)
        self.state = try fields.decode(State.self, forKey: .state)
        self.error = try fields.decodeIfPresent(EarshotError.Code.self, forKey: .error)
        self.errorMessage = try fields.decodeIfPresent(String.self, forKey: .errorMessage)
        self.created = try fields.decode(WallTime.self, forKey: .created)
        self.end = try fields.decode(WallTime.self, forKey: .end)
        self.sessionID = try fields.decodeIfPresent(SessionID.self, forKey: .sessionID)
        self.group = try fields.decodeIfPresent(InvitedGroup.self, forKey: .group)
        self.offer = try fields.decodeIfPresent([OfferedFile].self, forKey: .offer)
        guard self.context.count <= WireLimits.invitationContext else {
            throw fields.fault(.context, "the context of an invitation has at most \(WireLimits.invitationContext) bytes")
        }
    }
}
