import DequeModule
import EarshotWire

/// The unreliable messages that went out last under ids that were made here: kept for a while, for callers that ask what became of one.
///
/// They come by the hundred thousand a second and are hardly ever asked for: adding one is cheap, finding one is not.
struct SentUnreliable: Sendable {
    private var messages: Deque<OutgoingMessage> = []
    private var bytes = 0

    /// Adds one; the oldest give way, beyond `EarshotLimits.outgoingHistory` or `outgoingHistoryBytes`.
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
