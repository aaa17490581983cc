public import EarshotWire
package import NIOCore

/// What became of a message, for its sender.
public struct SentMessage: Sendable, Hashable, Codable {
    /// The message's id: the caller's, or one that was made.
    public let id: MessageID
    /// What became of it at each, in the order of the call without repeats.
    public let recipients: [Message.Recipient]
}

/// One message of a call that sends some: where its outcome is told.
struct MessagePlace: Sendable, Hashable {
    let call: CallID
    let index: Int
}

/// A message of this machine's with what hangs on it.
package struct OutgoingMessage: Sendable {
    package let id: MessageID
    package let contentType: String
    /// Of the body, in bytes.
    package let size: Int
    /// `nil` for a queued one: it is on disk.
    package let body: ByteBuffer?
    /// Of a queued one, whose body is not at hand to be compared.
    let fingerprint: [UInt8]
    package let mode: Message.Mode
    package let isQueued: Bool
    package let sent: WallTime
    package let deadline: MonotonicInstant
    package var recipients: [Message.Recipient]
    /// The group that it is for; `nil` for sessions of two.
    package var group: GroupID?
    /// Whether a queued one's row is on its way to the disk: where it does not get there, an earlier one under its id is there yet.
    var isBeingAdded = false
    /// Those whose outcome is on its way to the disk, and which: nothing else can become of it there, but that what was delivered is read.
    var settling: [PeerID: Message.Status] = [:]
    /// Those that have read it, which is on its way to the disk.
    var reading: Set<PeerID> = []
    /// Those that have said too late that they have it.
    var confirmedLate: Set<PeerID> = []
    var waiters: [MessagePlace] = []
    /// Recipients that may have it from an earlier attempt under its id, or from before this daemon started.
    var mayHaveArrived: Set<PeerID> = []

    /// Whether every recipient's status is decided; an unreliable message's are at once.
    var isFinal: Bool { self.mode == .unreliable || self.recipients.allSatisfy(\.status.isFinal) }
    /// Whether nothing is left to try.
    var isDone: Bool { self.mode == .unreliable || self.recipients.allSatisfy { $0.status == .delivered || $0.status == .read } }
    /// Recipients that may have it, once it is final: all but those to which nothing of it was sent.
    var maybeReached: Set<PeerID> {
        self.mayHaveArrived.union(self.recipients.lazy.filter { $0.error != .notSent }.map(\.peerID))
    }
    var result: SentMessage { SentMessage(id: self.id, recipients: self.recipients) }
    var cost: Int { self.size + EarshotLimits.messageOverhead }

    /// Takes what became of it at one recipient; `nil` where that changes nothing, and otherwise whether it has become final by it.
    mutating func decide(_ recipient: Message.Recipient) -> Bool? {
        guard
            let index = self.recipients.firstIndex(where: {
                $0.peerID == recipient.peerID && (!$0.status.isFinal || ($0.status == .delivered && recipient.status == .read))
            })
        else { return nil }
        let wasFinal = self.isFinal
        self.recipients[index] = recipient
        self.settling[recipient.peerID] = nil
        return !wasFinal && self.isFinal
    }

    /// Whether it waits at that recipient in this status.
    func stands(_ status: Message.Status, at peer: PeerID) -> Bool {
        self.recipients.contains { $0.peerID == peer && $0.status == status }
    }

    /// Sets the status at one recipient where it has been another until now.
    mutating func replace(_ old: Message.Status, by new: Message.Status, at peer: PeerID) {
        guard let index = self.recipients.firstIndex(where: { $0.peerID == peer && $0.status == old }) else { return }
        self.recipients[index].status = new
    }

    /// Whether it is that very message, for those peers: in a group, for those that were in it when it was first sent.
    func isSame(_ draft: MessageDraft, peers: [PeerID], in group: GroupID?) -> Bool {
        guard self.contentType == draft.contentType, self.size == draft.body.readableBytes, self.mode == draft.mode,
            self.group == group, group != nil || Set(self.recipients.map(\.peerID)) == Set(peers)
        else { return false }
        guard let own = self.body else { return !self.fingerprint.isEmpty && self.fingerprint == draft.fingerprint }
        return own == draft.body
    }
}
