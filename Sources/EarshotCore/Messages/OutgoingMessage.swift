public import EarshotWire
package import NIOCore

/// The result of sending a message, for its sender.
public struct SentMessage: Sendable, Hashable, Codable {
    /// The message's id, chosen by the caller or made by this machine.
    public let id: MessageID
    /// The status at each recipient, in the order of the call without repeats.
    public let recipients: [Message.Recipient]
}

/// The place of a message in its call, which receives the outcome.
struct MessagePlace: Sendable, Hashable {
    let call: CallID
    let index: Int
}

/// A message that this machine sends, with its delivery state.
package struct OutgoingMessage: Sendable {
    package let id: MessageID
    package let contentType: String
    /// The size of the body in bytes.
    package let size: Int
    /// The body; `nil` for a queued message, whose body is on disk.
    package let body: ByteBuffer?
    /// The digest of a queued message, whose body is not in memory for a comparison.
    let fingerprint: [UInt8]
    package let mode: Message.Mode
    package let isQueued: Bool
    package let sent: WallTime
    package let deadline: MonotonicInstant
    package private(set) var recipients: [Message.Recipient]
    /// The group of the message; `nil` for sessions of two.
    package private(set) var group: GroupID?
    /// The message to which this one replies.
    package private(set) var inReplyTo: MessageID?
    /// Whether the row of a queued message is being written. If the write fails, the disk may still have an earlier row with its id.
    private(set) var isBeingAdded = false
    /// Recipients whose final status is being written, with that status. The only change that can follow is from delivered to read.
    private(set) var settling: [PeerID: Message.Status] = [:]
    /// Recipients whose read status is being written.
    private(set) var reading: Set<PeerID> = []
    /// Recipients that confirmed the message after its deadline.
    private(set) var confirmedLate: Set<PeerID> = []
    private(set) var waiters: [MessagePlace] = []
    /// Recipients that may have the message from an earlier attempt under its id, or from an earlier run of this daemon.
    private(set) var mayHaveArrived: Set<PeerID> = []
    /// The PIN that a LocalSend device asks for.
    private(set) var pin: String?

    /// Whether every recipient's status is final. The statuses of an unreliable message are final at once.
    var isFinal: Bool { self.mode == .unreliable || self.recipients.allSatisfy(\.status.isFinal) }
    /// Whether no recipient is left to try.
    var isDone: Bool { self.mode == .unreliable || self.recipients.allSatisfy { $0.status == .delivered || $0.status == .read } }
    /// The recipients that may have the message when it is final: all except those to which it was never sent.
    var maybeReached: Set<PeerID> {
        self.mayHaveArrived.union(self.recipients.lazy.filter { $0.error != .notSent }.map(\.peerID))
    }
    var result: SentMessage { SentMessage(id: self.id, recipients: self.recipients) }
    var cost: Int { self.size + EarshotLimits.messageOverhead }

    /// Sets the status at one recipient. Returns `nil` if nothing changes, and otherwise whether the message has become final.
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

    /// Queues the message again, at the peers whose status is not final, after a restart. The disk does not record whether the earlier run
    /// sent it to a peer.
    mutating func requeue() {
        for index in self.recipients.indices
        where !self.recipients[index].status.isFinal && self.recipients[index].peerID.kind == .earshot {
            self.recipients[index].status = .queued
            self.mayHaveArrived.insert(self.recipients[index].peerID)
        }
    }

    /// Notes that the row of the message is on disk.
    mutating func added() { self.isBeingAdded = false }

    /// Notes that the final status at a recipient is being written.
    mutating func settle(_ status: Message.Status, at peer: PeerID) { self.settling[peer] = status }

    /// Notes whether the read status at a recipient is being written.
    mutating func setReading(_ isReading: Bool, at peer: PeerID) {
        if isReading { self.reading.insert(peer) } else { self.reading.remove(peer) }
    }

    /// Notes that a recipient confirmed the message after its deadline. Returns the recipient with these words.
    mutating func confirmLate(_ peer: PeerID, _ words: String) -> Message.Recipient? {
        guard let index = self.recipients.firstIndex(where: { $0.peerID == peer && $0.status == .unconfirmed }) else { return nil }
        self.confirmedLate.insert(peer)
        self.recipients[index].errorMessage = words
        return self.recipients[index]
    }

    mutating func wait(_ place: MessagePlace) { self.waiters.append(place) }

    mutating func takeWaiters() -> [MessagePlace] {
        defer { self.waiters = [] }
        return self.waiters
    }

    /// Whether the message has that status at a recipient.
    func stands(_ status: Message.Status, at peer: PeerID) -> Bool {
        self.recipients.contains { $0.peerID == peer && $0.status == status }
    }

    /// Replaces a status at one recipient, if it is the old one.
    mutating func replace(_ old: Message.Status, by new: Message.Status, at peer: PeerID) {
        guard let index = self.recipients.firstIndex(where: { $0.peerID == peer && $0.status == old }) else { return }
        self.recipients[index].status = new
    }

    /// Whether a draft is the same message for the same peers. In a group, these are the members at the time when the message was first
    /// sent.
    func isSame(_ draft: MessageDraft, peers: [PeerID], in group: GroupID?) -> Bool {
        guard self.contentType == draft.contentType, self.size == draft.body.readableBytes, self.mode == draft.mode,
            self.inReplyTo == draft.inReplyTo, self.group == group, group != nil || Set(self.recipients.map(\.peerID)) == Set(peers)
        else { return false }
        guard let own = self.body else { return !self.fingerprint.isEmpty && self.fingerprint == draft.fingerprint }
        return own == draft.body
    }
}
