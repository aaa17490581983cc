import EarshotCore
import EarshotWire
import OrderedCollections

/// The invariants of what machines send to LocalSend devices.
extension World {
    /// Returns the attempts of a machine to send something to a device.
    private func attempts(_ cargo: DeviceCargo, to device: PeerID, from machine: Int) -> [DeviceAttempt] {
        self.devices.attempts.filter { $0.machine == machine && $0.cargo == cargo && $0.target.id == device }
    }

    // MARK: Attempts

    /// Checks that an attempt may begin: the device is free, the time is not over, and the device cannot have the content.
    mutating func checkShipment(_ shipment: DeviceShipment, to target: DeviceTarget, of machine: Int) {
        guard let core = self.machines[machine].core else { return }
        if !self.machines[machine].settings.devices.isOn { self.fail(.devices, "\(machine) sends to a device with LocalSend off") }
        if self.devices.attempts.contains(where: { $0.isLive && $0.target.id == target.id && self.isOf(machine, $0) }) {
            self.fail(.devices, "\(machine) sends two things to \(target.id) at once")
        }
        let cargo: DeviceCargo
        switch shipment {
        case .message(let id, _, _):
            cargo = .message(id)
            guard let message = core.outgoingMessage(id), message.deadline > self.now(of: machine).monotonic else {
                return self.fail(.deadlines, "\(machine) sends \(id) to a device after its deadline")
            }
            // A caller may send a message again under its id.
            let body = message.body ?? self.machines[machine].mailbox.body(of: id)
            if let number = body.flatMap(Self.number), self.machines[machine].repeated.contains(number) { return }
        case .resource(let row, _):
            cargo = .resource(row.id)
            let isQueued = self.machines[machine].shelf.going[row.id]?.isQueued == true
            if !isQueued, let sent = self.devices.sent[row.id], self.clock.now > sent + EarshotLimits.resourceReachTime {
                self.fail(.deadlines, "\(machine) sends \(row.id) to a device after its deadline")
            }
        }
        if self.attempts(cargo, to: target.id, from: machine).contains(where: { $0.mayHave && !$0.isForgotten }) {
            self.fail(.devices, "\(machine) sends \(cargo) again to \(target.id), which may have it")
        }
    }

    private func isOf(_ machine: Int, _ attempt: DeviceAttempt) -> Bool {
        attempt.machine == machine && attempt.run == self.machines[machine].run
    }

    mutating func checkStop(_ id: ShipmentID, of machine: Int) {
        let number = self.devices.number(of: id, at: machine, self.machines[machine].run)
        if number.map({ self.devices.attempts[$0].isLive }) != true {
            self.fail(.devices, "\(machine) stops \(id), which is not under way")
        }
    }

    /// Notes what a machine has been told of an attempt.
    mutating func note(_ report: ShipmentReport, of id: ShipmentID, at machine: Int) {
        guard let number = self.devices.number(of: id, at: machine, self.machines[machine].run) else { return }
        if self.devices.attempts[number].isLive, case .failed(.lost) = report { self.devices.attempts[number].isLost = true }
        // The upload begins with the answer to the offer, unless the attempt was stopped before.
        if case .accepted(let session) = report, self.devices.attempts[number].isLive {
            self.devices.attempts[number].toldSession = session
            self.devices.attempts[number].mayHave = true
        }
        if report.isEnd { self.devices.attempts[number].isOver = true }
    }

    /// Checks that every attempt under way has a purpose.
    mutating func checkAttempts(of machine: Int, _ core: NodeCore) {
        for attempt in self.devices.attempts where attempt.isLive && self.isOf(machine, attempt) {
            let isOpen: Bool
            switch attempt.cargo {
            case .message(let id):
                isOpen = core.outgoingMessage(id)?.recipients.contains { $0.peerID == attempt.target.id && !$0.status.isFinal } == true
            case .resource(let id):
                isOpen = (try? core.resource(id, at: self.clock.now(skew: .zero).monotonic))?.state.isFinal == false
            }
            if !isOpen { self.fail(.devices, "\(machine) does not stop to send \(attempt.cargo), which is over") }
            if !self.machines[machine].settings.devices.isOn {
                self.fail(.devices, "\(machine) still sends \(attempt.cargo), LocalSend off")
            }
            if self.machines[machine].blocked.contains(attempt.target.id), self.trust(in: attempt.target.id, at: machine) == .blocked {
                self.fail(.blocked, "\(machine) still sends \(attempt.cargo) to a blocked device")
            }
        }
    }

    /// Notes the attempts of which the disk of a machine knows nothing, because the machine was killed or the disk has refused to write.
    mutating func noteForgotten(of machine: Int, isKilled: Bool) {
        let own = self.machines[machine]
        let isRefusing = own.hasFailedToKeep || own.disk.mode == .failing || own.disk.mode == .full
        guard isKilled || isRefusing else { return }
        for number in self.devices.attempts.indices where self.devices.attempts[number].machine == machine {
            let attempt = self.devices.attempts[number]
            let isUnknown: Bool =
                switch attempt.cargo {
                case .message(let id):
                    own.mailbox.outbox[id]?.recipients.contains { $0.peerID == attempt.target.id && $0.status == .queued } == true
                case .resource(let id): own.shelf.rows[id]?.state == .offered
                }
            if isUnknown { self.devices.attempts[number].isForgotten = true }
        }
    }

    // MARK: Outcomes

    /// Checks the published outcomes at devices.
    mutating func checkAtDevices(_ statuses: [MessageStatus], of machine: Int) {
        for status in statuses where status.recipient.peerID.kind == .localsend {
            let recipient = status.recipient
            // A message that is not queued is forgotten at a restart, and a caller may send it again under its id.
            let isQueued = self.machines[machine].mailbox.outbox[status.id] != nil
            let attempts = self.attempts(.message(status.id), to: recipient.peerID, from: machine).filter {
                isQueued || self.isOf(machine, $0)
            }
            let isUnsent = recipient.error == .notSent || recipient.errorMessage?.hasPrefix("cancelled before") == true
            self.check(
                "\(status.id)", isDelivered: recipient.status == .delivered, isUnsent: isUnsent,
                isUnconfirmed: recipient.status == .unconfirmed, attempts, of: machine)
        }
    }

    mutating func checkAtDevice(_ row: Resource, of machine: Int) {
        self.check(
            "\(row.id)", isDelivered: row.state == .completed, isUnsent: row.error == .notSent, isUnconfirmed: row.error == .unconfirmed,
            self.attempts(.resource(row.id), to: row.peerID, from: machine), of: machine)
    }

    private mutating func check(
        _ what: String, isDelivered: Bool, isUnsent: Bool, isUnconfirmed: Bool, _ attempts: [DeviceAttempt], of machine: Int
    ) {
        if isDelivered { self.counts[.shipmentsDelivered] += 1 }
        if isUnconfirmed { self.counts[.shipmentsUnconfirmed] += 1 }
        if isDelivered, !attempts.contains(where: \.isTaken) {
            self.fail(.devices, "\(machine) tells that a device has \(what), which it has not")
        }
        if isUnsent, attempts.contains(where: { $0.mayHave && !$0.isForgotten }) {
            self.fail(.devices, "\(machine) tells that \(what) was never sent, and a device may have it")
        }
        if let last = attempts.last, last.isLost, !last.isForgotten, !isUnconfirmed {
            self.fail(.devices, "\(machine) does not tell that the outcome of \(what) is unknown")
        }
    }

    // MARK: Final state

    mutating func checkShipmentsAtEnd(of machine: Int, _ core: NodeCore) {
        if core.figures.reachableShipments > 0 { self.fail(.drained, "\(machine) keeps something for a device that is there") }
        let now = self.now(of: machine).monotonic
        for message in core.outgoingMessages where !message.recipients.allSatisfy(\.status.isFinal) && message.deadline + .seconds(1) < now
        {
            guard message.recipients.contains(where: { $0.peerID.kind == .localsend && !$0.status.isFinal }) else { continue }
            self.fail(.deadlines, "\(machine) still has \(message.id) for a device, whose time is over")
        }
    }
}
