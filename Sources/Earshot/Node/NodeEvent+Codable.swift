import EarshotWire
import FoundationEssentials

/// The encoding of an event: its number, time, type and content, with the names of the control API's description.
extension NodeEvent {
    private enum CodingKeys: String, CodingKey {
        case sequence, time, type, peer, invitation, verification, session
        case isEnded = "ended"
        case message
        case messageID = "messageId"
        case recipient, resource, stream, discovery, group
        case groupID = "groupId"
        case reason, from, to
    }

    /// The type of an event. It determines the fields that are present.
    private enum Word: String, Codable {
        case peerFound = "peer.found"
        case peerChanged = "peer.changed"
        case peerLost = "peer.lost"
        case invitationReceived = "invitation.received"
        case invitationResolved = "invitation.resolved"
        case verificationChanged = "verification.changed"
        case messageReceived = "message.received"
        case resourceOffered = "resource.offered"
        case resourceProgress = "resource.progress"
        case resourceFinished = "resource.finished"
        case streamOpened = "stream.opened"
        case streamClosed = "stream.closed"
        case discoveryChanged = "discovery.changed"
        case groupChanged = "group.changed"
        case sessionChanged = "session.changed"
        case messageStatus = "message.status"
        case groupLeft = "group.left"
        case gap
    }

    /// Decodes an event.
    /// - Throws: `DecodingError` if this version does not know the type, if the number is 0, or if another field is invalid.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let sequence = try fields.decode(UInt64.self, forKey: .sequence)
        guard sequence > 0 else { throw fields.fault(.sequence, "events are numbered from 1") }
        self.init(sequence: sequence, time: try fields.decode(Date.self, forKey: .time), kind: try Self.kind(fields))
    }

    private static func kind(_ fields: KeyedDecodingContainer<CodingKeys>) throws -> Kind {
        switch try fields.decode(Word.self, forKey: .type) {
        case .peerFound: .peerFound(try fields.decode(Peer.self, forKey: .peer))
        case .peerChanged: .peerChanged(try fields.decode(Peer.self, forKey: .peer))
        case .peerLost: .peerLost(try fields.decode(Peer.self, forKey: .peer))
        case .invitationReceived: .invitationReceived(try fields.decode(Invitation.self, forKey: .invitation))
        case .invitationResolved: .invitationResolved(try fields.decode(Invitation.self, forKey: .invitation))
        case .verificationChanged: .verificationChanged(try fields.decode(Verification.self, forKey: .verification))
        case .messageReceived: .messageReceived(try fields.decode(Message.self, forKey: .message))
        case .resourceOffered: .resourceOffered(try fields.decode(Resource.self, forKey: .resource))
        case .resourceProgress: .resourceProgress(try fields.decode(Resource.self, forKey: .resource))
        case .resourceFinished: .resourceFinished(try fields.decode(Resource.self, forKey: .resource))
        case .streamOpened: .streamOpened(try fields.decode(ByteStream.self, forKey: .stream))
        case .streamClosed: .streamClosed(try fields.decode(ByteStream.self, forKey: .stream))
        case .discoveryChanged: .discoveryChanged(try fields.decode(DiscoveryStatus.self, forKey: .discovery))
        case .groupChanged: .groupChanged(try fields.decode(Group.self, forKey: .group))
        case .sessionChanged:
            .sessionChanged(try fields.decode(Session.self, forKey: .session), ended: try fields.decode(Bool.self, forKey: .isEnded))
        case .messageStatus:
            .messageStatus(
                try fields.decode(MessageID.self, forKey: .messageID), try fields.decode(Message.Recipient.self, forKey: .recipient))
        case .groupLeft: .groupLeft(try fields.decode(GroupID.self, forKey: .groupID), try fields.decode(GroupEnd.self, forKey: .reason))
        case .gap: .gap(try Self.gap(fields))
        }
    }

    private static func gap(_ fields: KeyedDecodingContainer<CodingKeys>) throws -> ClosedRange<UInt64> {
        let (first, last) = (try fields.decode(UInt64.self, forKey: .from), try fields.decode(UInt64.self, forKey: .to))
        guard first > 0, first <= last else { throw fields.fault(.to, "a gap ends where it begins or later, from 1 on") }
        return first...last
    }

    /// Encodes the event.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(self.sequence, forKey: .sequence)
        try fields.encode(self.time, forKey: .time)
        switch self.kind {
        case .peerFound(let peer):
            try fields.encode(Word.peerFound, forKey: .type)
            try fields.encode(peer, forKey: .peer)
        case .peerChanged(let peer):
            try fields.encode(Word.peerChanged, forKey: .type)
            try fields.encode(peer, forKey: .peer)
        case .peerLost(let peer):
            try fields.encode(Word.peerLost, forKey: .type)
            try fields.encode(peer, forKey: .peer)
        case .invitationReceived(let invitation):
            try fields.encode(Word.invitationReceived, forKey: .type)
            try fields.encode(invitation, forKey: .invitation)
        case .invitationResolved(let invitation):
            try fields.encode(Word.invitationResolved, forKey: .type)
            try fields.encode(invitation, forKey: .invitation)
        case .verificationChanged(let verification):
            try fields.encode(Word.verificationChanged, forKey: .type)
            try fields.encode(verification, forKey: .verification)
        case .messageReceived(let message):
            try fields.encode(Word.messageReceived, forKey: .type)
            try fields.encode(message, forKey: .message)
        case .resourceOffered(let resource):
            try fields.encode(Word.resourceOffered, forKey: .type)
            try fields.encode(resource, forKey: .resource)
        case .resourceProgress(let resource):
            try fields.encode(Word.resourceProgress, forKey: .type)
            try fields.encode(resource, forKey: .resource)
        case .resourceFinished(let resource):
            try fields.encode(Word.resourceFinished, forKey: .type)
            try fields.encode(resource, forKey: .resource)
        case .streamOpened(let stream):
            try fields.encode(Word.streamOpened, forKey: .type)
            try fields.encode(stream, forKey: .stream)
        case .streamClosed(let stream):
            try fields.encode(Word.streamClosed, forKey: .type)
            try fields.encode(stream, forKey: .stream)
        case .discoveryChanged(let discovery):
            try fields.encode(Word.discoveryChanged, forKey: .type)
            try fields.encode(discovery, forKey: .discovery)
        case .groupChanged(let group):
            try fields.encode(Word.groupChanged, forKey: .type)
            try fields.encode(group, forKey: .group)
        case .sessionChanged(let session, let ended):
            try fields.encode(Word.sessionChanged, forKey: .type)
            try fields.encode(session, forKey: .session)
            try fields.encode(ended, forKey: .isEnded)
        case .messageStatus(let id, let recipient):
            try fields.encode(Word.messageStatus, forKey: .type)
            try fields.encode(id, forKey: .messageID)
            try fields.encode(recipient, forKey: .recipient)
        case .groupLeft(let id, let reason):
            try fields.encode(Word.groupLeft, forKey: .type)
            try fields.encode(id, forKey: .groupID)
            try fields.encode(reason, forKey: .reason)
        case .gap(let missed):
            try fields.encode(Word.gap, forKey: .type)
            try fields.encode(missed.lowerBound, forKey: .from)
            try fields.encode(missed.upperBound, forKey: .to)
        }
    }
}
