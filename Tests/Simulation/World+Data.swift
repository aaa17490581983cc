import EarshotCore
import EarshotWire
import OrderedCollections

/// A bulk transfer between two machines, for which both want a data connection.
struct Transfer {
    let id: TransferID
    let machines: [Int]
}

/// A data connection in the network.
struct DataConnection {
    let transfer: TransferID
    /// The machines that use it now.
    var users: [Int] = []
    /// Whether one side has closed it, or has never accepted it.
    var isClosed = false
    /// The number of bytes in flight.
    var bytes = 0
    /// The content of a resource in flight, and whether it is the last part.
    var content: Content?
    var isWhole = false
}

/// A dial for a data connection, with its token.
struct DataDial {
    let from: Int
    let run: Int
    let to: Int
    let transfer: TransferID
    let token: DataToken
    let attempt: UInt64
}

/// The data connections of one machine's shell (`Node+Data.swift`).
struct DataSide {
    struct Ticket {
        let transfer: TransferID
        let token: DataToken
        let peer: PeerID
        let attempt: UInt64
    }

    struct Hearer {
        let transfer: TransferID
        /// The stream whose core decides about the connection.
        let stream: StreamID?
        let resource: ResourceID?
        let began: Instant
        var isTold = false
        var connection: Int?
    }

    var tickets: [Ticket] = []
    var attempts: UInt64 = 0
    /// The waiting movers by attempt, and the attempt of each transfer.
    var hearers: OrderedDictionary<UInt64, Hearer> = [:]
    var open: OrderedDictionary<TransferID, UInt64> = [:]
    /// The connection that is being reported as attached.
    var attached: Int?
}

/// Data connections.
extension World {
    /// Begins a transfer over a data connection: the first side now, the other when it learns of it.
    mutating func move(from machine: Int, to peer: PeerID) {
        guard let facts = self.machines[machine].core?.facts(of: peer), facts.isAttached, let id = facts.link else { return }
        let (link, side) = Wire.place(id)
        guard self.links[link].ends[side].isOpen, !self.links[link].isHostile else { return }
        var transfer = TransferID(high: 0, low: UInt64(self.transfers.count + 1))
        // Some transfers are retried.
        let other = self.links[link].ends[1 - side].machine
        if let last = self.transfers.last, last.machines.contains(machine), last.machines.contains(other),
            self.links[link].random.chance(30)
        {
            transfer = last.id
        } else {
            self.transfers.append(Transfer(id: transfer, machines: [machine, other]))
        }
        self.transmit(.agreement(transfer), from: side, on: link)
        self.openData(transfer, machine, link, side)
    }

    /// Begins the transfer on the other side, which has learned of it.
    mutating func agreed(_ transfer: TransferID, on link: Int, _ side: Int) {
        let end = self.links[link].ends[side]
        guard let facts = self.machines[end.machine].core?.facts(of: end.facts.peer.id), facts.link == Wire.id(link, side),
            facts.session != nil
        else { return }
        self.openData(transfer, end.machine, link, side)
    }

    mutating func openData(
        _ transfer: TransferID, _ machine: Int, _ link: Int, _ side: Int, stream: StreamID? = nil, resource: ResourceID? = nil
    ) {
        self.closeData(transfer, machine)
        guard self.machines[machine].core != nil else { return }
        self.machines[machine].data.attempts += 1
        let attempt = self.machines[machine].data.attempts
        self.machines[machine].data.open[transfer] = attempt
        self.machines[machine].data.hearers[attempt] = DataSide.Hearer(
            transfer: transfer, stream: stream, resource: resource, began: self.clock.now)
        let event = DataPathEvent.wanted(
            self.links[link].ends[side].facts.peer.id, link: Wire.id(link, side), isInitiator: side == 0, attempt: attempt)
        self.hand(.dataPath(transfer, event), to: machine)
    }

    mutating func closeData(_ transfer: TransferID, _ machine: Int) {
        guard let attempt = self.machines[machine].data.open[transfer] else { return }
        self.forgetData(attempt, on: machine)
        self.hand(.dataPath(transfer, .over), to: machine)
    }

    /// Ends an attempt on one machine. The connection that it led to ends for the other side too.
    private mutating func forgetData(_ attempt: UInt64, on machine: Int) {
        guard let hearer = self.machines[machine].data.hearers.removeValue(forKey: attempt) else { return }
        if self.machines[machine].data.open[hearer.transfer] == attempt { self.machines[machine].data.open[hearer.transfer] = nil }
        if let connection = hearer.connection { self.leaveData(connection, machine) }
    }

    private mutating func leaveData(_ connection: Int, _ machine: Int) {
        self.dataConnections[connection].users.removeAll { $0 == machine }
        self.refuseData(connection)
    }

    /// Handles a data connection that the other side has left.
    mutating func loseData(_ machine: Int, _ transfer: TransferID, _ attempt: UInt64) {
        guard self.machines[machine].data.open[transfer] == attempt, self.machines[machine].data.hearers[attempt]?.connection != nil else {
            return
        }
        if let stream = self.machines[machine].data.hearers[attempt]?.stream { return self.receiveBytes(stream, of: machine) }
        if let resource = self.machines[machine].data.hearers[attempt]?.resource { return self.stirData(resource, on: machine) }
        self.closeData(transfer, machine)
    }

    // MARK: Dialling

    /// Handles the arrival of a dial. If its token is expected, both sides get an end, this side first, without waiting for the other's
    /// answer.
    mutating func dialData(_ dial: DataDial) {
        guard self.isRunning(dial.from, dial.run) else { return }
        let isReached =
            self.isAwake(dial.to) && self.network.parted(dial.from, dial.to, at: self.clock.now) == nil
            && self.machines[dial.to].shutUntil <= self.clock.now
        guard isReached else {
            let event = DataPathEvent.dialFailed(attempt: dial.attempt)
            return self.clock.plan(.input(dial.from, run: dial.run, .dataPath(dial.transfer, event)), after: .seconds(3))
        }
        self.dataConnections.append(DataConnection(transfer: dial.transfer))
        let connection = self.dataConnections.count - 1
        self.attach(connection, to: dial.from, dial.transfer, dial.attempt)
        let from = self.machines[dial.from].id
        guard
            let place = self.machines[dial.to].data.tickets.firstIndex(where: {
                $0.token == dial.token && $0.transfer == dial.transfer && $0.peer == from
            })
        else { return self.refuseData(connection) }
        let ticket = self.machines[dial.to].data.tickets.remove(at: place)
        let run = self.machines[dial.to].run
        self.clock.plan(
            .dataAttached(dial.to, run: run, dial.transfer, attempt: ticket.attempt, connection: connection),
            after: self.dataLatency(2))
    }

    /// Returns the delay of a dial: usually a moment, sometimes beyond the time limit of an attempt until the faults stop.
    private func dataLatency(_ purpose: UInt64) -> Duration {
        guard !self.isCalm else { return .milliseconds(1) }
        var random = SplitMix64(seed: self.schedule.seed, 10, purpose, UInt64(self.dataConnections.count), UInt64(self.transfers.count))
        return .milliseconds(random.chance(80) ? 1 : random.number(in: 1...17_000))
    }

    /// Closes a connection that one side refuses. The mover is told now, or when it gets to it.
    mutating func refuseData(_ connection: Int) {
        self.dataConnections[connection].isClosed = true
        self.dataConnections[connection].bytes = 0
        // A part of the bytes in flight has already arrived.
        self.dataConnections[connection].content?.count /= 3
        self.dataConnections[connection].isWhole = false
        let transfer = self.dataConnections[connection].transfer
        for machine in self.dataConnections[connection].users {
            guard let attempt = self.machines[machine].data.open[transfer] else { continue }
            self.clock.plan(.dataLost(machine, run: self.machines[machine].run, transfer, attempt: attempt), after: .milliseconds(2))
        }
    }

    mutating func attach(_ connection: Int, to machine: Int, _ transfer: TransferID, _ attempt: UInt64) {
        self.machines[machine].data.attached = connection
        self.hand(.dataPath(transfer, .attached(attempt: attempt)), to: machine)
        self.machines[machine].data.attached = nil
        let isUsed = self.dataConnections[connection].users.contains(machine)
        if !isUsed || self.dataConnections[connection].isClosed { self.refuseData(connection) }
    }

    // MARK: Effects

    mutating func carryOut(_ effect: DataPathEffect, _ transfer: TransferID, on machine: Int) {
        switch effect {
        case .expect(let token, let peer, _, let attempt):
            self.machines[machine].data.tickets.append(DataSide.Ticket(transfer: transfer, token: token, peer: peer, attempt: attempt))
        case .dial(let token, let peer, _, let attempt):
            guard let other = self.machine(of: peer) else { return }
            let dial = DataDial(
                from: machine, run: self.machines[machine].run, to: other, transfer: transfer, token: token, attempt: attempt)
            self.clock.plan(.dataDials(dial), after: self.dataLatency(1))
        case .revoke: self.machines[machine].data.tickets.removeAll { $0.transfer == transfer }
        case .use(let attempt): self.settle(attempt, self.machines[machine].data.attached, on: machine)
        case .doWithout(let attempt): self.settle(attempt, nil, on: machine)
        case .drop: break
        case .close(let attempt): self.forgetData(attempt, on: machine)
        }
    }

    private mutating func settle(_ attempt: UInt64, _ connection: Int?, on machine: Int) {
        guard let hearer = self.machines[machine].data.hearers[attempt] else { return }
        guard !hearer.isTold else {
            return self.fail(.dataPaths, "\(machine) is told twice what has become of \(hearer.transfer)")
        }
        self.machines[machine].data.hearers[attempt]?.isTold = true
        self.machines[machine].data.hearers[attempt]?.connection = connection
        self.counts[connection == nil ? .dataWithout : .dataUsed] += 1
        if let connection { self.dataConnections[connection].users.append(machine) }
        if let stream = self.machines[machine].data.hearers[attempt]?.stream {
            self.hand(.stream(stream, .dataOpened(connection != nil)), to: machine)
        }
        if let resource = self.machines[machine].data.hearers[attempt]?.resource {
            self.hand(.transfer(resource, .dataOpened(connection != nil)), to: machine)
        }
    }
}
