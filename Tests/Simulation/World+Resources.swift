import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// Resources: the users' calls, and the shell's work for the core outside of movers.
extension World {
    // MARK: Users

    /// Sends a file or a directory like Node+ResourceSending.swift: by its path, queued, as a body, or written to the spool first.
    mutating func sendFile(_ size: Int, _ mode: Int, from machine: Int, to name: String) {
        guard let core = self.machines[machine].core, let id = (try? core.recipients([name]))?.first else { return }
        self.resources += 1
        let resource = ResourceID(high: UInt64(machine + 1), low: UInt64(self.resources))
        let content = Content(stamp: UInt64(self.resources), count: UInt64(size))
        let isQueued = mode % 5 == 1 || mode % 5 == 4
        guard !isQueued || (try? core.checkQueue(adding: 1)) != nil else { return }
        self.machines[machine].shelf.sources[resource] = content
        if !isQueued { self.hand(.need(id, .session), to: machine) }
        if id.kind == .localsend { self.devices.sent[resource] = self.clock.now }
        let source: StoredTransfer.Source =
            switch mode % 5 {
            case 2: .body
            case 4: .spool
            default: .path
            }
        let draft = ResourceDraft(
            id: resource, to: Conversation(with: id), name: "x", kind: mode % 5 == 3 ? .directory : .file, size: content.count,
            path: "/x",
            source: source, stamp: source == .body ? "" : "\(content.stamp)", digest: size % 2 == 0 ? .xxh3 : .sha256,
            isQueued: isQueued, attributes: source == .body ? content.attributes : nil)
        if source == .body { self.machines[machine].shelf.bodies[resource] = content.attributes }
        self.call(.resource(source == .body ? .sendBody(draft) : .send([draft])), on: machine)
        if source == .body, self.machines[machine].core != nil { self.machines[machine].transfers.bodies.append(resource) }
    }

    /// Sends a resource to all other members of a group: by its path, or as a body that is written to the spool first.
    mutating func shareFile(_ action: Action, from machine: Int, to group: GroupID) {
        guard let core = self.machines[machine].core, let members = try? core.conversations(inGroup: group.description),
            (try? core.checkQueue(adding: members.count)) != nil
        else { return }
        self.resources += 1
        let content = Content(stamp: UInt64(self.resources), count: UInt64(action[2]))
        let share = ShareID(high: UInt64(machine + 1), low: UInt64(self.resources))
        let isKept = action[3] % 3 == 2
        let drafts = members.map { conversation in
            self.resources += 1
            let resource = ResourceID(high: UInt64(machine + 1), low: UInt64(self.resources))
            self.machines[machine].shelf.sources[resource] = content
            return ResourceDraft(
                id: resource, to: conversation, shareID: share, name: "x", kind: action[3] % 3 == 1 ? .directory : .file,
                size: content.count,
                path: isKept ? nil : "/x", source: isKept ? .spool : .path, stamp: "\(content.stamp)",
                digest: action[2] % 2 == 0 ? .xxh3 : .sha256, isQueued: action[3] % 2 == 1)
        }
        self.counts[.shares] += 1
        self.call(.resource(.send(drafts)), on: machine)
    }

    mutating func resource(_ action: Action, on machine: Int) {
        let rows = self.machines[machine].core?.resources(at: self.clock.now(skew: .zero).monotonic) ?? []
        switch action.verb {
        case .answerFile:
            let waiting = rows.filter { $0.direction == .incoming && (action[1] % 7 == 0 || $0.state == .offered) }
            guard !waiting.isEmpty else { return }
            let decision = action[2] % 4 == 0 ? Resource.Decision.refuse : .accept
            self.call(.resource(.respond(waiting[action[1] % waiting.count].id, decision)), on: machine)
        case .removeFile:
            guard !rows.isEmpty else { return }
            let row = rows[action[1] % rows.count]
            if row.peerID.kind == .localsend { self.devices.removed.append(row.id) }
            switch action[2] % 3 {
            case 0:
                if let share = row.shareID, action[1] % 2 == 0 { return self.call(.resource(.removeShare(share)), on: machine) }
                self.call(.resource(.remove(row.id)), on: machine)
            case 1: self.call(.resource(.dropContent(row.id)), on: machine)
            default:
                // Only a body has a caller that can disconnect.
                guard self.machines[machine].transfers.bodies.contains(row.id) else { return }
                self.hand(.transfer(row.id, .abandoned), to: machine)
            }
        case .changeFile:
            let sources = self.machines[machine].shelf.sources.keys
            guard !sources.isEmpty else { return }
            self.resources += 1
            self.machines[machine].shelf.sources[sources[action[1] % sources.count]] = Content(
                stamp: UInt64(self.resources), count: UInt64(action[2]))
        default: break
        }
    }

    /// Accepts every offer for the user.
    mutating func acceptAll(on machine: Int) {
        for row in self.machines[machine].core?.resources(at: self.clock.now(skew: .zero).monotonic) ?? []
        where row.direction == .incoming && row.state == .offered {
            self.call(.resource(.respond(row.id, .accept)), on: machine)
        }
    }

    // MARK: Effects

    /// Carries out a command like Node+TransferMovers.swift.
    mutating func carryOut(_ command: TransferCommand, _ id: ResourceID, on machine: Int) {
        switch command {
        case .open(let row, let source): self.beginMover(TransferMover(row: row, source: source), with: command, on: machine)
        case .resume(let row, _, _), .receiveBody(let row, _, _, _):
            self.beginMover(TransferMover(row: row, source: .none), with: command, on: machine)
        case .compare, .send, .sendOverData, .digest, .begin, .receiveData, .settle: self.order(.command(command), id, on: machine)
        case .checkRoom: self.plan(.room(id), on: machine)
        // The movers' bytes have their own random pace.
        case .pace: break
        case .place(let row): self.plan(.place(row.id), on: machine)
        case .removeContent(let call):
            if call == nil, self.order(.command(command), id, on: machine) { return }
            self.plan(.remove(id, call), on: machine)
        case .look:
            guard let number = self.machines[machine].transfers.current[id], let mover = self.machines[machine].transfers.movers[number]
            else { return }
            self.hand(.transfer(id, .moved(to: mover.position)), to: machine)
        case .stop(let isKept):
            guard let number = self.machines[machine].transfers.current.removeValue(forKey: id) else {
                return self.hand(.transfer(id, .stopped), to: machine)
            }
            self.machines[machine].transfers.movers[number]?.isStopped = true
            self.machines[machine].transfers.movers[number]?.isKept = isKept
            let mover = self.machines[machine].transfers.movers[number]
            if mover?.data != nil || mover?.body != nil {
                self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: .milliseconds(1))
            }
            self.stir(number, on: machine)
        case .discard(let source): if source == .none { self.machines[machine].shelf.partial.removeValue(forKey: id) }
        }
    }

    mutating func placeLeft(_ rows: [Resource], on machine: Int) {
        for row in rows { self.plan(.place(row.id), on: machine) }
    }

    func report(_ report: TransferReport, of id: ResourceID, on machine: Int) -> Happening {
        .input(machine, run: self.machines[machine].run, .transfer(id, report))
    }

    // MARK: The disk

    /// The work of a disk outside of movers.
    enum ShelfWork {
        case room(ResourceID)
        case place(ResourceID)
        case remove(ResourceID, CallID?)
    }

    /// Returns the duration of a disk operation.
    mutating func diskTime(_ machine: Int) -> Duration {
        self.shelfWorks += 1
        var random = SplitMix64(seed: self.schedule.seed, 13, UInt64(machine), UInt64(self.shelfWorks))
        if self.machines[machine].disk.modeEnd <= self.clock.now { self.machines[machine].disk.mode = nil }
        let isSlow = self.machines[machine].disk.mode == .slow
        return isSlow ? .milliseconds(random.number(in: 100...6_000)) : .microseconds(random.number(in: 50...5_000))
    }

    /// Returns the present error of a disk, if any.
    func diskFailure(_ machine: Int) -> TransferFailure? {
        let error: EarshotError
        switch self.machines[machine].disk.mode {
        case .failing: error = EarshotError(.storage, "the disk has failed")
        case .full: error = EarshotError(.noSpace, "the disk is full")
        case .slow, nil: return nil
        }
        return TransferFailure(error, told: Refusal(code: .noSpace))
    }

    private mutating func plan(_ work: ShelfWork, on machine: Int) {
        let time = self.diskTime(machine)
        self.clock.plan(.shelves(machine, run: self.machines[machine].run, work), after: time)
    }

    mutating func work(_ work: ShelfWork, on machine: Int) {
        let failure = self.diskFailure(machine)
        switch work {
        case .room(let id): self.hand(.transfer(id, .room(failure)), to: machine)
        case .place(let id):
            self.shelfWorks += 1
            var random = SplitMix64(seed: self.schedule.seed, 14, UInt64(machine), UInt64(self.shelfWorks))
            guard let content = self.machines[machine].shelf.complete[id] else {
                return self.hand(.transfer(id, .placed(.failure(EarshotError(.notFound, "there is no such content")))), to: machine)
            }
            if failure != nil || random.chance(10) {
                let code: EarshotError.Code = failure == nil && random.chance(50) ? .conflict : .storage
                return self.hand(.transfer(id, .placed(.failure(EarshotError(code, "it cannot be put there")))), to: machine)
            }
            self.counts[.resourcesPlaced] += 1
            self.machines[machine].shelf.placed[id] = content
            self.hand(.transfer(id, .placed(.success("/x"))), to: machine)
        case .remove(let id, let call):
            self.machines[machine].shelf.complete.removeValue(forKey: id)
            self.machines[machine].shelf.partial.removeValue(forKey: id)
            self.hand(.transfer(id, .contentRemoved(for: call, nil)), to: machine)
        }
    }
}
