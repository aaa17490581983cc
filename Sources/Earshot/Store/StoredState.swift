package import EarshotWire
package import FoundationEssentials
package import NIOCore

/// What the node takes up again when it starts; messages stay on disk.
package struct StoredState: Sendable, Hashable {
    package var peers: [StoredPeer]
    package var sessions: [StoredSession]
    /// Oldest first.
    package var resources: [Resource]
    /// Of resources that are not over, or of whose end the other side is to be told.
    package var transfers: [StoredTransfer]
    /// Of resources whose rows are gone; oldest first.
    package var endedTransfers: [EndedTransfer] = []
}

/// One change of what is kept; those given together are committed together.
package enum StoreChange: Sendable, Hashable {
    case putPeer(StoredPeer)
    case removePeer(PeerID)
    /// In the place of any other with its peer. Fails where another peer has one of that id.
    case putSession(StoredSession)
    /// Whatever session there is with that peer, and the peer too where no decision was made about it.
    case removeSession(with: PeerID)
    case putResource(Resource)
    /// With its transfer.
    case removeResource(ResourceID)
    /// Of a resource that was put before.
    case putTransfer(StoredTransfer)
    case removeTransfer(ResourceID)
    case putEndedTransfer(EndedTransfer)
}

/// A reliable message on its way into the inbox.
package struct InboxMessage: Sendable, Hashable, Identifiable {
    package let id: MessageID
    package let senderID: PeerID
    package let senderName: String
    package let contentType: String
    package let body: ByteBuffer
    package let sentAt: Date
    /// Whether its sender knows of every refusal before it, so that it may be taken though an earlier one was not.
    package let isResumed: Bool
    /// Whether one before it was refused without the store, which may not be overtaken.
    package let followsRefusal: Bool

    package init(
        id: MessageID, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, sentAt: Date, isResumed: Bool = true,
        followsRefusal: Bool = false
    ) {
        self.id = id
        self.senderID = senderID
        self.senderName = senderName
        self.contentType = contentType
        self.body = body
        self.sentAt = sentAt
        self.isResumed = isResumed
        self.followsRefusal = followsRefusal
    }
}

/// What became of a message that was to be delivered.
package enum DeliveryOutcome: Sendable, Hashable {
    /// Committed to disk: acknowledge it.
    case stored(Message)
    /// It is, or was, here already: acknowledge it again, report nothing.
    case duplicate
    /// Not kept: say why.
    case refused(Refusal)

    /// Why a message was not kept.
    package enum Refusal: Sendable, Hashable {
        /// The inbox, or its sender's part of it, is full.
        case inboxFull
        /// It could not be written.
        case storage
    }
}
