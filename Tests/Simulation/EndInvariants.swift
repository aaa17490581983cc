import EarshotCore
import EarshotWire
import OrderedCollections

/// Invariants of the final state, after the faults have stopped and all activity has settled.
extension World {
    mutating func checkEnd() {
        guard self.violation == nil else { return }
        for machine in 0..<self.schedule.honest {
            let own = self.machines[machine]
            guard let core = own.core else { return self.fail(.answers, "\(machine) has not started again") }
            if core.undecidedCount > 0 || !own.disk.pending.isEmpty {
                return self.fail(.kept, "\(machine) has decisions under way that come to no end")
            }
            self.checkKept(of: machine, core, isEnd: true)
            if own.holds.count != core.figures.chargedTransfers, let hold = own.holds.first {
                return self.fail(.holds, "\(machine) never gives \(hold) back")
            }
            for call in own.calls {
                if case .awaitInvitation(let id) = call.command, (try? core.invitation(id))?.state == .pending { continue }
                if core.isAwaitingStream(call.id) || core.isAwaitingResource(call.id) { continue }
                return self.fail(.answers, "\(machine) never answers \(call.command)")
            }
            let wall = self.clock.now(skew: own.skew).wall
            // If the clock was set since then, the displayed end differs from the actual one.
            let overdue = core.invitations(all: false).first { $0.created >= own.clockSet && $0.end + .seconds(2) < wall }
            if let overdue { return self.fail(.deadlines, "\(machine) still has \(overdue), whose time is over") }
            self.checkDataPaths(of: machine)
            self.checkResources(of: machine, core)
            self.checkDevicesAtEnd(of: machine, core)
            for other in 0..<machine { self.checkPair(machine, other) }
            for other in 0..<self.schedule.honest where other != machine {
                self.checkStreams(machine, other)
                self.checkGroups(machine, other)
            }
        }
    }

    // MARK: Idle pairs

    /// Checks periodically that two machines agree on their session if their connection has no frames in flight and neither has an
    /// undecided call: crossing frames are resolved within a round trip.
    mutating func checkRestingPairs() {
        guard self.violation == nil, self.clock.now - self.lastLook >= .milliseconds(20) else { return }
        self.lastLook = self.clock.now
        for machine in 0..<self.schedule.honest where self.isAtRest(machine) {
            for (id, peer) in self.machines[machine].links {
                let (link, side) = Wire.place(id)
                let far = self.links[link].ends[1 - side].machine
                guard side == 0, !self.links[link].isHostile, self.isAtRest(far), self.isQuiet(link),
                    let own = self.machines[machine].core?.facts(of: peer), own.link == id,
                    let theirs = self.machines[far].core?.facts(of: self.machines[machine].id), theirs.link == Wire.id(link, 1),
                    own.session != theirs.session
                else { continue }
                let words = "\(own.session?.description ?? "none") and \(theirs.session?.description ?? "none")"
                self.fail(.agreement, "\(machine) and \(far) are in different sessions, and have nothing to say to each other: \(words)")
            }
        }
    }

    /// Whether a machine has no undecided call.
    private func isAtRest(_ machine: Int) -> Bool {
        let own = self.machines[machine]
        guard let core = own.core, !own.isStopping, own.suspendedUntil == nil, own.crash == nil else { return false }
        return own.inputs.isEmpty && core.undecidedCount == 0
    }

    /// Whether no frame is in flight on a connection, or waiting in a queue.
    private func isQuiet(_ link: Int) -> Bool {
        self.links[link].ends.allSatisfy { end in
            end.isQuiet && !self.machines[end.machine].queue.waiting.contains { $0.isOf(link) }
        }
    }

    // MARK: Final state

    /// Checks that both sides have the same session, attached to a connection.
    private mutating func checkPair(_ one: Int, _ other: Int) {
        guard let core = self.machines[one].core, let far = self.machines[other].core else { return }
        let (own, theirs) = (core.facts(of: self.machines[other].id), far.facts(of: self.machines[one].id))
        guard own?.session == theirs?.session else {
            let words = "\(own?.session?.description ?? "none") and \(theirs?.session?.description ?? "none")"
            return self.fail(.agreement, "\(one) and \(other) are in different sessions: \(words)")
        }
        guard own?.session != nil else {
            self.counts[.apart] += 1
            return
        }
        self.counts[.agreed] += 1
        guard own?.isAttached == true, theirs?.isAttached == true else {
            return self.fail(.agreement, "\(one) and \(other) are in a session that is not attached")
        }
        self.checkMessages(from: one, to: other)
        self.checkMessages(from: other, to: one)
    }

    private mutating func checkDataPaths(of machine: Int) {
        let tickets = self.machines[machine].data.tickets
        if tickets.contains(where: { self.clock.now - $0.began > EarshotLimits.dataDialTime + .seconds(1) }) {
            self.fail(.dataPaths, "\(machine) lets somebody dial without a time limit")
        }
        if !tickets.isEmpty, self.machines[machine].core?.figures.dataPaths == 0 {
            self.fail(.dataPaths, "\(machine) still lets somebody dial, for nothing")
        }
    }
}
