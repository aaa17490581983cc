package import EarshotWire
package import NIOCore
import OrderedCollections

/// A burst of messages that are sent together. Each peer's state is looked up once, and the messages for each peer are gathered.
struct SendingBurst {
    /// The state of a peer that gets messages of the burst.
    struct Recipient {
        let conversation: Conversation
        let name: String
        let session: SessionID?
        /// The connection that carries messages now; `nil` if the session is not attached.
        let link: LinkID?
        let isTrusted: Bool

        init(_ peer: PeerID, _ facts: PeerFacts?) {
            self.conversation = Conversation(with: peer)
            self.name = facts?.name ?? peer.description
            self.session = facts?.session
            self.link = facts?.isAttached == true ? facts?.link : nil
            self.isTrusted = facts?.trust == .trusted
        }

        /// Creates the recipient for a member of a group. Its messages are sent if the group is attached.
        init(_ conversation: Conversation, _ carrier: ConversationCarrier?, _ name: String?) {
            self.conversation = conversation
            self.name = name ?? conversation.peer.description
            self.session = conversation.group?.session
            self.link = carrier?.link
            self.isTrusted = true
        }

        var peer: PeerID { self.conversation.peer }
    }

    /// The messages for one recipient. Separate from the recipient itself: a held copy of the recipient must not cause a copy of these when
    /// they grow.
    struct Pending {
        var entries: [Outbox.Entry] = []
        var unreliable = UnreliableMessages()
        /// The common parts of small unreliable messages with the last content type.
        var template: MessageTemplate?

        /// Encodes a small unreliable message for sending. Returns `false` without a template.
        mutating func encode(_ id: MessageID, _ body: ByteBuffer, cost: Int) -> Bool {
            guard let template = self.template else { return false }
            template.encode(id, body, into: &self.unreliable.encoded)
            self.unreliable.cost += cost
            return true
        }
    }

    /// The time of all messages of the burst.
    let now: Now
    private(set) var all: [Recipient] = []
    /// The pending messages of the recipient at the same index.
    var pending: [Pending] = []
    /// The recipients that were used last, whose indices are ``current``.
    private(set) var recipients: Message.Recipients?
    private(set) var group: GroupID?
    private(set) var current: Range<Int> = 0..<0
    /// The statuses of a message that was not sent yet.
    private(set) var queued: [Message.Recipient] = []
    /// The statuses of an unreliable message that was sent to all.
    private(set) var sent: [Message.Recipient] = []
    /// The recipients that may have the present message from an earlier attempt under its id.
    var mayHaveArrived: Set<PeerID> = []
    /// The last content type that was checked and is valid.
    var checkedType: String?
    /// The number of bytes of unreliable messages that each control connection accepts now.
    private var room: OrderedDictionary<LinkID, Int>
    /// The index of the last connection in ``room``: mostly the next message uses it too.
    private var lastRoom: (link: LinkID, index: Int)?

    init(at now: Now, room: OrderedDictionary<LinkID, Int> = [:]) {
        self.now = now
        self.room = room
    }

    var addressed: [PeerID] { self.all[self.current].map(\.peer) }
    var needsInvitation: Bool { self.all[self.current].contains { $0.session == nil } }

    /// Sets the recipients of the following messages.
    mutating func use(_ recipients: Message.Recipients?, _ new: [Recipient], in group: GroupID? = nil) {
        self.recipients = recipients
        self.group = group
        self.current = self.all.count..<(self.all.count + new.count)
        self.all += new
        self.pending += Array(repeating: Pending(), count: new.count)
        self.queued = new.map { Message.Recipient(peerID: $0.peer, status: .queued) }
        self.sent = new.map { Message.Recipient(peerID: $0.peer, status: .sent) }
    }

    /// Takes room for an unreliable message on a connection. Returns `false` if there is too little.
    mutating func takeRoom(_ cost: Int, on link: LinkID) -> Bool {
        if self.lastRoom?.link != link { self.lastRoom = self.room.index(forKey: link).map { (link, $0) } }
        guard let index = self.lastRoom?.index, self.room.values[index] >= cost else { return false }
        self.room.values[index] -= cost
        return true
    }
}

/// Unreliable messages that are sent together on one connection, which has room for them.
package struct UnreliableMessages: Sendable, Hashable {
    /// The small messages, encoded.
    package var encoded = ByteBuffer()
    package var frames: [MessageFrame] = []
    /// The bytes that the messages count for until the socket has taken them.
    package var cost = 0

    package init() {}
}
