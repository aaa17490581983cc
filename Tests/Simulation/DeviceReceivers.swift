import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// An attempt of a machine to send something to a LocalSend device, as the device sees it.
struct DeviceAttempt {
    let machine: Int
    let run: Int
    let id: ShipmentID
    let cargo: DeviceCargo
    let target: DeviceTarget
    let size: UInt64
    /// Whether the device needs only the offer, which has the text.
    let isText: Bool
    var random: SplitMix64
    var session: String?
    var position: UInt64 = 0
    /// The report that is on its way to the machine.
    var report: ShipmentReport?
    /// Whether the device may have the content, or a part of it.
    var mayHave = false
    /// Whether the device has the content.
    var isTaken = false
    /// The session, once the machine was told of it.
    var toldSession: String?
    /// Whether the machine was told that the outcome is unknown.
    var isLost = false
    /// Whether the machine has stopped the attempt.
    var isStopped = false
    /// Whether the machine was told of its end.
    var isOver = false
    /// Whether the machine's disk did not know of the attempt when the machine stopped.
    var isForgotten = false

    var isLive: Bool { !self.isStopped && !self.isOver }
}

/// The condition of a device for a while.
enum DeviceMood: Int {
    case away, busy
    /// Another device has its address.
    case replaced
}

/// LocalSend devices as receivers: they answer soon, late, in pieces, wrongly, or never.
extension World {
    // MARK: Users

    /// Sends a message or a file to a device, or to two.
    mutating func sendToDevice(_ action: Action, from machine: Int) {
        guard self.schedule.devices > 0 else { return }
        let device = action[1] % self.schedule.devices
        var id = Self.key(device, action[3] % 5 == 4 ? 1 : 0)
        // Usually to a device that is there.
        let nearby = self.machines[machine].core?.peers.filter { $0.id.kind == .localsend && $0.presence == .nearby } ?? []
        if !nearby.isEmpty, !nearby.contains(where: { $0.id == id }), action[4] % 10 > 0 { id = nearby[action[1] % nearby.count].id }
        let name =
            switch action[3] % 5 {
            case 2: String(id.description.prefix(11))
            case 3: self.alias(of: device)
            default: id.description
            }
        guard let core = self.machines[machine].core, let found = try? core.resolve(name), found.kind == .localsend else { return }
        if action[3] % 5 == 3, self.trust(in: found, at: machine) != .trusted, (try? core.recipients([name])) != nil {
            self.fail(.devices, "\(machine) takes the name of \(found), which is not trusted")
        }
        switch action[2] % 6 {
        case 0...3:
            let second = Self.key((device + 1) % self.schedule.devices, 0).description
            let names = action[4] % 7 == 0 ? [name, second] : [name]
            let type = action[4] % 2 == 0 ? "text/plain" : "application/octet-stream"
            let message = Action(0, .send, [machine, 0, 1 + action[4] % 2, action[2] % 2, 1 + action[4] % 3])
            self.send(message, from: machine, to: .peers(names), as: type)
        case 4: self.sendFile(action[4] % 2 == 0 ? 1_000 : 5_000_000, [0, 1, 1, 4][action[4] % 4], from: machine, to: name)
        default: self.sendFile(300_000, [0, 1, 2, 3][action[4] % 4], from: machine, to: name)
        }
    }

    /// Cancels a queued message for a device.
    mutating func cancelMessage(_ action: Action, on machine: Int) {
        let waiting = self.machines[machine].core?.outbox.filter { $0.recipients.contains { $0.peerID.kind == .localsend } } ?? []
        if !waiting.isEmpty { self.call(.cancelQueued(waiting[action[1] % waiting.count].id), on: machine) }
    }

    /// Changes the condition of a device, or lets it cancel what it receives.
    mutating func disturbDevice(_ action: Action, _ device: Int) {
        if let mood = DeviceMood(rawValue: action[1] % 5) {
            self.devices.moods[device] = (mood, self.clock.now + .milliseconds(4 * action[2]))
            return
        }
        let receiving = self.devices.attempts.filter { $0.toldSession != nil && $0.isLive && Self.device(at: $0.target.address) == device }
        guard let attempt = receiving.last, self.isRunning(attempt.machine, attempt.run), self.listens(attempt.machine) else { return }
        var random = self.random(action[3])
        let host = random.chance(60) ? attempt.target.address.host : "10.50.99.1"
        let session = random.chance(80) ? attempt.session : random.one(of: ["x", self.devices.attempts[0].session])
        let sender = DeviceSender(
            id: random.chance(70) ? attempt.target.id : nil, address: PeerAddress(host: host, zone: nil, port: 40_000))
        let isRight = host == attempt.target.address.host && session == attempt.session
        self.call(.device(.cancel(session ?? "x", sender)), on: attempt.machine)
        guard let number = self.devices.number(of: attempt.id, at: attempt.machine, attempt.run) else { return }
        if self.devices.attempts[number].isLive == isRight {
            self.fail(.devices, "\(attempt.machine) \(isRight ? "ignores" : "follows") a device's cancellation of \(attempt.cargo)")
        }
    }

    // MARK: Effects

    mutating func ship(_ id: ShipmentID, _ shipment: DeviceShipment, to target: DeviceTarget, from machine: Int) {
        self.counts[.shipments] += 1
        let (cargo, size, isText): (DeviceCargo, UInt64, Bool) =
            switch shipment {
            case .message(let id, let type, _): (.message(id), 8, type == "text/plain")
            case .resource(let row, _): (.resource(row.id), row.size, false)
            }
        let number = self.devices.attempts.count
        let random = SplitMix64(seed: self.schedule.seed, 23, UInt64(machine), UInt64(number))
        let run = self.machines[machine].run
        self.devices.attempts.append(
            DeviceAttempt(machine: machine, run: run, id: id, cargo: cargo, target: target, size: size, isText: isText, random: random))
        self.planReceiving(number)
    }

    mutating func stopShipment(_ id: ShipmentID, of machine: Int) {
        guard let number = self.devices.number(of: id, at: machine, self.machines[machine].run) else { return }
        self.devices.attempts[number].isStopped = true
    }

    // MARK: Receiving

    private mutating func planReceiving(_ number: Int) {
        let attempt = self.devices.attempts[number]
        let times: [Duration] = [.milliseconds(1), .milliseconds(5), .milliseconds(5), .milliseconds(60), .milliseconds(800), .seconds(8)]
        let time = self.isCalm ? .milliseconds(2) : self.devices.attempts[number].random.one(of: times)
        self.clock.plan(.receives(attempt.machine, run: attempt.run, number), after: time)
    }

    /// Takes the next step of an attempt: delivers the report that is on its way, and decides about the next one.
    mutating func receive(_ number: Int) {
        guard !self.devices.attempts[number].isOver else { return }
        if let report = self.devices.attempts[number].report.take() {
            // A report may have been on its way when the attempt was stopped.
            let attempt = self.devices.attempts[number]
            if attempt.isStopped, !self.devices.attempts[number].random.chance(50) { return }
            self.yield(.input(.device(.shipped(attempt.id, attempt.target.id, report))), to: attempt.machine)
            guard !report.isEnd else { return }
        }
        guard self.violation == nil, self.devices.attempts[number].isLive,
            self.isRunning(
                self.devices.attempts[number].machine,
                self.devices.attempts[number].run)
        else { return }
        var attempt = self.devices.attempts[number]
        attempt.report = attempt.session == nil ? self.answer(&attempt) : self.takePiece(&attempt)
        self.devices.attempts[number] = attempt
        if attempt.report != nil { self.planReceiving(number) }
    }

    /// Returns a device's answer to an offer; `nil` if it never answers.
    private func answer(_ attempt: inout DeviceAttempt) -> ShipmentReport? {
        guard let device = Self.device(at: attempt.target.address), device < self.schedule.devices else {
            return .failed(.unreachable("no answer"))
        }
        if !self.isCalm {
            if let (mood, until) = self.devices.moods[device], until > self.clock.now {
                switch mood {
                case .away: return .failed(.unreachable("no answer"))
                case .busy: return .failed(.refused(status: 409))
                case .replaced: return .failed(.identityMismatch)
                }
            }
            switch attempt.random.below(24) {
            case 0:
                attempt.mayHave = attempt.isText
                return nil
            case 1: return .failed(.unreachable("no answer"))
            case 2: return .failed(.refused(status: attempt.random.one(of: [400, 401, 403, 409, 413, 422, 429, 500, 507, 302])))
            case 3: return .failed(.invalid("HTTP/0.9"))
            case 4: return .failed(.identityMismatch)
            case 5: return .sourceFailed(EarshotError(.invalidSource, "it is gone"))
            case 6, 7:
                attempt.mayHave = true
                attempt.isTaken = attempt.isText && attempt.random.chance(50)
                return .failed(.lost("reset"))
            default: break
            }
        }
        // A device may want nothing of an offer.
        guard !attempt.isText, attempt.random.chance(90) else {
            (attempt.mayHave, attempt.isTaken) = (true, true)
            return .delivered
        }
        attempt.session = "\(attempt.random.below(3))-\(attempt.id.number)"
        return .accepted(session: attempt.session ?? "")
    }

    /// Returns the outcome of the next piece of an upload; `nil` if nothing moves any more.
    private func takePiece(_ attempt: inout DeviceAttempt) -> ShipmentReport? {
        if !self.isCalm {
            switch attempt.random.below(40) {
            case 0: return nil
            case 1: return .failed(.unreachable("gone"))
            case 2: return .failed(.refused(status: attempt.random.one(of: [403, 409, 422, 500])))
            case 3: return .sourceFailed(EarshotError(.sourceChanged, "it has changed"))
            case 4: return .accepted(session: attempt.session ?? "")
            case 5: return .moved(to: .max)
            case 6, 7:
                attempt.isTaken = attempt.random.chance(30)
                return .failed(.lost("reset"))
            default: break
            }
        }
        guard attempt.position == attempt.size else {
            attempt.position += min(attempt.size - attempt.position, 2_000_000)
            return .moved(to: attempt.position)
        }
        attempt.isTaken = true
        return .delivered
    }

    // MARK: Settling

    /// Ends the attempts of devices that do not answer, and lets all devices be there.
    mutating func calmDevices() {
        self.devices.moods = [:]
        for number in self.devices.attempts.indices where self.devices.attempts[number].isLive {
            self.devices.attempts[number].mayHave = true
            self.devices.attempts[number].report = .failed(.lost("reset"))
            self.planReceiving(number)
        }
    }

    /// Lets a machine hear of every device.
    mutating func meetDevices(on machine: Int) {
        for device in 0..<self.schedule.devices where self.listens(machine) {
            let sender = Self.sender(device)
            self.machines[machine].devices.proven.append(Self.key(device, 0))
            self.hand(.device(.registered(self.info(device, claiming: sender.id), sender)), to: machine)
        }
    }
}

extension Devices {
    /// Returns the number of an attempt.
    func number(of id: ShipmentID, at machine: Int, _ run: Int) -> Int? {
        self.attempts.lastIndex { $0.id == id && $0.machine == machine && $0.run == run }
    }
}

extension ShipmentReport {
    /// Whether it is the last report of its attempt.
    var isEnd: Bool {
        switch self {
        case .accepted, .moved: false
        case .delivered, .failed, .sourceFailed: true
        }
    }
}
