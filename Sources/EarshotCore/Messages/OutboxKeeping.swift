import EarshotWire
import NIOCore
import OrderedCollections

/// The id of a pending change of the outbox on disk: a counter.
package struct KeepID: Sendable, Hashable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }
}

/// The step that follows when a change of the outbox was written or has failed.
enum AfterKeeping: Sendable {
    case nothing
    /// A message was queued, and waits for its recipients from now on.
    case queued(MessageID, ByteBuffer, MessagePlace)
    /// A status at one recipient was written.
    case settled(MessageID, Message.Recipient)
    /// Statuses were written that the disk had refused before.
    case settledAgain([Unsettled])
    /// A read status was written, and the peer can be told so.
    case read(MessageID, PeerID)
    /// A message with the same id was sent before, and may have been in flight to the disk: it is looked up once more.
    case again(MessageID, MessageDraft, MessagePlace)
    /// The notes of senders that know of a reading were written.
    case noted
}

/// A recipient of a queued message whose status could not be written.
struct Unsettled: Sendable, Hashable {
    let id: MessageID
    let peer: PeerID
}

/// The pending changes of the outbox. Their outcomes come in their order, several together.
struct OutboxKeeping: Sendable {
    private var pending: [KeepID: AfterKeeping] = [:]
    private var total: UInt64 = 0
    /// The recipients of queued messages whose final status the disk has refused.
    private var unsettled: OrderedSet<Unsettled> = []

    var count: Int { self.pending.count }
    var unsettledCount: Int { self.unsettled.count }

    mutating func begin(_ then: AfterKeeping) -> KeepID {
        self.total += 1
        let id = KeepID(number: self.total)
        self.pending[id] = then
        return id
    }

    func isUnsettled(_ one: Unsettled) -> Bool { self.unsettled.contains(one) }

    /// Notes a status that the disk has refused. Returns whether it is the only one.
    mutating func refused(_ one: Unsettled) -> Bool { self.unsettled.append(one).inserted && self.unsettled.count == 1 }

    /// Returns the refused statuses, which are written again.
    mutating func takeUnsettled() -> OrderedSet<Unsettled> {
        defer { self.unsettled = [] }
        return self.unsettled
    }

    mutating func end(_ id: KeepID) -> AfterKeeping? { self.pending.removeValue(forKey: id) }
}
