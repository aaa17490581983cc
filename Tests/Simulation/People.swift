import EarshotCore
import EarshotWire
import OrderedCollections

/// The calls of users and programs, and the other actions.
extension World {
    mutating func perform(_ action: Action) {
        self.trace?.note("-- \(action.verb.rawValue) \(action.arguments.map(\.description).joined(separator: " "))")
        if action.verb.needsNode {
            let machine = action[0] % self.schedule.honest
            guard self.machines[machine].core != nil, self.machines[machine].suspendedUntil == nil else { return }
            self.counts[action.verb] += 1
            self.act(action, on: machine)
        } else {
            self.counts[action.verb] += 1
            self.strike(action)
        }
    }

    /// Returns a machine other than this one.
    private func peer(_ number: Int, of machine: Int) -> Int {
        let peer = number % self.machines.count
        return peer == machine ? (peer + 1) % self.machines.count : peer
    }

    /// Returns a user's name for a peer: its id, its name, or the beginning of its id.
    private func name(_ peer: Int, _ naming: Int) -> String {
        switch naming % 3 {
        case 0: self.machines[peer].id.description
        case 1: self.machines[peer].name
        default: String(self.machines[peer].id.description.prefix(8))
        }
    }

    private func seconds(_ number: Int) -> Duration? { number == 0 ? nil : .seconds(number) }

    mutating func call(_ command: Command, on machine: Int) {
        // Due work comes first, so that the changes of a call are its own.
        self.hand(.deadline, to: machine)
        guard self.machines[machine].core != nil, self.violation == nil else { return }
        self.machines[machine].lastCall += 1
        let id = CallID(number: self.machines[machine].lastCall)
        let peer: PeerID? =
            switch command {
            case .setTrust(_, let name, _), .endVerification(let name, _): try? self.machines[machine].core?.resolve(name)
            case .leave(let session): self.machines[machine].core?.sessions.first { $0.id == session }?.members.map(\.peerID).first
            default: nil
            }
        let now = self.clock.now(skew: .zero).monotonic
        var resource: Resource?
        if case .resource(.remove(let id)) = command { resource = try? self.machines[machine].core?.resource(id, at: now) }
        self.machines[machine].calls.append(
            Machine.OpenCall(id: id, command: command, peer: peer, resource: resource, at: self.clock.now))
        self.hand(.call(id, command), to: machine)
    }

    private func invitation(_ pick: Int, _ direction: Direction?, of machine: Int) -> Invitation? {
        guard let core = self.machines[machine].core else { return nil }
        let all = core.invitations(all: pick % 7 == 0).filter { direction == nil || $0.direction == direction }
        return all.isEmpty ? nil : all[pick % all.count]
    }

    private mutating func act(_ action: Action, on machine: Int) {
        switch action.verb {
        case .withdraw:
            guard let invitation = self.invitation(action[1], .outgoing, of: machine) else { return }
            self.call(.withdraw(invitation.id), on: machine)
        case .respond:
            guard let invitation = self.invitation(action[1], .incoming, of: machine) else { return }
            let decisions: [Invitation.Decision] = [.accept, .reject, .block]
            if action[2] % 3 == 0, invitation.offer != nil {
                self.machines[machine].devices.accepted.append(invitation.id)
            }
            self.call(.respond(invitation.id, decisions[action[2] % 3], always: action[3] == 1), on: machine)
        case .await:
            guard let invitation = self.invitation(action[1], nil, of: machine) else { return }
            self.call(.awaitInvitation(invitation.id), on: machine)
        case .leave:
            let sessions = self.machines[machine].core?.sessions ?? []
            let made = SessionID(high: 0, low: UInt64(action[1]))
            self.call(.leave(sessions.isEmpty ? made : sessions[action[1] % sessions.count].id), on: machine)
        case .settings: self.change(action[1], to: action[2], on: machine)
        case .rename:
            self.machines[machine].name = Self.names[action[1] % Self.names.count]
            for link in self.machines[machine].core?.renewableLinks ?? [] { self.close(link, nil) }
        case .again: self.sendAgain(action, from: machine)
        case .readMessages: self.read(action[1], on: machine)
        case .forget: self.hand(.discovery(.reset(.avahi)), to: machine)
        case .discovery:
            let states: [DiscoveryStatus.State] = [.running, .unavailable, .starting]
            self.hand(.discovery(.status(DiscoveryStatus(backend: .avahi, state: states[action[1] % 3]))), to: machine)
        case .accept, .gone, .write, .finish, .read, .abort: self.stream(action, on: machine)
        case .group, .inviteToGroup, .endGroup, .removeMember, .sendToGroup, .shareFile: self.group(action, on: machine)
        case .answerFile, .removeFile, .changeFile: self.resource(action, on: machine)
        case .trustDevice: self.trustDevice(action, on: machine)
        case .changeDevices: self.changeDevices(action, on: machine)
        case .sendToDevice: self.sendToDevice(action, from: machine)
        case .cancelMessage: self.cancelMessage(action, on: machine)
        default: self.act(action, on: machine, about: self.peer(action[1], of: machine))
        }
    }

    private mutating func act(_ action: Action, on machine: Int, about peer: Int) {
        let id = self.machines[peer].id
        switch action.verb {
        case .invite:
            let context = [UInt8](repeating: 7, count: action[2] == 5 ? WireLimits.invitationContext + 1 : 3)
            self.call(.invite(self.name(peer, action[3]), context: context, timeout: self.seconds(action[2])), on: machine)
        case .trust:
            let trusts: [Trust] = [.trusted, .blocked, .unknown]
            let wall = self.clock.now(skew: self.machines[machine].skew).wall
            let until = self.seconds(action[3]).map { wall + $0 }
            self.call(.setTrust(trusts[action[2] % 3], self.name(peer, action[4]), until: until), on: machine)
        case .verify: self.call(.verify(self.name(peer, action[3]), timeout: self.seconds(action[2])), on: machine)
        case .match:
            guard (try? self.machines[machine].core?.verification(id.description))?.state == .ready else { return }
            self.counts[.matches] += 1
            self.call(.setTrust(.trusted, id.description, until: nil), on: machine)
        case .mismatch: self.call(.endVerification(id.description, mismatch: true), on: machine)
        case .giveUp: self.call(.endVerification(id.description, mismatch: false), on: machine)
        case .ask:
            let name = self.name(peer, action[2])
            let found = try? self.machines[machine].core?.peer(name)
            let explained = try? self.machines[machine].core?.explainPolicy(name)
            if let found, let explained, found.id != explained.peer.id { self.fail(.answers, "two answers to one name") }
        case .need:
            let needs: [PeerNeed] = [.session, .sessionForQueue, .connection(now: false), .connection(now: true)]
            self.hand(.need(id, needs[action[2] % 4]), to: machine)
        case .send: self.send(action, from: machine, to: peer)
        case .sendFile: self.sendFile(action[2], action[3], from: machine, to: id.description)
        case .open:
            // Usually to a peer that a stream can be opened to.
            let members = self.machines[machine].core?.sessions.compactMap(\.members.first?.peerID.description) ?? []
            let isMember = action[3] == 0 && !members.isEmpty
            let name = isMember ? members[action[1] % members.count] : self.name(peer, action[3])
            for number in 0..<(action[2] % 100) where self.machines[machine].core != nil && self.violation == nil {
                self.call(.stream(.open(to: name, name: Self.streamNames[number % 3])), on: machine)
            }
        case .acceptNext:
            let name = action[3] < 2 ? Self.streamNames[action[3]] : nil
            let from = action[3] % 3 == 0 ? id.description : nil
            self.call(.stream(.acceptNext(name: name, from: from, timeout: self.seconds(action[2]))), on: machine)
        case .see: self.see(peer, by: machine, interface: action[2])
        case .lose:
            let key = self.key(of: peer, interface: action[2])
            self.hand(.discovery(.lost(.avahi, key)), to: machine)
        default: break
        }
    }

    private static let streamNames = ["x", "y", "z"]

    private mutating func change(_ setting: Int, to value: Int, on machine: Int) {
        var settings = self.machines[machine].settings
        switch setting % 8 {
        case 0: settings.policy.encryption = EncryptionPreference.allCases[value % 3]
        case 1: settings.policy.fromUnknown = InvitationPolicy.allCases[value % 3]
        case 2: settings.policy.fromTrusted = InvitationPolicy.allCases[value % 3]
        case 3: settings.policy.pairedOnly = value % 4 == 0
        case 4: settings.configuredPeers = []
        case 5: settings.policy.acceptResources = OfferPolicy.allCases[value % 2]
        case 6: settings.putsInPlace = value % 2 == 0
        default:
            let peer = self.peer(value, of: machine)
            // With the peer's id, with another's, or without one.
            let ids: [PeerID?] = [self.machines[peer].id, nil, self.machines[(peer + 1) % self.machines.count].id]
            let address = Network.address(of: peer, interface: value / 8 % 3)
            settings.configuredPeers.append(ConfiguredPeer(id: ids[value / 64 % 5 % 3], host: address.host, port: address.port))
        }
        self.machines[machine].settings = settings
        self.hand(.settings(settings), to: machine)
    }

    // MARK: Faults

    private mutating func strike(_ action: Action) {
        let machine = action[0] % self.schedule.honest
        switch action.verb {
        case .crash:
            guard self.machines[machine].core != nil, self.machines[machine].suspendedUntil == nil else { return }
            self.machines[machine].crash = (action[1], .milliseconds(action[2]))
        case .restart:
            guard self.machines[machine].core != nil, self.machines[machine].suspendedUntil == nil else { return }
            self.stop(machine)
            self.clock.plan(.starts(machine, run: self.machines[machine].run), after: .milliseconds(8_000 + action[1]))
        case .restore:
            guard self.machines[machine].core != nil, self.machines[machine].suspendedUntil == nil, !self.machines[machine].isStopping,
                !self.machines[machine].disk.backUp()
            else { return }
            self.crash(machine, pause: .milliseconds(action[1]))
            self.machines[machine].disk.restore()
            self.counts[.restores] += 1
        case .suspend: self.suspend(machine, for: .milliseconds(action[1]))
        case .jump:
            self.machines[machine].skew += .seconds(action[1])
            self.machines[machine].clockSet = self.clock.now(skew: self.machines[machine].skew).wall
        case .disk:
            self.machines[machine].disk.mode = Disk.Mode(rawValue: action[1] % 3)
            self.machines[machine].disk.modeEnd = self.clock.now + .milliseconds(action[2])
        case .part:
            let other = self.peer(action[1], of: machine)
            self.network.part(machine, other, until: self.clock.now + .milliseconds(action[2]))
            for link in self.links.indices where Set(self.links[link].ends.map(\.machine)) == [machine, other] {
                self.planListening(link, 0)
                self.planListening(link, 1)
            }
        case .reset, .halve:
            let open = self.links.indices.filter { self.links[$0].ends.contains(where: \.isOpen) }
            guard !open.isEmpty else { return }
            self.reset(open[action[0] % open.count], action.verb == .reset ? 0 : action[1] % 2, isHalf: action.verb == .halve)
        case .slow:
            let until = self.clock.now + .milliseconds(action[3])
            self.network.slow(machine, self.peer(action[1], of: machine), by: .milliseconds(action[2]), until: until)
        case .cut: self.cut(action[0])
        case .announce, .offer, .upload, .cancelOffer, .guess, .disturbDevice: self.device(action)
        case .shut: self.machines[machine].shutUntil = self.clock.now + .milliseconds(action[1])
        default: self.attack(action)
        }
    }

    // MARK: Settling

    /// Stops the faults, lets all machines see each other, and waits until all activity has settled.
    mutating func settle() {
        guard self.violation == nil else { return }
        self.trace?.note("-- calm")
        self.isCalm = true
        self.calmDevices()
        self.network.heal()
        for machine in 0..<self.schedule.honest {
            self.machines[machine].crash = nil
            self.machines[machine].disk.mode = nil
            self.machines[machine].mailbox.limit = .max
            self.resume(machine)
        }
        for link in self.links.indices where self.links[link].isHostile { self.reset(link, 0, isHalf: false) }
        self.run(until: self.clock.now + .seconds(20))
        self.checkRestingPairs()
        for machine in 0..<self.schedule.honest {
            self.start(machine)
            // A pair whose preferences allow no transport is not a fault.
            self.machines[machine].settings.policy.encryption = .optional
            self.hand(.settings(self.machines[machine].settings), to: machine)
        }
        // Waits until the last half-open connection is detected, and the last invitation is over.
        for _ in 0..<2 {
            self.run(until: self.clock.now + .seconds(45))
            for machine in 0..<self.schedule.honest {
                self.read(.max, on: machine)
                self.acceptAll(on: machine)
                for peer in 0..<self.schedule.honest where peer != machine { self.see(peer, by: machine, interface: 0) }
                self.meetDevices(on: machine)
            }
        }
        self.run(until: self.clock.now + .seconds(20))
        // A hidden invitation is answered late, and a hostile peer's stream waits for a while; either may have come at the last moment.
        let late = Duration.milliseconds(EarshotLimits.blockedAnswerMilliseconds.upperBound)
        for wait in [late, EarshotLimits.streamWaitTime] where self.isCharging { self.run(until: self.clock.now + wait) }
        // Deadlines of the last moment, such as the end of trust, may still be in flight to the disk or to the other machine.
        let last = self.clock.now
        for step in 1...10 where self.isWriting || self.isSending { self.run(until: last + .milliseconds(100 * step)) }
        self.checkEnd()
        for machine in 0..<self.schedule.honest { self.stop(machine) }
        self.run(until: self.clock.now + .seconds(10))
        if let machine = self.machines.first(where: { $0.core != nil }) { self.fail(.answers, "\(machine.index) does not stop") }
    }

    /// Whether a machine charges a peer for more than its transfers.
    private var isCharging: Bool {
        self.machines.prefix(self.schedule.honest).contains { $0.holds.count != $0.core?.figures.chargedTransfers }
    }

    /// Whether a machine has uncommitted writes.
    private var isWriting: Bool {
        self.machines.contains { machine in
            (machine.core?.undecidedCount ?? 0) > 0 || !machine.disk.pending.isEmpty || !machine.mailbox.pending.isEmpty
        }
    }

    /// Whether packets are in flight between machines.
    private var isSending: Bool {
        self.machines.contains { !$0.queue.waiting.isEmpty }
            || self.links.contains { link in
                !link.isHostile && link.ends.contains { $0.state != .closed && !$0.isDeaf && !$0.inbound.isEmpty }
            }
    }
}
