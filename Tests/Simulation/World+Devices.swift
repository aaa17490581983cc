import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// LocalSend devices, well-behaved and hostile: their requests, and the shell's work for the core (`Node+Devices.swift`). A device has many
/// certificates and addresses.
extension World {
    // MARK: Identities

    static func key(_ device: Int, _ key: Int) -> PeerID { PeerID(deviceCertificate: [UInt8(device), UInt8(key % 64)]) }

    static func host(_ device: Int, _ place: Int = 0) -> String { "10.50.\(device).\(1 + place % 250)" }

    static func sender(_ device: Int, key: Int? = 0, place: Int = 0) -> DeviceSender {
        DeviceSender(
            id: key.map { Self.key(device, $0) }, address: PeerAddress(host: Self.host(device, place), zone: nil, port: 40_000))
    }

    private static func origin(_ sender: DeviceSender) -> [UInt8] { sender.address.host.split(separator: ".").compactMap { UInt8($0) } }

    /// Returns the number of the device at an address.
    static func device(at address: PeerAddress) -> Int? {
        let parts = address.host.split(separator: ".").compactMap { Int($0) }
        return parts.count == 4 ? parts[2] : nil
    }

    /// Returns the name of a device. Some have the name of a machine, which a user may trust.
    func alias(of device: Int) -> String { device % 2 == 0 ? self.machines[0].name : "phone \(device)" }

    /// Returns a device's description of itself.
    func info(_ device: Int, claiming id: PeerID?, port: UInt16? = 53317) -> DeviceInfo {
        DeviceInfo(
            alias: self.alias(of: device), version: "2.1",
            fingerprint: id?.fingerprint?.lowercased() ?? "", port: port)
    }

    func random(_ seed: Int) -> SplitMix64 { SplitMix64(seed: self.schedule.seed, 20, UInt64(seed)) }

    func listens(_ machine: Int) -> Bool {
        self.machines[machine].core != nil && self.machines[machine].suspendedUntil == nil && self.violation == nil
    }

    // MARK: Actions

    mutating func device(_ action: Action) {
        guard self.schedule.devices > 0 else { return }
        let (device, machine) = (action[0] % self.schedule.devices, action[1] % self.schedule.honest)
        switch action.verb {
        case .announce: self.announce(action, device, to: machine)
        case .offer:
            for number in 0..<(action[2] % 64) { self.offer(device, to: machine, isAlone: action[2] == 1, seed: action[3] + number) }
        case .upload: self.upload(action, device)
        case .cancelOffer: self.cancelOffer(action, device)
        case .disturbDevice: self.disturbDevice(action, device)
        case .guess:
            var random = self.random(action[3])
            for _ in 0..<(action[2] % 64) where self.listens(machine) {
                let sender = Self.sender(device, key: random.below(8), place: random.one(of: [0, 0, 0, random.below(40)]))
                let pin = random.one(of: [nil, "000000", "111111", "222222", Self.pin])
                self.call(.device(.checkPIN(pin, sender, origin: Self.origin(sender))), on: machine)
            }
        default: break
        }
    }

    static let pin = "314159"

    private mutating func announce(_ action: Action, _ device: Int, to machine: Int) {
        var random = self.random(action[3])
        let isAlone = action[2] == 1
        for _ in 0..<(action[2] % 512) where self.listens(machine) {
            let key = isAlone ? 0 : random.below(64)
            let other = Self.key((device + 1) % max(2, self.schedule.devices), key)
            let info = self.info(
                device, claiming: random.chance(isAlone ? 10 : 50) ? other : Self.key(device, key),
                port: random.one(of: [53317, 53317, 53317, 22, 8080, nil]))
            let place = isAlone ? 0 : random.below(200)
            if random.chance(50) {
                let address = PeerAddress(host: Self.host(device, place), zone: nil, port: 53317)
                self.hand(.device(.announced(info, from: address, isAnswer: random.chance(20))), to: machine)
            } else {
                let sender = Self.sender(device, key: random.chance(10) ? nil : key, place: place)
                if let id = sender.id, info.fingerprint.uppercased() == id.fingerprint {
                    self.machines[machine].devices.proven.append(id)
                }
                self.hand(.device(.registered(info, sender)), to: machine)
            }
        }
    }

    private mutating func offer(_ device: Int, to machine: Int, isAlone: Bool, seed: Int) {
        guard self.listens(machine) else { return }
        var random = self.random(seed)
        let key = isAlone ? random.one(of: [0, 0, 0, 0, 1, nil]) : random.one(of: [random.below(64), nil])
        let sender = Self.sender(device, key: key, place: isAlone ? 0 : random.below(40))
        let origin = Self.origin(sender)
        if self.machines[machine].settings.devices.pin != nil {
            let pin = random.chance(85) ? Self.pin : random.one(of: [nil, "000000"])
            self.call(.device(.checkPIN(pin, sender, origin: origin)), on: machine)
            guard self.listens(machine),
                self.machines[machine].devices.lastPass?.number == self.machines[machine].lastCall
            else { return }
        }
        var stamps: [UInt64] = []
        var files = (0..<random.one(of: [1, 1, 2, 3, 12])).map { number in
            let content = Content(
                stamp: self.devices.newStamp(), count: UInt64(random.one(of: [0, 10, 1_000, 300_000, 700_000, 2_000_000])))
            stamps.append(content.stamp)
            return DeviceFile(
                id: "\(number)", name: random.one(of: ["a.jpg", "b/c.txt"]), size: content.count, contentType: "image/jpeg",
                sha256: random.chance(60) ? content.digest : nil)
        }
        switch random.below(20) {
        case 0..<4:
            files = [
                DeviceFile(
                    id: "t", name: "x", size: 12, contentType: "text/plain", preview: "\(1_000_000_000_000 + self.devices.newStamp())")
            ]
        case 4: files[0] = files[0].with(name: random.one(of: ["../x", "/etc/passwd", "a//b", ""]))
        case 5: files.append(files[0])
        case 6: files[0] = files[0].with(size: random.one(of: [.max, WireLimits.resourceSize + 1, 1 << 50]))
        case 7: files = []
        default: break
        }
        let call = UInt64(self.machines[machine].lastCall + 1)
        self.devices.offered[[UInt64(machine), UInt64(self.machines[machine].run), call]] = stamps
        if let id = sender.id { self.machines[machine].devices.proven.append(id) }
        let info = self.info(device, claiming: sender.id, port: random.chance(90) ? 53317 : nil)
        self.call(.device(.offer(DeviceOffer(info: info, files: files), sender, origin: origin)), on: machine)
    }

    /// Uploads the files of a session, or pretends to.
    private mutating func upload(_ action: Action, _ device: Int) {
        var random = self.random(action[2])
        let own = self.devices.sessions.indices.filter { self.devices.sessions[$0].sender.address.host.hasPrefix("10.50.\(device).") }
        let all = own.isEmpty || random.chance(5) ? Array(self.devices.sessions.indices) : own
        guard !all.isEmpty else { return }
        // Usually one of the last.
        let index = all[max(0, all.count - 1 - action[1] % (random.chance(80) ? 3 : all.count))]
        let session = self.devices.sessions[index]
        let isHonest = random.chance(60)
        for (number, token) in session.tokens.enumerated() where isHonest || random.chance(40) {
            guard self.listens(session.machine) else { return }
            if isHonest, self.devices.sessions[index].done.contains(token.file) { continue }
            self.upload(number, of: session, isHonest: isHonest, &random)
        }
    }

    private mutating func upload(_ number: Int, of session: Devices.Session, isHonest: Bool, _ random: inout SplitMix64) {
        let (file, machine) = (session.files[number], session.machine)
        var (sender, token, id) = (session.sender, session.tokens[number].token, session.id)
        // A device sends only the beginning of an enormous file.
        var content = Content(stamp: session.stamps[number], count: min(file.size, 4_000_000))
        var end = DeviceBody.End.ends
        if !isHonest {
            switch random.below(12) {
            case 0: token = random.one(of: ["", "x", session.tokens[0].token])
            case 1: sender = DeviceSender(id: sender.id, address: PeerAddress(host: "10.50.99.1", zone: nil, port: 40_000))
            case 2: sender = DeviceSender(id: random.one(of: [nil, Self.key(0, 63)]), address: sender.address)
            case 3: id = random.one(of: self.devices.sessions).id
            case 4: content.stamp = self.devices.newStamp()
            case 5: content.count += 1
            case 6: content.count /= 2
            case 7, 8: end = .hangsUp
            case 9, 10: end = .stalls
            default: break
            }
            if end != .ends { content.count = UInt64(random.below(Int(content.count) + 1)) }
        }
        let call = CallID(number: self.machines[machine].lastCall + 1)
        self.machines[machine].devices.bodies[call] = DeviceBody(call: call, content: content, end: end, left: content.count)
        self.call(.device(.upload(DeviceUpload(session: id, file: session.tokens[number].file, token: token), sender)), on: machine)
    }

    private mutating func cancelOffer(_ action: Action, _ device: Int) {
        let machine = action[1] % self.schedule.honest
        guard self.listens(machine) else { return }
        var random = self.random(action[3])
        let calls = self.machines[machine].calls.compactMap { call -> (id: CallID, sender: DeviceSender)? in
            switch call.command {
            case .device(.offer(_, let sender, _)), .device(.upload(_, let sender)): (call.id, sender)
            default: nil
            }
        }
        switch action[2] % 3 {
        case 0:
            guard !calls.isEmpty else { return }
            let call = random.one(of: calls)
            self.machines[machine].devices.gone.append(call.id)
            self.hand(.callerGone(call.id), to: machine)
        case 1:
            let sender = calls.isEmpty || random.chance(20) ? Self.sender(device) : random.one(of: calls).sender
            self.call(.device(.cancel(nil, sender)), on: machine)
        default:
            guard !self.devices.sessions.isEmpty else { return }
            let session = random.one(of: self.devices.sessions)
            let sender = random.chance(70) ? session.sender : Self.sender(device, key: 5)
            self.call(.device(.cancel(random.chance(90) ? session.id : "x", sender)), on: session.machine % self.schedule.honest)
        }
    }

    // MARK: Users

    /// Changes the trust in a device, or asks for what no device can do.
    mutating func trustDevice(_ action: Action, on machine: Int) {
        let id = Self.key(action[1] % max(1, self.schedule.devices), action[4] % 3 == 2 ? 1 : 0)
        let name = action[4] % 3 == 1 ? self.machines[0].name : id.description
        if let found = try? self.machines[machine].core?.resolve(name), found.kind == .localsend,
            self.machines[machine].core?.peers.contains(where: { $0.id.kind == .earshot && $0.name == name }) == true
        {
            self.fail(.devices, "\(machine) takes a device for the peer \(name)")
        }
        let wall = self.clock.now(skew: self.machines[machine].skew).wall
        let trusts: [Trust] = [.trusted, .blocked, .unknown]
        switch action[2] % 6 {
        case 0...2:
            let until = action[3] == 0 ? nil : wall + .seconds(action[3])
            self.call(.setTrust(trusts[action[2] % 3], name, until: until), on: machine)
        case 3: self.call(.invite(id.description, context: [], timeout: nil), on: machine)
        case 4: self.call(.verify(id.description, timeout: nil), on: machine)
        default: self.call(.stream(.open(to: id.description, name: "x")), on: machine)
        }
    }

    /// Changes a setting for LocalSend, or looks at the peers.
    mutating func changeDevices(_ action: Action, on machine: Int) {
        // Due work comes first, under the settings so far.
        self.hand(.deadline, to: machine)
        guard self.listens(machine) else { return }
        var settings = self.machines[machine].settings
        switch action[1] % 5 {
        case 0: settings.devices.isOn = action[2] % 4 > 0
        case 1: settings.devices.pin = action[2] % 2 == 0 ? Self.pin : nil
        case 2: settings.devices.offerTime = .seconds([5, 30, 60][action[2] % 3])
        case 3: return self.hand(.device(.wanted), to: machine)
        default: return self.hand(.device(.linksChanged), to: machine)
        }
        self.machines[machine].settings = settings
        self.hand(.settings(settings), to: machine)
    }

    // MARK: Effects

    mutating func carryOut(_ effect: DeviceEffect, on machine: Int) {
        switch effect {
        case .announce: self.counts[.deviceAnnouncements] += 1
        case .answerByDatagram, .cancel: break
        case .ship(let id, let shipment, let target, _): self.ship(id, shipment, to: target, from: machine)
        case .stopShipment(let id): self.stopShipment(id, of: machine)
        case .register(let place): self.register(at: place, from: machine)
        case .reserve(let id, let files, _):
            let isFailed = self.diskFailure(machine) != nil || files.contains { $0.size > 1 << 40 }
            if !isFailed { self.machines[machine].devices.reserved.append(contentsOf: files.map(\.id)) }
            self.machines[machine].devices.reserving += 1
            let time = self.diskTime(machine)
            let error = isFailed ? EarshotError(.noSpace, "the disk is full") : nil
            self.clock.plan(.input(machine, run: self.machines[machine].run, .device(.reserved(id, error))), after: time)
        case .release(let ids): for id in ids { self.machines[machine].devices.reserved.remove(id) }
        case .deliver(let id, let message): self.ask(.text(id, message), on: machine)
        }
    }

    /// Asks the device at a place to describe itself. Some answers claim another's certificate.
    private mutating func register(at place: PeerAddress, from machine: Int) {
        self.counts[.deviceRegisters] += 1
        self.shelfWorks += 1
        var random = SplitMix64(seed: self.schedule.seed, 21, UInt64(machine), UInt64(self.shelfWorks))
        let parts = place.host.split(separator: ".").compactMap { Int($0) }
        var result = Result<DeviceAnswer, DeviceFailure>.failure(.unreachable("no answer"))
        if parts.count == 4, parts[2] < self.schedule.devices, place.port == 53317, random.chance(70) {
            let id = Self.key(parts[2], parts[3] - 1)
            let claimed = random.chance(80) ? id : Self.key(parts[2] + 1, 0)
            if claimed == id { self.machines[machine].devices.proven.append(id) }
            result = .success(DeviceAnswer(id: id, info: self.info(parts[2], claiming: claimed)))
        }
        let time: Duration = .milliseconds(random.one(of: [1, 5, 50, 3_000]))
        self.clock.plan(.input(machine, run: self.machines[machine].run, .device(.reached(place, result))), after: time)
    }

    // MARK: Bodies

    /// Begins to receive the body of an upload. Returns whether that has failed.
    mutating func receiveBody(_ number: Int, _ row: Resource, _ call: CallID, _ mover: inout TransferMover, on machine: Int) -> Bool {
        self.machines[machine].devices.reserved.remove(row.id)
        guard let body = self.machines[machine].devices.bodies[call] else { return true }
        if let failure = self.diskFailure(machine) {
            self.fail(failure, &mover, on: machine)
            return true
        }
        self.machines[machine].transfers.movers[number]?.body = body
        self.machines[machine].shelf.partial[row.id] = (row.size, Content(stamp: 0, count: 0))
        self.tell(.began, row.id, on: machine)
        self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: .milliseconds(1))
        return false
    }

    /// Receives the next piece of the body of an upload.
    mutating func receivePiece(_ number: Int, _ before: TransferMover, _ body: DeviceBody, on machine: Int) {
        let id = before.row.id
        var (mover, body) = (before, body)
        guard !mover.isStopped, let held = self.machines[machine].shelf.partial[id] else {
            return self.endBody(number, mover, on: machine)
        }
        let piece = min(body.left, 512 * 1024)
        if let failure = self.diskFailure(machine) {
            self.fail(failure, &mover, on: machine)
        } else if piece > held.size - held.content.count {
            self.fail(.tooLarge, "more than was declared", &mover, on: machine)
        } else if piece > 0 {
            self.machines[machine].shelf.partial[id]?.content.append(piece, of: body.content.stamp)
            body.left -= piece
            self.tell(.written(to: held.content.count + piece), id, on: machine)
            self.machines[machine].transfers.movers[number]?.body = body
            let time = self.diskTime(machine)
            return self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: time)
        } else {
            switch body.end {
            // The core ends a body from which nothing comes.
            case .stalls: return
            case .hangsUp:
                self.machines[machine].devices.gone.append(body.call)
                self.clock.plan(.input(machine, run: self.machines[machine].run, .callerGone(body.call)), after: .microseconds(20))
                self.fail(.unavailable, "the upload was cut off", &mover, on: machine)
            case .ends where held.content.count < held.size: self.fail(.protocolViolation, "too few bytes", &mover, on: machine)
            case .ends: self.tell(.bodyEnded, id, on: machine)
            }
        }
        self.endBody(number, mover, on: machine)
    }

    private mutating func endBody(_ number: Int, _ mover: TransferMover, on machine: Int) {
        self.machines[machine].transfers.movers[number]?.body = nil
        self.finishOrder(number, mover, on: machine)
    }
}

extension DeviceFile {
    /// Returns the file with another name or size.
    fileprivate func with(name: String? = nil, size: UInt64? = nil) -> DeviceFile {
        DeviceFile(id: self.id, name: name ?? self.name, size: size ?? self.size, contentType: self.contentType, sha256: self.sha256)
    }
}
