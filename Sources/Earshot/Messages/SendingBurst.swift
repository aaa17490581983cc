import EarshotWire
import FoundationEssentials
import NIOCore

/// Messages that are sent together, on their way to their peers: what is known of the peers is looked up once, and what each is to get is
/// gathered.
///
/// A copy of what is known of a peer that is held while its outbox is changed would cost a copy of the outbox for every message; hence the
/// few facts.
struct SendingBurst {
    /// What counts of one peer that messages of the burst are for.
    struct Recipient {
        let peer: PeerID
        let name: String
        let session: SessionID?
        /// Where messages go out now; `nil` where the session is not attached.
        let connection: Connection?
        let isTrusted: Bool

        init(_ peer: PeerID, _ facts: PeerFacts?, link: (LinkID) -> Connection?) {
            self.peer = peer
            self.name = facts?.name ?? peer.description
            self.session = facts?.session
            self.connection = facts?.isAttached == true ? facts?.link.flatMap(link) : nil
            self.isTrusted = facts?.trust == .trusted
        }
    }

    /// What one recipient is to get. Apart from the recipient itself: a copy of that which is held must not have this copied when it grows.
    struct Pending {
        var entries: [Outbox.Entry] = []
        var unreliable: [Frame] = []
        var unreliableCost = 0
        /// Small unreliable messages, as they go out; and what those of the last content type have in common.
        var encoded = ByteBuffer()
        var encodedCost = 0
        var template: MessageTemplate?

        /// Adds a small unreliable message to those that go out as they are; `false` without a template.
        mutating func encode(_ id: MessageID, _ body: ByteBuffer, cost: Int) -> Bool {
            guard let template = self.template else { return false }
            template.encode(id, body, into: &self.encoded)
            self.encodedCost += cost
            return true
        }
    }

    /// One time for all of them.
    let now: Date
    let instant: MonotonicInstant
    let milliseconds: Int64
    private(set) var all: [Recipient] = []
    /// Of the recipient of the same index.
    var pending: [Pending] = []
    /// The recipients that were given last, and where they are.
    private(set) var recipients: Message.Recipients?
    private(set) var current: Range<Int> = 0..<0
    /// As they stand in a message that has not gone out yet.
    private(set) var queued: [Message.Recipient] = []
    /// The same of an unreliable one that has gone out to all.
    private(set) var sent: [Message.Recipient] = []
    /// A content type that was found in order.
    var checkedType: String?

    init(at instant: MonotonicInstant) {
        self.now = Date()
        self.instant = instant
        self.milliseconds = Node.milliseconds(self.now)
    }

    var peers: [PeerID] { self.all[self.current].map(\.peer) }
    var needsInvitation: Bool { self.all[self.current].contains { $0.session == nil } }

    /// The messages that follow are for these.
    mutating func use(_ recipients: Message.Recipients?, _ new: [Recipient]) {
        self.recipients = recipients
        self.current = self.all.count..<(self.all.count + new.count)
        self.all += new
        self.pending += Array(repeating: Pending(), count: new.count)
        self.queued = new.map { Message.Recipient(peerID: $0.peer, status: .queued) }
        self.sent = new.map { Message.Recipient(peerID: $0.peer, status: .sent) }
    }
}
