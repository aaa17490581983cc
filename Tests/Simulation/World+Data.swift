import EarshotCore
import EarshotWire
import OrderedCollections

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
    let began: Instant
}

/// The data connections of one machine's shell (`Node+Data.swift`).
struct DataSide {
    struct Ticket {
        let transfer: TransferID
        let token: DataToken
        let peer: PeerID
        let attempt: UInt64
        let began: Instant
    }

    var tickets: [Ticket] = []
    /// The data connections in use.
    var open: OrderedDictionary<TransferID, Int> = [:]
    /// The connection that is being reported as attached.
    var attached: Int?
}

/// Data connections.
extension World {
    private mutating func leaveData(_ connection: Int, _ machine: Int) {
        self.dataConnections[connection].users.removeAll { $0 == machine }
        self.refuseData(connection)
    }

    /// Handles a data connection that the other side has left.
    mutating func loseData(_ machine: Int, _ connection: Int) {
        let transfer = self.dataConnections[connection].transfer
        guard self.machines[machine].data.open[transfer] == connection else { return }
        if let stream = self.stream(of: transfer, on: machine) { return self.receiveBytes(stream, of: machine) }
        self.stirData(ResourceID(high: transfer.high, low: transfer.low), on: machine)
    }

    /// Returns the stream that a transfer's data connection carries; `nil` if it carries a resource.
    func stream(of transfer: TransferID, on machine: Int) -> StreamID? {
        let id = StreamID(high: transfer.high, low: transfer.low)
        return self.machines[machine].streams.movers[id] == nil ? nil : id
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
        self.attach(connection, to: dial.from, dial.attempt, since: dial.began)
        let from = self.machines[dial.from].id
        guard
            let place = self.machines[dial.to].data.tickets.firstIndex(where: {
                $0.token == dial.token && $0.transfer == dial.transfer && $0.peer == from
            })
        else { return self.refuseData(connection) }
        let ticket = self.machines[dial.to].data.tickets.remove(at: place)
        let run = self.machines[dial.to].run
        self.clock.plan(
            .dataAttached(dial.to, run: run, connection: connection, attempt: ticket.attempt, since: ticket.began),
            after: self.dataLatency(2))
    }

    /// Returns the delay of a dial: usually a moment, sometimes beyond the time limit of an attempt until the faults stop.
    private func dataLatency(_ purpose: UInt64) -> Duration {
        guard !self.isCalm else { return .milliseconds(1) }
        var random = SplitMix64(seed: self.schedule.seed, 10, purpose, UInt64(self.dataConnections.count), UInt64(self.resources))
        return .milliseconds(random.chance(80) ? 1 : random.number(in: 1...30_000))
    }

    /// Closes a connection that one side refuses. The mover is told now, or when it gets to it.
    mutating func refuseData(_ connection: Int) {
        self.dataConnections[connection].isClosed = true
        self.dataConnections[connection].bytes = 0
        // A part of the bytes in flight has already arrived.
        self.dataConnections[connection].content?.count /= 3
        self.dataConnections[connection].isWhole = false
        for machine in self.dataConnections[connection].users {
            self.clock.plan(.dataLost(machine, run: self.machines[machine].run, connection: connection), after: .milliseconds(2))
        }
    }

    /// Reports a data connection to the core. `began`: when this side asked for it, at the earliest.
    mutating func attach(_ connection: Int, to machine: Int, _ attempt: UInt64, since began: Instant) {
        self.machines[machine].data.attached = connection
        self.hand(.dataPath(self.dataConnections[connection].transfer, .attached(attempt: attempt)), to: machine)
        self.machines[machine].data.attached = nil
        let isUsed = self.dataConnections[connection].users.contains(machine)
        if !isUsed || self.dataConnections[connection].isClosed { self.refuseData(connection) }
        if isUsed, self.clock.now - began > EarshotLimits.dataDialTime {
            self.fail(.dataPaths, "\(machine) uses a data connection that came too late")
        }
    }

    // MARK: Effects

    mutating func carryOut(_ effect: DataPathEffect, _ transfer: TransferID, on machine: Int) {
        switch effect {
        case .expect(let token, let peer, _, let attempt):
            self.machines[machine].data.tickets.append(
                DataSide.Ticket(transfer: transfer, token: token, peer: peer, attempt: attempt, began: self.clock.now))
        case .dial(let token, let peer, _, let attempt):
            guard let other = self.machine(of: peer) else { return }
            let dial = DataDial(
                from: machine, run: self.machines[machine].run, to: other, transfer: transfer, token: token, attempt: attempt,
                began: self.clock.now)
            self.clock.plan(.dataDials(dial), after: self.dataLatency(1))
        case .revoke: self.machines[machine].data.tickets.removeAll { $0.transfer == transfer }
        case .use:
            guard let connection = self.machines[machine].data.attached else { return }
            if self.machines[machine].data.open.updateValue(connection, forKey: transfer) != nil {
                self.fail(.dataPaths, "\(machine) uses two data connections for \(transfer)")
            }
            self.dataConnections[connection].users.append(machine)
            self.counts[.dataUsed] += 1
        case .drop: break
        case .close:
            if let connection = self.machines[machine].data.open.removeValue(forKey: transfer) { self.leaveData(connection, machine) }
        }
    }
}
