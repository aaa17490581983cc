public import EarshotWire
public import FoundationEssentials

extension ControlAPI {
    /// An event: a line of `GET /v1/events`.
    public struct Event: Codable, Hashable, Sendable {
        /// The type of an event.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            case peerFound = "peer.found"
            case peerChanged = "peer.changed"
            case peerLost = "peer.lost"
            case invitationReceived = "invitation.received"
            case invitationResolved = "invitation.resolved"
            case verificationChanged = "verification.changed"
            case sessionChanged = "session.changed"
            case messageReceived = "message.received"
            case messageStatus = "message.status"
            case resourceOffered = "resource.offered"
            case resourceProgress = "resource.progress"
            case resourceFinished = "resource.finished"
            case streamOpened = "stream.opened"
            case streamClosed = "stream.closed"
            case discoveryChanged = "discovery.changed"
            case settingsReloaded = "settings.reloaded"
            case groupChanged = "group.changed"
            case groupLeft = "group.left"
            case gap
        }

        /// The run of the daemon.
        public let epoch: String
        /// The sequence number, which rises by exactly 1 within an epoch, from 1.
        public let seq: UInt64
        /// The time of the event.
        @ReadableTime public var time: Date?
        /// The type, which determines the fields that are present.
        public let type: Tolerant<Kind>
        /// With `peer.*`.
        @ReadableValue public var peer: Peer?
        /// With `invitation.*`.
        @ReadableValue public var invitation: Invitation?
        /// With `verification.changed`: the peer's id.
        @ReadableValue public var peerID: PeerID?
        /// With `verification.changed`.
        @ReadableValue public var verification: Verification?
        /// With `session.changed`.
        @ReadableValue public var session: Session?
        /// With `session.changed`: whether the session has ended.
        public let ended: Bool?
        /// With `message.received`.
        @ReadableValue public var message: Message?
        /// With `message.status`.
        @ReadableValue public var messageID: MessageID?
        /// With `message.status`.
        @ReadableValue public var recipient: Recipient?
        /// With `resource.*`: the whole row.
        @ReadableValue public var resource: Resource?
        /// With `stream.*`: the whole row.
        @ReadableValue public var stream: Stream?
        /// With `discovery.changed`.
        @ReadableValue public var discovery: Discovery?
        /// With `group.changed`.
        @ReadableValue public var group: Group?
        /// With `group.left`.
        @ReadableValue public var groupID: GroupID?
        /// With `group.left`: `left`, `removed` or `dissolved`.
        public let reason: String?
        /// With `settings.reloaded`: the settings with a new value, such as `peer.name`.
        public let changed: [String]?
        /// With `settings.reloaded`: the changed settings that take effect only after a restart.
        public let needsRestart: [String]?
        /// With `gap`: the first event that this reader missed.
        public let from: UInt64?
        /// With `gap`: the last missed event.
        public let to: UInt64?

        /// Creates a value from its parts.
        public init(
            epoch: String, seq: UInt64, time: Date?, type: Tolerant<Kind>, peer: Peer? = nil, invitation: Invitation? = nil,
            peerID: PeerID? = nil, verification: Verification? = nil, session: Session? = nil, ended: Bool? = nil, message: Message? = nil,
            messageID: MessageID? = nil, recipient: Recipient? = nil, resource: Resource? = nil, stream: Stream? = nil,
            discovery: Discovery? = nil, group: Group? = nil, groupID: GroupID? = nil, reason: String? = nil, changed: [String]? = nil,
            needsRestart: [String]? = nil, from: UInt64? = nil, to: UInt64? = nil
        ) {
            self.epoch = epoch
            self.seq = seq
            self._time = ReadableTime(time)
            self.type = type
            self._peer = ReadableValue(peer)
            self._invitation = ReadableValue(invitation)
            self._peerID = ReadableValue(peerID)
            self._verification = ReadableValue(verification)
            self._session = ReadableValue(session)
            self.ended = ended
            self._message = ReadableValue(message)
            self._messageID = ReadableValue(messageID)
            self._recipient = ReadableValue(recipient)
            self._resource = ReadableValue(resource)
            self._stream = ReadableValue(stream)
            self._discovery = ReadableValue(discovery)
            self._group = ReadableValue(group)
            self._groupID = ReadableValue(groupID)
            self.reason = reason
            self.changed = changed
            self.needsRestart = needsRestart
            self.from = from
            self.to = to
        }

        private enum CodingKeys: String, CodingKey {
            case epoch, seq, time, type, peer, invitation
            case peerID = "peer_id"
            case verification, session, ended, message
            case messageID = "message_id"
            case recipient, resource, stream, discovery, group
            case groupID = "id"
            case reason, changed
            case needsRestart = "needs_restart"
            case from, to
        }

        /// The placeholder for an unreadable event: without a known type or position.
        static let unreadable = Event(epoch: "", seq: 0, time: nil, type: .unknown("unreadable"))
    }
}
