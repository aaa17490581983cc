import DequeModule
import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// Messages: the users' calls, and the shell's work for the core.
extension World {
    // MARK: Users

    /// Sends some messages to one peer or to all. The bodies are ascending numbers, which show the order.
    mutating func send(_ action: Action, from machine: Int, to peer: Int) {
        self.send(action, from: machine, to: action[3] % 4 == 3 ? .all : .peers([self.machines[peer].id.description]))
    }

    mutating func send(
        _ action: Action, from machine: Int, to recipients: Message.Recipients, as type: String = "application/octet-stream"
    ) {
        let mode = action[3] % 4
        let timeouts: [Duration?] = [nil, .milliseconds(300), .seconds(2), .seconds(60)]
        let drafts = (0..<(action[2] % 9)).map { _ in
            self.drafts += 1
            var draft = MessageDraft(
                to: recipients, contentType: type,
                body: ByteBuffer(integer: UInt64(self.drafts)), mode: mode == 2 ? .unreliable : .reliable,
                id: self.drafts % 5 == 0 ? nil : MessageID(high: UInt64(machine), low: UInt64(self.drafts)), queue: mode == 1,
                timeout: timeouts[action[4] % 4])
            // The number in its body distinguishes it.
            if draft.queue {
                draft.fingerprint = Self.fingerprint(draft)
                self.machines[machine].queued.insert(UInt64(self.drafts))
            }
            return draft
        }
        self.machines[machine].drafts += drafts
        let count = self.machines[machine].drafts.count
        if count > 12 { self.machines[machine].drafts.removeFirst(count - 12) }
        self.submit(drafts, on: machine)
    }

    /// Sends one of the last messages again, unchanged.
    mutating func sendAgain(_ action: Action, from machine: Int) {
        let drafts = self.machines[machine].drafts.filter { $0.id != nil }
        guard !drafts.isEmpty, let core = self.machines[machine].core else { return }
        var draft = drafts[action[1] % drafts.count]
        if core.needsFingerprint(draft) { draft.fingerprint = Self.fingerprint(draft) }
        if let number = Self.number(draft.body) { self.machines[machine].repeated.insert(number) }
        self.submit([draft], on: machine)
    }

    private static func fingerprint(_ draft: MessageDraft) -> [UInt8] { Array(draft.body.readableBytesView) }
    static func number(_ body: ByteBuffer) -> UInt64? { body.getInteger(at: body.readerIndex) }

    private mutating func submit(_ drafts: [MessageDraft], on machine: Int) {
        var room: OrderedDictionary<LinkID, Int> = [:]
        if drafts.contains(where: { $0.mode == .unreliable }) {
            for link in self.machines[machine].links.keys where self.drafts % 7 != 0 { room[link] = 4_000 }
        }
        self.call(.send(drafts, room: room), on: machine)
    }

    /// Reads the oldest messages of the inbox.
    mutating func read(_ count: Int, on machine: Int) {
        guard let core = self.machines[machine].core else { return }
        let told = self.machines[machine].mailbox.read(count, receiptsFor: core.wantsReceipts)
        for (sender, ids) in told {
            self.counts[.reads] += ids.count
            self.hand(.read(ids, of: sender), to: machine)
        }
    }

    // MARK: The disk

    mutating func ask(_ work: Mailbox.Work, on machine: Int) {
        let own = self.machines[machine]
        own.works += 1
        var random = SplitMix64(seed: self.schedule.seed, 11, UInt64(machine), UInt64(own.run), UInt64(own.works))
        own.mailbox.pending.append(work)
        let time: Duration =
            own.disk.mode == .slow ? .milliseconds(random.number(in: 100...6_000)) : .microseconds(random.number(in: 50...5_000))
        self.clock.plan(.works(machine, run: own.run), after: time)
    }

    /// Performs the oldest request, and any that can be written with it. The core is told a little later.
    mutating func work(on machine: Int) {
        let own = self.machines[machine]
        guard let first = own.mailbox.pending.popFirst() else { return }
        if own.disk.modeEnd <= self.clock.now { own.disk.mode = nil }
        let error: EarshotError? =
            switch own.disk.mode {
            case .failing: EarshotError(.storage, "the disk has failed")
            case .full: EarshotError(.noSpace, "the disk is full")
            case .slow, nil: nil
            }
        if error != nil { self.counts[.failedWork] += 1 }
        let input: Input
        switch first {
        case .keep(let id, let changes):
            var (ids, all) = ([id], changes)
            while case .keep(let id, let changes)? = own.mailbox.pending.first, ids.count < 4 {
                own.mailbox.pending.removeFirst()
                ids.append(id)
                all += changes
            }
            if error == nil {
                own.mailbox.change(all)
            } else {
                own.hasFailedToKeep = true
                // A restart before the write finds the message in its old state, and sends it again unless it has expired.
                for case .settle(let id, _) in all {
                    if let number = own.mailbox.body(of: id).flatMap(Self.number) { own.repeated.insert(number) }
                }
            }
            input = .kept(ids, error)
        case .deliver(let peer, let link, let messages):
            // Messages that arrived meanwhile, also of other senders, are written in the same commit.
            var all = [(peer, link, messages)]
            while case .deliver(let other, let link, let more)? = own.mailbox.pending.first, all.count < 4 {
                own.mailbox.pending.removeFirst()
                all.append((other, link, more))
            }
            let reports = all.map { peer, link, messages in
                var outcomes: [DeliveryOutcome]?
                if error == nil {
                    outcomes = own.mailbox.deliver(messages, at: self.clock.now(skew: own.skew).wall)
                    self.note(messages, outcomes ?? [], from: peer, at: machine)
                } else {
                    own.mailbox.refuse(messages)
                }
                return DeliveryReport(of: peer, on: link, messages.map(\.id), outcomes)
            }
            input = .delivered(reports)
        case .bodies(let conversation, let ids):
            let bodies = ids.compactMap { id in own.mailbox.body(of: id).map { LoadedBody(id: id, body: $0) } }
            input = .bodies(conversation, ids, error.map { .failure($0) } ?? .success(bodies))
        case .text(let id, let message):
            let outcome = error == nil ? own.mailbox.deliver([message], at: self.clock.now(skew: own.skew).wall).first : nil
            input = .device(.delivered(id, outcome))
        case .receipts(let peer): input = .receipts(peer, error == nil ? Array(own.mailbox.receipts[peer] ?? []) : nil)
        }
        self.trace?.note("\(machine) disk: \(error.map { "failed: \($0)" } ?? "done")")
        self.clock.plan(.input(machine, run: own.run, input), after: .microseconds(30))
    }

    /// Checks that messages are stored once, and those of one sender in order, except those that it sent again.
    private mutating func note(_ messages: [InboxMessage], _ outcomes: [DeliveryOutcome], from peer: PeerID, at machine: Int) {
        guard let sender = self.machine(of: peer), !self.machines[sender].isHostile else { return }
        for (message, outcome) in zip(messages, outcomes) {
            guard outcome.isStored else {
                self.counts[outcome == .duplicate ? .duplicates : .refusedMessages] += 1
                continue
            }
            self.counts[.storedMessages] += 1
            guard let number = Self.number(message.body), !self.machines[sender].repeated.contains(number) else { continue }
            let line = Machine.Line(sender: sender, isQueued: self.machines[sender].queued.contains(number), group: message.group?.id)
            let last = self.machines[machine].latest[line] ?? 0
            if number <= last { self.fail(.order, "\(machine) has stored message \(number) of \(sender) after \(last)") }
            self.machines[machine].latest[line] = number
        }
    }

    // MARK: Unreliable messages

    mutating func send(_ messages: UnreliableMessages, on id: LinkID) {
        var decoder = FrameDecoder()
        decoder.phase = .proven
        decoder.feed(messages.encoded)
        var frames = messages.frames.map { Frame.message($0) }
        while let frame = try? decoder.next() { frames.append(frame) }
        self.counts[.unreliableMessages] += frames.count
        self.send(frames, on: id)
    }

    // MARK: Invariants

    /// Checks that a message is sent before its deadline or not at all, and that delivered messages are on disk.
    mutating func checkMessage(_ frame: Frame, to peer: PeerID, of machine: Int) {
        switch frame {
        case .message(let message):
            guard message.mode != .unreliable, let own = self.machines[machine].core?.outgoingMessage(message.id) else { return }
            if own.deadline <= self.clock.now(skew: .zero).monotonic {
                self.fail(.deadlines, "\(machine) sends \(message.id) after its deadline")
            }
        case .messageReceipts(let receipts):
            for receipt in receipts where receipt.outcome == .delivered && !self.machines[machine].mailbox.has(receipt.id, from: peer) {
                self.fail(.committed, "\(machine) acknowledges \(receipt.id), which is not on disk")
            }
        default: break
        }
    }

    /// Checks that a queued message waits for its full time, whatever the clocks have shown.
    mutating func checkPatience(_ changes: [OutboxChange], of machine: Int) {
        for change in changes {
            switch change {
            case .add(let message):
                self.machines[machine].patience[message.id] = self.clock.now + (message.deadline - self.now(of: machine).running)
            case .settle(let id, let recipient):
                // Rows store times in milliseconds.
                guard recipient.status == .unconfirmed, recipient.peerID.kind == .earshot, let end = self.machines[machine].patience[id],
                    self.clock.now < end - .milliseconds(1)
                else { continue }
                self.fail(.kept, "\(machine) gives \(id) up, which was to wait until \(end)")
            case .remove, .noted: break
            }
        }
    }

    /// Checks the outcomes that callers are told.
    mutating func check(_ outcomes: [MessageOutcome], of drafts: [MessageDraft], at machine: Int) {
        guard outcomes.count == drafts.count else {
            return self.fail(.answers, "\(machine) answers \(outcomes.count) of \(drafts.count) messages")
        }
        for (draft, outcome) in zip(drafts, outcomes) {
            guard case .success(let sent) = outcome else { continue }
            for recipient in sent.recipients {
                self.counts.note(recipient.status)
                switch recipient.status {
                case .delivered, .read:
                    guard let other = self.machine(of: recipient.peerID), !self.machines[other].isHostile else { continue }
                    if !self.machines[other].mailbox.has(sent.id, from: self.machines[machine].id) {
                        self.fail(.committed, "\(machine) answers that \(other) has \(sent.id), which is not on disk there")
                    }
                case .queued, .sent:
                    guard draft.mode == .reliable else { continue }
                    let row = self.machines[machine].mailbox.outbox[sent.id]
                    if row == nil { self.fail(.committed, "\(machine) answers that \(sent.id) waits, which is not on disk") }
                case .failed:
                    // With a caller's id, an attempt before a restart may have delivered it.
                    guard recipient.error == .notSent, draft.id == nil, let other = self.machine(of: recipient.peerID) else { continue }
                    if self.machines[other].mailbox.has(sent.id, from: self.machines[machine].id) {
                        self.fail(.committed, "\(machine) answers that \(sent.id) was not sent, and \(other) has it")
                    }
                case .unconfirmed: break
                }
            }
        }
    }

    /// Checks that each message is published once.
    mutating func checkReceived(_ messages: [Message], at machine: Int) {
        for message in messages {
            let key = Mailbox.Key(sender: message.senderID, id: message.id)
            if self.machines[machine].heard.contains(key) { self.fail(.order, "\(machine) tells twice of \(message.id)") }
            self.machines[machine].heard.append(key)
            if !self.machines[machine].mailbox.has(message.id, from: message.senderID) {
                self.fail(.committed, "\(machine) tells of \(message.id), which is not on disk")
            }
        }
    }

    /// Checks that no message waits between two peers in a session, and that each knows which messages the other has read.
    mutating func checkMessages(from machine: Int, to other: Int) {
        guard let core = self.machines[machine].core else { return }
        let peer = self.machines[other].id
        if let outbox = core.outbox(of: peer), !outbox.isEmpty {
            self.fail(.drained, "\(machine) has \(outbox.count) messages for \(other) that do not go")
        }
        // Failed writes are repeated on the next connection, and unwritten notes after the next start.
        guard !self.machines[other].hasFailedToKeep, !self.machines[machine].hasFailedToKeep else { return }
        if core.unnoted(of: peer) > 0 || !(self.machines[machine].mailbox.receipts[peer] ?? []).isEmpty {
            self.fail(.drained, "\(machine) has read messages of which \(other) takes no note")
        }
    }
}
