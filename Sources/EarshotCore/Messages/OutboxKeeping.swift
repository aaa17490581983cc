import EarshotWire
import NIOCore

/// Names a change of the outbox on disk for as long as it is under way: a counter.
package struct KeepID: Sendable, Hashable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }
}

/// What happens once a change of the outbox is on disk, or is not to be.
enum AfterKeeping: Sendable {
    case nothing
    /// A message is queued, and waits from now on for its recipients.
    case queued(MessageID, ByteBuffer, MessagePlace)
    /// What became of a message at one recipient is known.
    case settled(MessageID, Message.Recipient)
    /// The same, where the disk has refused that before.
    case settledAgain([Unsettled])
    /// It was read there, and the peer is told that this is known.
    case read(MessageID, PeerID)
    /// A message that was sent before, and may have been on its way to the disk, is looked for once more.
    case again(MessageID, MessageDraft, MessagePlace)
    /// Senders have taken note.
    case noted
}

/// A recipient of a queued message.
struct Unsettled: Sendable, Hashable {
    let id: MessageID
    let peer: PeerID
}

/// Changes of the outbox that are under way: their outcomes come in their order, several together.
struct OutboxKeeping: Sendable {
    private var pending: [KeepID: AfterKeeping] = [:]
    private var total: UInt64 = 0

    var count: Int { self.pending.count }

    mutating func begin(_ then: AfterKeeping) -> KeepID {
        self.total += 1
        let id = KeepID(number: self.total)
        self.pending[id] = then
        return id
    }

    mutating func end(_ id: KeepID) -> AfterKeeping? { self.pending.removeValue(forKey: id) }
}
