import DequeModule
import EarshotWire

/// The last unreliable messages whose ids were made here, kept for a while for callers that ask for their outcome.
///
/// Such messages come by the hundred thousand a second, and callers hardly ever ask for one. Adding a message is therefore cheap, and
/// finding one is not.
struct SentUnreliable: Sendable {
    private var messages: Deque<OutgoingMessage> = []
    private var bytes = 0

    /// Adds a message. Beyond `EarshotLimits.outgoingHistory` or `outgoingHistoryBytes`, the oldest messages are evicted.
    mutating func append(_ message: OutgoingMessage) {
        self.messages.append(message)
        self.bytes += message.cost
        while self.messages.count > EarshotLimits.outgoingHistory || self.bytes > EarshotLimits.outgoingHistoryBytes,
            self.messages.count > 1, let oldest = self.messages.popFirst()
        {
            self.bytes -= oldest.cost
        }
    }

    subscript(_ id: MessageID) -> OutgoingMessage? {
        self.messages.last { $0.id == id }
    }
}
