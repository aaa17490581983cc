import EarshotCore
import EarshotWire
import OrderedCollections

/// The invariants of resources and their transfers.
extension World {
    // MARK: Movers

    mutating func check(_ command: TransferCommand, for id: ResourceID, of machine: Int, _ effect: Effect, _ input: Input) {
        if case .send(_, _, let link) = command { _ = self.checkLink(link, of: machine, effect, input) }
        if case .receiveBody(let row, _, _, let call) = command { self.checkUpload(row, call, of: machine) }
        let mover = self.machines[machine].transfers.current[id]
        let isExpected =
            switch command {
            case .open, .resume, .receiveBody: mover == nil
            case .compare, .send, .sendOverData, .digest, .begin, .receiveData, .settle, .pace: mover != nil
            case .checkRoom, .place, .removeContent, .look, .stop, .discard: true
            }
        if !isExpected { self.fail(.transfers, "\(machine) has \(command) for \(id), which is not there so, after \(input)") }
    }

    /// Checks that a complete file has its sender's attributes, and that a directory has none beside its tree.
    mutating func checkAttributes(of content: Content, _ mover: TransferMover, on machine: Int) {
        guard let sender = self.machine(of: mover.row.peerID), !self.machines[sender].isHostile, content.count > 0 else { return }
        let told = self.machines[sender].shelf.bodies[mover.row.id] ?? content.attributes
        let expected = mover.row.kind == .file ? told : nil
        guard mover.attributes != expected else { return }
        let words = "\(mover.attributes.map { "\($0)" } ?? "none") and not \(expected.map { "\($0)" } ?? "none")"
        self.fail(.transfers, "\(machine) gives \(mover.row.id) the attributes \(words)")
    }

    // MARK: Events

    mutating func note(_ event: CoreEvent, _ row: Resource, at machine: Int) {
        switch event {
        case .resourceOffered: self.counts[.resourcesOffered] += 1
        case .resourceProgress: if row.state == .paused { self.counts[.resourcesPaused] += 1 }
        case .resourceFinished:
            // No world lasts that long, whatever the clocks have shown.
            if row.errorMessage?.hasSuffix("did not come back in time") == true, self.clock.now < EarshotLimits.resourceResumeTime {
                self.fail(.kept, "\(machine) gives \(row.id) up before its time")
            }
            self.noteFinished(row, at: machine)
            if row.direction == .outgoing, row.peerID.kind == .localsend { self.checkAtDevice(row, of: machine) }
        default: break
        }
    }

    private mutating func noteFinished(_ row: Resource, at machine: Int) {
        switch (row.state, row.direction) {
        case (.completed, .incoming):
            self.counts[.resourcesReceived] += 1
            if row.group != nil { self.counts[.sharesReceived] += 1 }
            let shelf = self.machines[machine].shelf
            guard shelf.rows[row.id]?.state == .completed, let content = shelf.received[row.id], content.count == row.size else {
                return self.fail(.transfers, "\(machine) tells that \(row.id) is complete, which is not on disk")
            }
            if !row.inSpool, shelf.placed[row.id] != content {
                self.fail(.transfers, "\(machine) tells that \(row.id) is in place, where it is not")
            }
        case (.completed, .outgoing):
            self.counts[.resourcesSent] += 1
            guard let other = self.machine(of: row.peerID), !self.machines[other].isHostile else { return }
            let (sent, received) = (self.machines[machine].shelf.everSent[row.id] ?? [], self.machines[other].shelf.received[row.id])
            guard let received, received.count == row.size, received.count == 0 || sent.contains(received) else {
                let words = "\(sent) and \(received.map { "\($0)" } ?? "nothing")"
                return self.fail(.transfers, "\(machine) tells that \(other) has \(row.size) bytes of \(row.id): \(words)")
            }
        case (.cancelled, _): self.counts[.resourcesCancelled] += 1
        default: self.counts[row.error == .timedOut ? .resourcesTimedOut : .resourcesFailed] += 1
        }
    }

    // MARK: Answers to callers

    mutating func check(_ answer: Answer, to request: ResourceRequest, _ before: Resource?, of machine: Int) {
        let shelf = self.machines[machine].shelf
        var isExpected = false
        switch (request, answer) {
        case (.send(let drafts), .resources(let rows)):
            isExpected = rows.map(\.id) == drafts.map(\.id)
            self.counts[.resources] += rows.count
            for draft in drafts where draft.isQueued && shelf.rows[draft.id] == nil {
                self.fail(.committed, "\(machine) answers that \(draft.id) waits, which is not on disk")
            }
        case (.sendBody(let draft), .resource(let row)):
            isExpected = row.id == draft.id && row.state.isFinal
            self.counts[.resources] += 1
            self.machines[machine].transfers.bodies.remove(row.id)
        case (.respond(let id, let decision), .resource(let row)):
            isExpected = row.id == id && (decision == .accept || row.state == .cancelled)
        case (.removeShare(let share), .resources(let rows)):
            isExpected = rows.allSatisfy { $0.shareID == share && $0.state.isFinal }
            if rows.isEmpty, let left = shelf.rows.values.first(where: { $0.shareID == share }) {
                self.fail(.committed, "\(machine) answers that \(share) is gone, and \(left.id) of it is on disk")
            }
        case (.remove(let id), .resource(let row)): isExpected = row.id == id && row.state.isFinal
        case (.remove(let id), .done):
            isExpected = true
            // A resource that was offered again meanwhile is a new one.
            let listed = try? self.machines[machine].core?.resource(id, at: self.clock.now(skew: .zero).monotonic)
            let isAnother = listed.map { $0.created != before?.created } ?? false
            if !isAnother, shelf.rows[id] != nil || shelf.complete[id] != nil {
                self.fail(.committed, "\(machine) answers that \(id) is gone, which is on disk")
            }
        case (.dropContent(let id), .done):
            isExpected = true
            // An unfinished transfer has no content to drop.
            let isOver = (try? self.machines[machine].core?.resource(id, at: .start))?.state.isFinal == true
            if isOver, shelf.rows[id]?.inSpool == true || shelf.complete[id] != nil {
                self.fail(.committed, "\(machine) answers that the content of \(id) is gone, which the disk has")
            }
        default: break
        }
        if !isExpected { self.fail(.answers, "\(machine) answers \(request) with \(answer)") }
    }

    // MARK: Final state

    /// Checks that no resumable transfer stands still, and that ended transfers leave nothing behind.
    mutating func checkResources(of machine: Int, _ core: NodeCore) {
        for row in core.resources(at: self.clock.now(skew: .zero).monotonic) where !row.state.isFinal {
            if let group = row.group?.id, core.keptGroup(group)?.members.contains(row.peerID) != true {
                self.fail(.transfers, "\(row.id) waits at \(machine) for \(row.peerID), which is no member of \(group)")
            }
            guard let other = self.machine(of: row.peerID), !self.machines[other].isHostile,
                let far = self.machines[other].core, core.isAttached(Conversation(with: row.peerID, in: row.group?.id))
            else { continue }
            let theirs = try? far.resource(row.id, at: self.clock.now(skew: .zero).monotonic)
            if let theirs, row.direction == .outgoing, theirs.state == .offered { continue }
            // The sender's report of the end may be lost with the connection: the transfer then waits until it expires.
            if row.direction == .incoming, theirs?.state.isFinal != false { continue }
            if row.direction == .incoming, row.state == .offered { continue }
            let there = theirs.map { "\($0.state)" } ?? "unknown"
            self.fail(.transfers, "\(row.id) stands still at \(machine): \(row.state), and there \(there)")
        }
        let shelf = self.machines[machine].shelf
        for id in shelf.partial.keys where shelf.rows[id]?.state.isFinal != false && (try? core.resource(id, at: .start)) == nil {
            self.fail(.transfers, "\(machine) has unfinished content of \(id), of which nobody knows")
        }
        // Beyond the limit the oldest rows are removed, which the disk may refuse.
        if shelf.rows.count < EarshotLimits.finishedTransfers,
            let id = shelf.rows.keys.first(where: { (try? core.resource($0, at: .start)) == nil })
        {
            self.fail(.committed, "\(machine) has a row of \(id) on disk alone")
        }
        for row in shelf.rows.values where row.state == .completed && row.inSpool && shelf.complete[row.id] == nil {
            self.fail(.committed, "\(machine) has on disk that the content of \(row.id) is here, which is gone")
        }
    }
}

extension MonotonicInstant {
    /// A time for rows that do not move, for which the time does not matter.
    fileprivate static var start: Self { MonotonicInstant(nanoseconds: 0) }
}
