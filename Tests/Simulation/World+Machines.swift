import EarshotCore
import EarshotWire
import OrderedCollections

/// The start, stop, suspension and crash of machines, and the shell's work for the core.
extension World {
    // MARK: Starting

    mutating func start(_ machine: Int) {
        guard self.machines[machine].core == nil, !self.machines[machine].isHostile else { return }
        self.machines[machine].run += 1
        if self.machines[machine].forgetsTime {
            self.machines[machine].skew = WallTime(milliseconds: 0) - (Clock.began + self.clock.now)
            self.machines[machine].clockSet = self.clock.now(skew: self.machines[machine].skew).wall
        }
        let running = self.machines[machine].runningNoted ?? self.clock.now(skew: self.machines[machine].skew).wall
        self.machines[machine].runningNoted = running
        self.machines[machine].runningBase = running
        self.machines[machine].runningSince = self.clock.now
        let (peers, sessions, groups) = self.machines[machine].disk.load()
        let own = self.machines[machine]
        let random = SplitMix64(seed: self.schedule.seed, 3, UInt64(machine), UInt64(own.run))
        var core = NodeCore(id: own.id, key: Self.key(of: machine), settings: own.settings, hasDiscovery: true, random: random)
        core.load(peers, sessions, groups)
        self.machines[machine].core = core
        for peer in peers where peer.isTLSPinned { self.machines[machine].pins.apply(.keep, to: peer.id) }
        self.machines[machine].blocked = peers.filter { $0.trust == .blocked }.map(\.id)
        if own.run > 1 { self.checkOpinions(of: machine, afterStart: true) }
        self.hand(.outbox(self.machines[machine].mailbox.load()), to: machine)
        self.hand(.transfers(self.machines[machine].shelf.load(), self.machines[machine].shelf.ended), to: machine)
        if let kept = self.machines[machine].core?.spooled { self.machines[machine].shelf.sweep(keeping: kept.complete, kept.unfinished) }
        self.hand(.start, to: machine)
    }

    /// Returns the machine's clocks.
    func now(of machine: Int) -> Now {
        let own = self.machines[machine]
        return self.clock.now(skew: own.skew, running: own.runningBase + (self.clock.now - own.runningSince))
    }

    // MARK: Stopping

    /// Crashes the daemon: pending effects are dropped, and no caller is answered.
    mutating func crash(_ machine: Int, pause: Duration) {
        self.counts[.crashes] += 1
        if !self.machines[machine].disk.pending.isEmpty { self.counts[.lostCommits] += 1 }
        self.doubt(machine)
        self.noteForgotten(of: machine, isKilled: true)
        for link in self.links.indices {
            for side in 0..<2 where self.links[link].ends[side].machine == machine { self.vanish(link, side) }
        }
        self.machines[machine].powerOff()
        self.clock.plan(.starts(machine, run: self.machines[machine].run), after: pause)
    }

    /// Stops the daemon in order, like `Node.stop`.
    mutating func stop(_ machine: Int) {
        guard self.machines[machine].core != nil, !self.machines[machine].isStopping else { return }
        self.dealWithAll(on: machine)
        guard self.machines[machine].core != nil else { return }
        self.machines[machine].isStopping = true
        self.machines[machine].crash = nil
        self.hand(.stop, to: machine)
        self.hand(.streamsOver, to: machine)
        for link in self.machines[machine].links.keys { self.close(link, nil) }
        self.clock.plan(.drains(machine, run: self.machines[machine].run), after: .milliseconds(1_100))
    }

    /// Ends the daemon once everything is on disk.
    mutating func drain(_ machine: Int) {
        guard let core = self.machines[machine].core else { return }
        guard core.undecidedCount == 0, core.uncommittedTransfers == 0, self.machines[machine].disk.pending.isEmpty,
            self.machines[machine].mailbox.pending.isEmpty
        else {
            return self.clock.plan(.drains(machine, run: self.machines[machine].run), after: .milliseconds(100))
        }
        self.hand(.stopped, to: machine)
        // The running time of a crashed daemon does not count.
        self.machines[machine].runningNoted = self.now(of: machine).running
        if let call = self.machines[machine].calls.first {
            self.fail(.answers, "\(machine) has ended and left \(call.command) unanswered")
        }
        self.counts[.orderlyStops] += 1
        self.noteForgotten(of: machine, isKilled: false)
        for link in self.links.indices {
            for side in 0..<2 where self.links[link].ends[side].machine == machine { self.vanish(link, side) }
        }
        self.machines[machine].powerOff()
    }

    // MARK: Suspending

    mutating func suspend(_ machine: Int, for time: Duration) {
        guard self.machines[machine].core != nil, self.machines[machine].suspendedUntil == nil else { return }
        self.counts[.suspends] += 1
        self.machines[machine].suspendedUntil = self.clock.now + time
        self.clock.plan(.resumes(machine), after: time)
        for link in self.links.indices {
            for side in 0..<2 where self.links[link].ends[side].machine == machine { self.planListening(link, 1 - side) }
        }
    }

    mutating func resume(_ machine: Int) {
        guard self.machines[machine].suspendedUntil != nil else { return }
        self.machines[machine].suspendedUntil = nil
        let missed = self.machines[machine].missed
        self.machines[machine].missed = []
        // The kernel delivers missed events in order and within moments.
        for what in missed { self.clock.plan(what, at: self.clock.now) }
    }

    // MARK: The disk

    /// Commits the oldest transaction, or fails it. The machine is told a little later.
    mutating func commit(on machine: Int) {
        guard let (commit, operations) = self.machines[machine].disk.pending.first else { return }
        self.machines[machine].disk.pending.removeFirst()
        if self.machines[machine].disk.modeEnd <= self.clock.now { self.machines[machine].disk.mode = nil }
        let left = self.machines[machine].disk.sessionsLeft(by: operations)
        let error = self.machines[machine].disk.commit(operations, as: commit)
        if error == nil {
            for peer in left {
                self.machines[machine].mailbox.endSession(with: peer)
                self.machines[machine].shelf.endSession(with: peer)
            }
            for operation in operations { self.machines[machine].shelf.apply(operation) }
        }
        self.counts[error == nil ? .commits : .failedCommits] += 1
        self.trace?.note("\(machine) disk: commit \(commit?.number ?? 0) \(error.map { "failed: \($0)" } ?? "is there")")
        let run = self.machines[machine].run
        if let commit { self.clock.plan(.input(machine, run: run, .committed(commit, error)), after: .microseconds(30)) }
        guard commit == nil, error != nil else { return }
        let refused = OrderedSet(operations.compactMap(\.resource))
        self.clock.plan(.input(machine, run: run, .rowsRefused(Array(refused))), after: .microseconds(30))
    }

    private mutating func ask(_ commit: CommitID?, _ operations: [StoreOperation], on machine: Int) {
        let own = self.machines[machine]
        var random = SplitMix64(seed: self.schedule.seed, 4, UInt64(machine), UInt64(own.run), commit?.number ?? 0)
        self.machines[machine].disk.pending.append((commit, operations))
        let time: Duration =
            own.disk.mode == .slow ? .milliseconds(random.number(in: 100...6_000)) : .microseconds(random.number(in: 100...20_000))
        self.clock.plan(.commits(machine, run: own.run), after: time)
    }

    // MARK: Effects

    /// Carries out an effect like `Node+Core.swift`.
    mutating func carryOut(_ effect: Effect, on machine: Int) {
        switch effect {
        case .send(let link, let frames): self.send(frames, on: link)
        case .close(let link, let refusal): self.close(link, refusal)
        case .dial(let peer, let plan): self.dial(peer, plan, from: machine)
        case .dialConfigured(let peer): self.dial(peer, from: machine)
        case .commit(let commit, let operations): self.ask(commit, operations, on: machine)
        case .answer(let call, _): self.machines[machine].calls.removeAll { $0.id == call }
        case .hold(let hold, _, _): self.machines[machine].holds.append(hold)
        case .release(let hold): self.machines[machine].holds.remove(hold)
        case .pin(let peer, let pin): self.machines[machine].pins.apply(pin, to: peer)
        case .dataPath(let transfer, let effect): self.carryOut(effect, transfer, on: machine)
        case .sendUnreliable(let link, let messages): self.send(messages, on: link)
        case .flushSoon(let conversation):
            self.clock.plan(.input(machine, run: self.machines[machine].run, .flush(conversation)), after: .microseconds(20))
        case .keep(let id, let changes): self.ask(.keep(id, changes), on: machine)
        case .deliver(let link, let messages):
            if let peer = self.machines[machine].links[link] { self.ask(.deliver(peer, link, messages), on: machine) }
        case .loadBodies(let conversation, let ids): self.ask(.bodies(conversation, ids), on: machine)
        case .loadReceipts(let peer): self.ask(.receipts(peer), on: machine)
        case .stream(let stream, let command): self.carryOut(command, stream, on: machine)
        case .transfer(let resource, let command): self.carryOut(command, resource, on: machine)
        case .keepTransfers(let changes): self.ask(nil, changes.flatMap(\.operations), on: machine)
        case .placeLeft(let rows): self.placeLeft(rows, on: machine)
        case .sign(let id, let inputs): self.sign(inputs, as: id, on: machine)
        case .check(let id, let checks): self.check(checks, as: id, on: machine)
        case .device(let effect): self.carryOut(effect, on: machine)
        case .publish, .log: break
        }
    }

}
