import EarshotWire
import NIOCore
import OrderedCollections
import Simulation
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// A core driven by hand. Time stands still until it is advanced, and the disk writes at once unless it is held.
struct CoreBench {
    var core: NodeCore
    /// The time since the start.
    private(set) var time: Duration = .zero
    /// The offset of the wall clock.
    var wallAhead: Duration = .zero
    /// The offset of the clock for the expiry of stored rows.
    var runningAhead: Duration = .zero

    // Outputs so far
    private(set) var effects: [Effect] = []
    private(set) var answers: [CallID: Answer] = [:]
    private(set) var events: [CoreEvent] = []
    private(set) var notices: [Notice] = []
    private(set) var dials: [PeerID] = []
    private var sent: [LinkID: [Frame]] = [:]
    private(set) var unreliable: [LinkID: [UnreliableMessages]] = [:]
    private(set) var closed: [LinkID: WireErrorCode?] = [:]
    private(set) var holds: OrderedDictionary<HoldID, Int> = [:]
    /// The commands to the movers of resources.
    private(set) var orders: [ResourceID: [TransferCommand]] = [:]

    private(set) var deviceEffects: [DeviceEffect] = []

    // The disk
    var isDiskHeld = false
    /// The error of the next transaction.
    var diskError: EarshotError?
    /// Whether later writes of the outbox fail with the same error.
    var doesDiskErrorStay = false
    private(set) var peersOnDisk: OrderedDictionary<PeerID, StoredPeer> = [:]
    private(set) var groupsOnDisk: OrderedDictionary<GroupID, StoredGroup> = [:]
    private(set) var sessionsOnDisk: OrderedDictionary<PeerID, StoredSession> = [:]
    /// The queued messages and the inbox.
    private(set) var outboxOnDisk: OrderedDictionary<MessageID, QueuedMessage> = [:]
    private(set) var inbox: [InboxMessage] = []
    private(set) var statusesOnDisk: OrderedDictionary<MessageID, [Message.Recipient]> = [:]
    /// The messages whose senders have noted that they were read.
    private(set) var notedOnDisk: [MessageID] = []
    /// Changes of transfers that a caller or a peer waits for, and changes that nobody waits for.
    private(set) var transferOperations: [StoreOperation] = []
    private(set) var keptTransfers: [TransferChange] = []
    /// The refusal of further messages for the inbox.
    var refusal: DeliveryOutcome.Refusal?
    /// Whether the inbox is in memory, and the program has taken no message from it.
    var holdsMessages = false
    private var heldWork: [Work] = []
    /// Whether signatures and checks are held.
    var areSignaturesHeld = false
    private var later: [Input] = []
    private var depth = 0
    /// The number of checked records.
    private(set) var checks = 0
    private var heldCommits: [(id: CommitID, operations: [StoreOperation])] = []
    /// The transactions so far.
    var commits: [CommitID] { self.effects.compactMap { if case .commit(let id, _) = $0 { id } else { nil } } }

    private var links: UInt64 = 0
    private var calls: UInt64 = 0

    init(_ id: PeerID = peerID(100), key: OwnKey? = nil, seed: UInt64 = 1, change: (inout CoreSettings) -> Void = { _ in }) {
        self.core = .bench(id, key: key, seed: seed, change: change)
        self.handle(.start)
    }

    // MARK: Inputs

    var now: Now {
        Now(
            monotonic: Now(after: self.time).monotonic, wall: Now(after: self.time + self.wallAhead).wall,
            running: Now(after: self.time + self.runningAhead).wall)
    }

    @discardableResult
    mutating func handle(_ input: Input) -> [Effect] {
        var effects: [Effect] = []
        self.core.handle(input, at: self.now, into: &effects)
        self.effects += effects
        self.depth += 1
        for effect in effects { self.carryOut(effect) }
        self.depth -= 1
        // Held work elsewhere completes after everything else.
        while self.depth == 0, !self.areSignaturesHeld, !self.later.isEmpty { self.handle(self.later.removeFirst()) }
        return effects
    }

    private mutating func carryOut(_ effect: Effect) {
        switch effect {
        case .send(let link, let frames): self.sent[link, default: []] += frames
        case .close(let link, let refusal): self.closed[link] = .some(refusal?.code)
        case .dial(let peer, let plan):
            self.dials.append(peer)
            let addresses = plan.addresses { _ in true }
            self.handle(.dial(peer, addresses.isEmpty ? .nowhere : .began(addresses)))
        case .device(let effect): self.deviceEffects.append(effect)
        case .dialConfigured, .pin, .dataPath, .stream, .placeLeft: break
        case .sign(let id, let inputs):
            let key = self.core.key?.publicKey ?? []
            self.later.append(.signed(id, .success(inputs.map { ToySignature.sign($0, by: key) })))
        case .check(let id, let checks):
            self.checks += checks.count
            self.later.append(.checked(id, checks.map { $0.allSatisfy(ToySignature.isValid) }))
        case .transfer(let id, let command): self.orders[id, default: []].append(command)
        case .keepTransfers(let changes): self.keptTransfers += changes
        case .commit(let id, let operations):
            self.heldCommits.append((id, operations))
            if !self.isDiskHeld { self.writeHeld() }
        case .publish(let event): self.events.append(event)
        case .answer(let call, let answer):
            #expect(self.answers[call] == nil, "a call is answered once")
            self.answers[call] = answer
        case .hold(let hold, _, let bytes): self.holds[hold] = bytes
        case .release(let hold): #expect(self.holds.removeValue(forKey: hold) != nil, "given back once")
        case .log(let notice): self.notices.append(notice)
        case .sendUnreliable(let link, let messages): self.unreliable[link, default: []].append(messages)
        case .flushSoon(let conversation): self.handle(.flush(conversation))
        case .keep(let id, let changes): self.work(.keep(id, changes))
        case .deliver(let link, let messages): self.work(.deliver(link, messages))
        case .loadBodies(let conversation, let ids): self.work(.bodies(conversation, ids))
        case .loadReceipts(let peer): self.work(.receipts(peer))
        }
    }

    /// An operation of the disk for messages.
    private enum Work {
        case keep(KeepID, [OutboxChange])
        case deliver(LinkID, [InboxMessage])
        case bodies(Conversation, [MessageID])
        case receipts(PeerID)
    }

    private mutating func work(_ work: Work) {
        guard !self.isDiskHeld, self.heldWork.isEmpty else { return self.heldWork.append(work) }
        self.finish(work)
    }

    private mutating func finish(_ work: Work) {
        switch work {
        case .keep(let id, let changes):
            let error = self.diskError
            if !self.doesDiskErrorStay { self.diskError = nil }
            if error == nil { for change in changes { self.write(change) } }
            self.handle(.kept([id], error))
        case .deliver(let link, let messages):
            guard let sender = messages.first?.senderID else { return }
            let outcomes = messages.map { message -> DeliveryOutcome in
                if let refusal = self.refusal { return .refused(refusal) }
                let isKnown = self.inbox.contains { $0.id == message.id && $0.senderID == message.senderID }
                guard !isKnown else { return self.holdsMessages ? .heldAlready : .duplicate }
                self.inbox.append(message)
                let stored = Message(
                    id: message.id, direction: .incoming, senderID: message.senderID, senderName: message.senderName,
                    contentType: message.contentType, body: message.body, mode: .reliable, sent: message.sent, received: self.now.wall,
                    readState: .unread, recipients: [], group: message.group, inReplyTo: message.inReplyTo)
                return self.holdsMessages ? .held(stored) : .stored(stored)
            }
            self.handle(.delivered([DeliveryReport(of: sender, on: link, messages.map(\.id), outcomes)]))
        case .bodies(let conversation, let ids):
            let error = self.diskError
            self.diskError = nil
            let bodies = ids.compactMap { id in self.outboxOnDisk[id].map { LoadedBody(id: id, body: $0.body) } }
            self.handle(.bodies(conversation, ids, error.map { .failure($0) } ?? .success(bodies)))
        case .receipts(let peer): self.handle(.receipts(peer, []))
        }
    }

    private mutating func write(_ change: OutboxChange) {
        switch change {
        case .add(let message):
            self.outboxOnDisk[message.id] = message
            self.statusesOnDisk[message.id] = nil
        case .settle(let id, let recipient): self.statusesOnDisk[id, default: []].append(recipient)
        case .remove(let id): self.outboxOnDisk[id] = nil
        case .noted(let ids, _): self.notedOnDisk += ids
        }
    }

    /// Makes a call. Returns its answer if it came at once.
    @discardableResult
    mutating func call(_ command: Command) -> Answer? {
        self.calls += 1
        let call = CallID(number: self.calls)
        self.handle(.call(call, command))
        return self.answers[call]
    }

    /// The last call.
    var lastCall: CallID { CallID(number: self.calls) }

    /// Completes the first held signature or check.
    mutating func releaseSignature() { if !self.later.isEmpty { self.handle(self.later.removeFirst()) } }

    /// Completes all held signatures and checks.
    mutating func releaseSignatures() {
        self.areSignaturesHeld = false
        while !self.later.isEmpty { self.handle(self.later.removeFirst()) }
    }

    /// Advances time, and handles each deadline at its time.
    mutating func advance(_ duration: Duration) {
        let end = self.time + duration
        while let due = self.core.nextDeadline, due <= Now(after: end).monotonic {
            self.time = max(self.time, due - Now(after: .zero).monotonic)
            self.handle(.deadline)
        }
        self.time = end
    }

    /// Advances time while the machine is suspended: no deadline is handled.
    mutating func sleep(_ duration: Duration) { self.time += duration }

    // MARK: Disk

    /// Writes everything that the disk was held with, and what follows from it.
    mutating func releaseDisk() {
        self.isDiskHeld = false
        self.writeHeld()
    }

    /// Writes the first held transaction.
    mutating func writeNext() {
        let (id, operations) = self.heldCommits.removeFirst()
        let error = self.diskError
        self.diskError = nil
        if error == nil { for operation in operations { self.write(operation) } }
        self.handle(.committed(id, error))
    }

    /// Completes the first held operation for messages.
    mutating func workNext() { self.finish(self.heldWork.removeFirst()) }

    private mutating func writeHeld() {
        while !self.heldCommits.isEmpty { self.writeNext() }
        while !self.heldWork.isEmpty { self.workNext() }
    }

    private mutating func write(_ operation: StoreOperation) {
        switch operation {
        case .putPeer(let peer): self.peersOnDisk[peer.id] = peer
        case .removePeer(let id): self.peersOnDisk[id] = nil
        case .putSession(let session): for member in session.members.dropFirst() { self.sessionsOnDisk[member] = session }
        case .removeSession(let peer):
            self.sessionsOnDisk[peer] = nil
            if self.peersOnDisk[peer]?.isDecided == false { self.peersOnDisk[peer] = nil }
        case .putResource, .removeResource, .putTransfer, .removeTransfer, .putEndedTransfer: self.transferOperations.append(operation)
        case .putGroup(let group):
            let old = self.groupsOnDisk[group.id]?.records ?? []
            self.groupsOnDisk[group.id] = StoredGroup(charter: group.charter, records: old + group.records, isOver: group.isOver)
        case .removeGroup(let id): self.groupsOnDisk[id] = nil
        case .putGroupRecord(let record, let id): self.groupsOnDisk[id]?.records.append(record)
        case .removeGroupRecord(let hash, let id): self.groupsOnDisk[id]?.records.removeAll { $0.hash(in: id) == hash }
        }
    }

    /// Returns the same machine after a restart.
    func restarted(change: (inout CoreSettings) -> Void = { _ in }) -> CoreBench {
        var again = CoreBench(self.core.id, seed: 2, change: change)
        again.time = self.time
        again.wallAhead = self.wallAhead
        again.runningAhead = self.runningAhead
        again.peersOnDisk = self.peersOnDisk
        again.sessionsOnDisk = self.sessionsOnDisk
        again.groupsOnDisk = self.groupsOnDisk
        var settings = CoreSettings()
        change(&settings)
        again.core = NodeCore(
            id: self.core.id, key: self.core.key, settings: settings, hasDiscovery: true, random: SplitMix64(seed: 3))
        again.core.load(Array(self.peersOnDisk.values), Array(self.sessionsOnDisk.values), Array(self.groupsOnDisk.values))
        again.outboxOnDisk = self.outboxOnDisk
        again.inbox = self.inbox
        again.statusesOnDisk = self.statusesOnDisk
        again.handle(.outbox(self.outboxOnDisk.values.map { self.row($0) }))
        again.handle(.start)
        return again
    }

    private func row(_ message: QueuedMessage) -> QueuedMessageRow {
        var recipients = message.recipients
        for status in self.statusesOnDisk[message.id] ?? [] {
            if let index = recipients.firstIndex(where: { $0.peerID == status.peerID }) { recipients[index] = status }
        }
        return QueuedMessageRow(
            id: message.id, contentType: message.contentType, size: message.body.readableBytes, fingerprint: message.fingerprint,
            sent: message.sent, deadline: message.deadline, recipients: recipients, group: message.group,
            inReplyTo: message.inReplyTo)
    }

    // MARK: Messages

    /// Sends a message. Returns its outcome if it is known at once.
    @discardableResult
    mutating func send(
        _ body: String = "x", to peer: PeerID, mode: Message.Mode = .reliable, id: MessageID? = nil, queue: Bool = false,
        timeout: Duration? = nil, room: OrderedDictionary<LinkID, Int> = [:]
    ) -> MessageOutcome? {
        var draft = MessageDraft(
            to: .peers([peer.description]), contentType: "a/b", body: ByteBuffer(string: body), mode: mode, id: id, queue: queue,
            timeout: timeout)
        draft.fingerprint = Array(body.utf8)
        return self.call(.send([draft], room: room))?.sent?.first
    }

    /// Returns the outcome of a call's message.
    func outcome(of call: CallID) -> MessageOutcome? { self.answers[call]?.sent?.first }

    /// Returns the messages sent on a connection since the last query.
    mutating func messages(on link: LinkID) -> [MessageFrame] {
        self.sent(on: link).compactMap { if case .message(let message) = $0 { message } else { nil } }
    }

    /// Returns the invitations sent on a connection since the last query.
    mutating func invites(on link: LinkID) -> [InvitationID] {
        self.sent(on: link).compactMap { if case .invite(let invite) = $0 { invite.id } else { nil } }
    }

    /// The messages that were published to event readers.
    var received: [Message] {
        self.events.flatMap { event -> [Message] in if case .messagesReceived(let messages) = event { messages } else { [] } }
    }

    /// Receives a message of a peer in a session.
    mutating func receive(
        _ body: String, _ id: MessageID, in session: SessionID, mode: MessageFrame.Mode = .reliable, on link: LinkID
    ) {
        let message = MessageFrame(
            session: session, id: id, mode: mode, sequence: 1, sentAtMilliseconds: 0, contentType: "a/b", body: ByteBuffer(string: body))
        self.handle(.link(link, .messages([message])))
    }

    mutating func receipt(_ id: MessageID, _ outcome: MessageReceipt.Outcome, on link: LinkID) {
        self.frame(.messageReceipts([MessageReceipt(id: id, outcome: outcome)]), on: link)
    }

    // MARK: Peers

    /// Connects a peer that proves its key.
    @discardableResult
    mutating func prove(
        _ peer: PeerID, name: String = "peer", from origin: [UInt8] = [10, 77, 0, 2], isInitiator: Bool = false,
        transport: TransportKind = .tls, extensions: [HelloExtension] = []
    ) throws -> LinkID {
        self.links += 1
        let link = LinkID(number: self.links)
        let facts = try LinkFacts.of(
            peer, name: name, isInitiator: isInitiator, transport: transport, origin: origin, extensions: extensions)
        self.handle(.link(link, .proven(facts, isOtherDead: false)))
        return link
    }

    mutating func frame(_ frame: Frame, on link: LinkID) { self.handle(.link(link, .frame(frame))) }
    mutating func lose(_ link: LinkID, _ end: LinkEnd = .lost) { self.handle(.link(link, .closed(end))) }

    /// Receives an invitation of a peer, with a timeout of one day.
    @discardableResult
    mutating func invite(_ id: InvitationID? = nil, on link: LinkID) -> InvitationID {
        let id = id ?? self.freshInvitation()
        self.frame(.invite(Invite(id: id, timeoutMilliseconds: 86_400_000, context: [])), on: link)
        return id
    }

    mutating func freshInvitation() -> InvitationID {
        self.calls += 1
        return InvitationID(high: 77, low: self.calls)
    }

    /// Reports a sighting of a peer.
    mutating func see(_ peer: PeerID, name: String = "peer", at host: String = "10.77.0.9", interface: Int32 = 1) throws {
        self.handle(.discovery(.found(.avahi, try Self.sighting(peer, name: name, at: host, interface: interface))))
    }

    static func sighting(_ peer: PeerID, name: String, at host: String, interface: Int32) throws -> SeenAddresses {
        let sighting = Sighting(
            key: Sighting.Key(instanceName: name, interfaceIndex: interface, overIPv6: false), interfaceName: "eth0", isLoopback: false,
            addresses: [host], port: 47110, txt: DiscoveryInfo.record(id: peer, name: try DisplayName(name), pairs: [:]))
        return SeenAddresses(sighting: sighting, addresses: [PeerAddress(host: host, zone: nil, port: 47110)])
    }

    /// Returns the frames sent on a connection since the last query.
    mutating func sent(on link: LinkID) -> [Frame] { self.sent.removeValue(forKey: link) ?? [] }

    /// Returns the last answer to an invitation that was sent on a connection.
    mutating func inviteAnswer(on link: LinkID) -> InviteAnswer? {
        self.sent(on: link).compactMap { if case .inviteAnswer(let answer) = $0 { answer } else { nil } }.last
    }

    // MARK: State

    /// The pending invitations, in their order.
    var pending: [InvitationID] { self.core.invitations(all: false).map(\.id) }

    func invitation(_ id: InvitationID) throws -> Invitation { try self.core.invitation(id) }
    func peer(_ id: PeerID) throws -> Peer { try self.core.peer(id.description) }
}
