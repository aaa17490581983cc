package import EarshotWire
package import NIOCore
import OrderedCollections

/// Messages that are sent together, on their way to their peers: what is known of the peers is looked up once, and what each is to get is
/// gathered.
struct SendingBurst {
    /// What counts of one peer that messages of the burst are for.
    struct Recipient {
        let conversation: Conversation
        let name: String
        let session: SessionID?
        /// Where messages go out now; `nil` where the session is not attached.
        let link: LinkID?
        let isTrusted: Bool

        init(_ peer: PeerID, _ facts: PeerFacts?) {
            self.conversation = Conversation(with: peer)
            self.name = facts?.name ?? peer.description
            self.session = facts?.session
            self.link = facts?.isAttached == true ? facts?.link : nil
            self.isTrusted = facts?.trust == .trusted
        }

        /// A member of a group, whose messages go out where it is attached.
        init(_ conversation: Conversation, _ carrier: ConversationCarrier?, _ name: String?) {
            self.conversation = conversation
            self.name = name ?? conversation.peer.description
            self.session = conversation.group?.session
            self.link = carrier?.link
            self.isTrusted = true
        }

        var peer: PeerID { self.conversation.peer }
    }

    /// What one recipient is to get. Apart from the recipient itself: a copy of that which is held must not have this copied when it grows.
    struct Pending {
        var entries: [Outbox.Entry] = []
        var unreliable = UnreliableMessages()
        /// What small unreliable messages of the last content type have in common.
        var template: MessageTemplate?

        /// Adds a small unreliable message to those that go out as they are; `false` without a template.
        mutating func encode(_ id: MessageID, _ body: ByteBuffer, cost: Int) -> Bool {
            guard let template = self.template else { return false }
            template.encode(id, body, into: &self.unreliable.encoded)
            self.unreliable.cost += cost
            return true
        }
    }

    /// One time for all of them.
    let now: Now
    private(set) var all: [Recipient] = []
    /// Of the recipient of the same index.
    var pending: [Pending] = []
    /// The recipients that were given last, and where they are.
    private(set) var recipients: Message.Recipients?
    private(set) var group: GroupID?
    private(set) var current: Range<Int> = 0..<0
    /// As they stand in a message that has not gone out yet.
    private(set) var queued: [Message.Recipient] = []
    /// The same of an unreliable one that has gone out to all.
    private(set) var sent: [Message.Recipient] = []
    /// Recipients that may have the message that is being added from an earlier attempt under its id.
    var mayHaveArrived: Set<PeerID> = []
    /// A content type that was found in order.
    var checkedType: String?
    /// How many bytes of unreliable messages each control connection takes now.
    private var room: OrderedDictionary<LinkID, Int>
    /// Where the connection stands there that was looked for last: mostly it is the next message's, too.
    private var lastRoom: (link: LinkID, index: Int)?

    init(at now: Now, room: OrderedDictionary<LinkID, Int> = [:]) {
        self.now = now
        self.room = room
    }

    var addressed: [PeerID] { self.all[self.current].map(\.peer) }
    var needsInvitation: Bool { self.all[self.current].contains { $0.session == nil } }

    /// The messages that follow are for these.
    mutating func use(_ recipients: Message.Recipients?, _ new: [Recipient], in group: GroupID? = nil) {
        self.recipients = recipients
        self.group = group
        self.current = self.all.count..<(self.all.count + new.count)
        self.all += new
        self.pending += Array(repeating: Pending(), count: new.count)
        self.queued = new.map { Message.Recipient(peerID: $0.peer, status: .queued) }
        self.sent = new.map { Message.Recipient(peerID: $0.peer, status: .sent) }
    }

    /// Takes room for an unreliable message on a connection; `false` where there is too little.
    mutating func takeRoom(_ cost: Int, on link: LinkID) -> Bool {
        if self.lastRoom?.link != link { self.lastRoom = self.room.index(forKey: link).map { (link, $0) } }
        guard let index = self.lastRoom?.index, self.room.values[index] >= cost else { return false }
        self.room.values[index] -= cost
        return true
    }
}

/// Unreliable messages that go out together on one connection, for which there is room.
package struct UnreliableMessages: Sendable, Hashable {
    /// Small ones, as they go out.
    package var encoded = ByteBuffer()
    package var frames: [MessageFrame] = []
    /// What they cost while the socket has not taken them, in bytes.
    package var cost = 0

    package init() {}
}
