public import EarshotWire
import OrderedCollections

/// A message that waits on this machine's disk for absent peers, without its body.
public struct OutboxMessage: Sendable, Hashable, Codable, Identifiable {
    /// The message's id, chosen by the caller or made by this machine.
    public let id: MessageID
    /// The content type that the sender gave.
    public let contentType: String
    /// The body's size in bytes.
    public let size: Int
    /// The status at each recipient, in the order of the call. Recipients that have the message are included.
    public let recipients: [Message.Recipient]
    /// The group of the message; `nil` for sessions of two.
    public let group: GroupLabel?
    /// The message to which this one replies; `nil` if it is no reply.
    public let inReplyTo: MessageID?
    /// The time at which the message was queued.
    package let sent: WallTime
    /// The time at which the message expires.
    package let end: WallTime

    package init(
        id: MessageID, contentType: String, size: Int, recipients: [Message.Recipient], group: GroupLabel?,
        inReplyTo: MessageID? = nil, sent: WallTime, end: WallTime
    ) {
        self.id = id
        self.contentType = contentType
        self.size = size
        self.recipients = recipients
        self.group = group
        self.inReplyTo = inReplyTo
        self.sent = sent
        self.end = end
    }

    private enum CodingKeys: String, CodingKey {
        case id, contentType, size, recipients, group, inReplyTo
        case sent = "sentAt"
        case end = "expiresAt"
    }
}

extension NodeCore {
    /// The messages that wait in the outbox on disk, oldest first.
    package var outbox: [OutboxMessage] {
        let waiting = self.outgoing.all.filter { $0.isQueued && !$0.isFinal }
        return waiting.sorted { ($0.sent, $0.id.high, $0.id.low) < ($1.sent, $1.id.high, $1.id.low) }.map { message in
            OutboxMessage(
                id: message.id, contentType: message.contentType, size: message.size, recipients: message.recipients,
                group: message.group.map { self.label(of: $0) }, inReplyTo: message.inReplyTo, sent: message.sent,
                end: self.now.wall + (message.deadline - self.now.monotonic))
        }
    }

    /// The number of messages that wait in the outbox on disk.
    package var waitingMessages: Int { self.outgoing.queue.count }

    /// Cancels a queued message for all recipients that have not received it. The call is answered when the change is on disk.
    mutating func cancelQueued(_ id: MessageID, _ call: CallID) {
        do throws(EarshotError) {
            guard !self.isStopping else { throw .stopping }
            guard let message = self.outgoing[id], message.isQueued else {
                throw EarshotError(.notFound, "there is no message \(id) in the outbox")
            }
            guard !message.isFinal else { throw EarshotError(.conflict, "the message \(id) does not wait any more") }
            guard !message.isBeingAdded else { throw EarshotError(.busy, "the message \(id) is being written; try again") }
            self.batches.begin(call, count: 1)
            self.outgoing.update(id) { $0.wait(MessagePlace(call: call, index: 0)) }
            for recipient in message.recipients where !recipient.status.isFinal { self.takeBack(message, from: recipient) }
        } catch {
            self.answer(call, .failure(error))
        }
    }

    private mutating func takeBack(_ message: OutgoingMessage, from recipient: Message.Recipient) {
        let conversation = Conversation(with: recipient.peerID, in: message.group)
        let isToDevice = recipient.peerID.kind == .localsend
        let isUnderWay = isToDevice && self.cargoDone(.message(message.id), of: recipient.peerID)
        let mayHaveArrived =
            isUnderWay || self.traffic[conversation]?.outbox.mayHaveArrived(message.id) ?? message.mayHaveArrived.contains(recipient.peerID)
        _ = self.traffic[conversation]?.outbox.remove(message.id)
        let name = isToDevice ? self.shown(recipient.peerID).name : self.facts(of: recipient.peerID)?.name ?? "the peer"
        if mayHaveArrived {
            let words = "cancelled after it was sent; \(name) may or may not have it"
            self.settle(message.id, recipient.peerID, .unconfirmed, EarshotError(.unconfirmed, words))
        } else {
            self.settle(message.id, recipient.peerID, .failed, EarshotError(.cancelled, "cancelled before it was sent to \(name)"))
        }
        self.scheduleFlush(conversation)
    }
}
