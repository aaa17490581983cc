public import EarshotWire
import FoundationEssentials
import NIOCore

/// What became of a message, for its sender.
public struct SentMessage: Sendable {
    /// The message's id: the caller's, or one that was made.
    public let id: MessageID
    /// What became of it at each, in the order of the call without repeats.
    public let recipients: [Message.Recipient]
}

/// A message of ours with what hangs on it.
struct OutgoingMessage {
    let id: MessageID
    let contentType: String
    /// Of the body, in bytes.
    let size: Int
    /// `nil` for a queued one: it is on disk.
    let body: ByteBuffer?
    /// Of a queued one, whose body is not at hand to be compared.
    let fingerprint: [UInt8]
    let mode: Message.Mode
    let isQueued: Bool
    let sentAt: Date
    let deadline: MonotonicInstant
    var recipients: [Message.Recipient]
    /// Those whose outcome is on its way to the disk: nothing else can become of it there.
    var settling: Set<PeerID> = []
    /// Those that have read it, which is on its way to the disk.
    var reading: Set<PeerID> = []
    /// Those that have said too late that they have it.
    var confirmedLate: Set<PeerID> = []
    var waiters: [MessageBatch.Place] = []

    /// Whether every recipient's status is decided; an unreliable message's are at once.
    var isFinal: Bool { self.mode == .unreliable || self.recipients.allSatisfy(\.status.isFinal) }
    /// Whether nothing is left to try.
    var isDone: Bool { self.mode == .unreliable || self.recipients.allSatisfy { $0.status == .delivered || $0.status == .read } }
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
        self.settling.remove(recipient.peerID)
        return !wasFinal && self.isFinal
    }

    /// Whether it is that very message.
    func isSame(contentType: String, body: ByteBuffer, mode: Message.Mode, peers: [PeerID]) throws(EarshotError) -> Bool {
        guard self.contentType == contentType, self.size == body.readableBytes, self.mode == mode,
            Set(self.recipients.map(\.peerID)) == Set(peers)
        else { return false }
        guard let own = self.body else { return self.fingerprint == (try Self.fingerprint(contentType, body)) }
        return own == body
    }

    /// Tells two messages of one sender apart without their bodies.
    static func fingerprint(_ contentType: String, _ body: ByteBuffer) throws(EarshotError) -> [UInt8] {
        let hash = try XXH3()
        hash.update(ByteBuffer(string: contentType + "\n"))
        hash.update(body)
        return hash.digest()
    }
}

extension Message.Status {
    /// Whether nothing but a later `read` can change that of a reliable message.
    var isFinal: Bool {
        switch self {
        case .queued, .sent: false
        case .delivered, .read, .unconfirmed, .failed: true
        }
    }
}
