import DequeModule
import EarshotCore
import EarshotWire
import Logging
import NIOCore

/// The state of the shell around the core.
struct CoreShell {
    /// Inputs that arrived while the effects of another input were carried out.
    var inputs: Deque<Input> = []
    var isCarryingOut = false
    /// Empty between inputs; kept to reuse its storage.
    var effects: [Effect] = []
    /// The timer of the core's next deadline.
    var timer: (at: MonotonicInstant, scheduled: Scheduled<Void>)?
    /// Callers that wait for an answer.
    var calls: [CallID: (Answer) -> Void] = [:]
    var lastCall: UInt64 = 0
    /// Bytes of the current input that stay charged to their peer until they are on disk.
    var handedOn = 0
    /// Streams that calls opened, whose callers send the bytes.
    var opened: [CallID: (id: StreamID, flow: OutgoingFlow)] = [:]
    /// The charges of peers for the core's work.
    var holds: [HoldID: Charge] = [:]
}

/// The shell around the core: passes inputs to the core and carries out its effects.
extension Node {
    /// Passes an input to the core and carries out its effects in order. Inputs that arrive meanwhile wait until all of them are carried
    /// out.
    func handle(_ input: Input) {
        self.coreShell.inputs.append(input)
        guard !self.coreShell.isCarryingOut else { return }
        self.coreShell.isCarryingOut = true
        var effects: [Effect] = []
        swap(&effects, &self.coreShell.effects)
        while let input = self.coreShell.inputs.popFirst() {
            self.core.handle(input, at: self.instant, into: &effects)
            // Before the effects become visible to anyone.
            self.armCoreTimer()
            for effect in effects { self.carryOut(effect) }
            effects.removeAll(keepingCapacity: true)
        }
        swap(&effects, &self.coreShell.effects)
        self.coreShell.isCarryingOut = false
    }

    /// Calls the core in place. For a nonmutating method that is called through the property, the compiler first copies the core and
    /// retains all of its tables, which costs too much for a call per message.
    func inCore<Result>(_ ask: (inout NodeCore) -> Result) -> Result { ask(&self.core) }

    /// The present time, by all clocks.
    private var instant: Now {
        let monotonic = self.transport.timers.now
        return Now(monotonic: monotonic, wall: WallTime(self.now), running: self.runningClock.time(at: monotonic))
    }

    /// The running clock's time, by which everything on disk expires.
    var runningTime: WallTime { self.runningClock.time(at: self.transport.timers.now) }

    /// Sends the core a command and waits for its answer.
    func call(_ command: Command) async -> Answer {
        await withCheckedContinuation { continuation in
            self.call(command) { continuation.resume(returning: $0) }
        }
    }

    /// Sends the core a command. `then` runs on the node when the core answers, possibly before this call returns.
    @discardableResult
    func call(_ command: Command, then: @escaping (Answer) -> Void) -> CallID {
        self.coreShell.lastCall += 1
        let call = CallID(number: self.coreShell.lastCall)
        self.coreShell.calls[call] = then
        self.handle(.call(call, command))
        return call
    }

    private func carryOut(_ effect: Effect) {
        switch effect {
        case .send(let link, let frames): self.links[link]?.send(frames)
        case .close(let link, let refusal): self.links[link]?.close(refusal)
        case .dial(let peer, let plan): self.dial(peer, plan)
        case .dialConfigured(let peer): self.dialConfigured(peer)
        case .commit(let id, let operations): self.commit(operations, as: id)
        case .publish(let event): self.announce(event)
        case .answer(let call, let answer): self.coreShell.calls.removeValue(forKey: call)?(answer)
        case .hold(let hold, let link, let bytes):
            if let account = self.links[link]?.account { self.coreShell.holds[hold] = Charge(bytes, to: account) }
        case .release(let hold): self.coreShell.holds[hold] = nil
        case .pin(let peer, let pin): self.transport.tlsPins.apply(pin, to: peer)
        case .log(let notice): self.log(notice)
        case .dataPath(let transfer, let effect): self.carryOut(effect, for: transfer)
        case .sendUnreliable(let link, let messages): self.links[link]?.sendUnreliable(messages)
        case .flushSoon(let conversation): self.input.yield(.core(.flush(conversation)))
        case .keep(let id, let changes):
            self.enqueue(.outbox(StoreWork.Keeping(id: id, changes: changes, charge: self.charge(EarshotLimits.storeWorkCharge))))
        case .deliver(let link, let messages): self.deliver(messages, from: link)
        case .loadBodies(let conversation, let ids): self.loadBodies(ids, for: conversation)
        case .loadReceipts(let peer): self.loadReceipts(of: peer)
        case .stream(let stream, let command): self.carryOut(command, for: stream)
        case .transfer(let resource, let command): self.carryOut(command, for: resource)
        case .keepTransfers(let changes): self.keepRows(changes)
        case .placeLeft(let rows): self.placeLeft(rows)
        case .device(let effect): self.carryOut(effect)
        case .sign(let id, let inputs): self.sign(inputs, as: id)
        case .check(let id, let checks): self.check(checks, as: id)
        }
    }

    /// Writes the core's decisions in their order.
    private func commit(_ operations: [StoreOperation], as id: CommitID) {
        // The core has already charged the peer.
        self.working(for: nil) {
            self.persist(operations) { result in
                switch result {
                case .success: self.handle(.committed(id, nil))
                case .failure(let error): self.handle(.committed(id, error))
                }
            }
        }
    }

    /// Queues messages for the inbox. Their weight stays charged to their peer until they are on disk.
    private func deliver(_ messages: [InboxMessage], from link: LinkID) {
        guard let connection = self.links[link] else { return }
        let weight = messages.reduce(0) { $0 + Frame.weight(ofBody: $1.body.readableBytes) }
        self.coreShell.handedOn += weight
        self.enqueue(.deliver(StoreWork.Delivery(messages: messages, origin: .connection(connection), weight: weight)))
    }

    private func loadBodies(_ ids: [MessageID], for conversation: Conversation) {
        self.spawn { [input, store] in
            let bodies: Result<[LoadedBody], EarshotError>
            do throws(EarshotError) {
                let found = try await store.outboxBodies(ids)
                bodies = .success(ids.compactMap { id in found[id].map { LoadedBody(id: id, body: $0) } })
            } catch {
                bodies = .failure(error)
            }
            input.yield(.core(.bodies(conversation, ids, bodies)))
        }
    }

    private func loadReceipts(of peer: PeerID) {
        self.spawn { [input, store, logger] in
            do throws(EarshotError) {
                input.yield(.core(.receipts(peer, try await store.receipts(for: peer))))
            } catch {
                logger.error("cannot read the receipts", metadata: ["error": "\(error)"])
                input.yield(.core(.receipts(peer, nil)))
            }
        }
    }

    private func announce(_ event: CoreEvent) {
        switch event {
        case .peerFound(let peer): self.publish(.peerFound(peer), cost: Self.eventCost(of: peer))
        case .peerChanged(let peer): self.publish(.peerChanged(peer), cost: Self.eventCost(of: peer))
        case .peerLost(let peer): self.publish(.peerLost(peer), cost: Self.eventCost(of: peer))
        case .invitationReceived(let invitation): self.publish(.invitationReceived(invitation))
        case .invitationResolved(let invitation): self.publish(.invitationResolved(invitation))
        case .verificationChanged(let verification): self.publish(.verificationChanged(verification))
        case .sessionChanged(let session, let ended): self.publish(.sessionChanged(session, ended: ended))
        case .discoveryChanged(let status): self.publish(.discoveryChanged(status))
        case .messagesReceived(let messages):
            self.publish(messages.map { .messageReceived($0) })
        case .liveMessages(let messages):
            self.counters.countMessages(messages.count, bytes: messages.reduce(0) { $0 + $1.body.readableBytes })
            self.events.append(messages.map { .messageReceived($0) }, at: self.now, cost: Self.eventCost, isLive: true)
        case .messageStatuses(let statuses): self.publish(statuses.map { .messageStatus($0.id, $0.recipient) })
        case .streamOpened(let row): self.publish(.streamOpened(self.shown(row)))
        case .streamClosed(let row): self.publish(.streamClosed(self.shown(row)))
        case .resourceOffered(let row): self.publish(.resourceOffered(row))
        case .resourceProgress(let row): self.publish(.resourceProgress(row))
        case .resourceFinished(let row): self.publish(.resourceFinished(row))
        case .groupChanged(let group): self.publish(.groupChanged(group), cost: Self.eventCost(of: group))
        case .groupLeft(let id, let end): self.publish(.groupLeft(id, end))
        }
    }

    private func log(_ notice: Notice) {
        let level: Logger.Level =
            switch notice.level {
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
        let metadata = Logger.Metadata(notice.details.map { ($0.name, "\($0.value)") }) { _, last in last }
        self.logger.log(level: level, "\(notice.text)", metadata: metadata)
    }

    // MARK: Time

    /// Sets the one timer for all of the core's deadlines. The timer fires too early if the first deadline was cancelled.
    private func armCoreTimer() {
        guard let next = self.inCore({ $0.nextDeadline }), !self.isStoreClosed else { return }
        if let timer = self.coreShell.timer, timer.at <= next { return }
        self.coreShell.timer?.scheduled.cancel()
        // The timer serves the deadlines of all peers, so that no peer is charged for it.
        self.working(for: nil) { self.coreShell.timer = (next, self.schedule(.core, at: next)) }
    }

    func coreIsDue() {
        self.coreShell.timer = nil
        self.handle(Input.deadline)
    }
}
