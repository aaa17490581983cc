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
    let body: ByteBuffer
    let sentAt: Date
    let deadline: ContinuousClock.Instant
    var recipients: [Message.Recipient]
    var waiters: [CheckedContinuation<SentMessage, Never>] = []

    var isFinal: Bool { self.recipients.allSatisfy(\.status.isFinal) }
    var result: SentMessage { SentMessage(id: self.id, recipients: self.recipients) }
    var cost: Int { self.body.readableBytes + EarshotLimits.messageOverhead }
}

extension Message.Status {
    /// Whether nothing but a later `read` can change it.
    var isFinal: Bool {
        switch self {
        case .queued, .sent: false
        case .delivered, .read, .unconfirmed, .failed: true
        }
    }
}
