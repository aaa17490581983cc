import DequeModule
import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The establishment, traffic and end of control connections.
extension World {
    // MARK: Dialling

    mutating func dial(_ peer: PeerID, _ plan: DialPlan, from machine: Int) {
        let addresses = plan.addresses { _ in true }
        guard !addresses.isEmpty else { return self.hand(.dial(peer, .nowhere), to: machine) }
        self.hand(.dial(peer, .began(addresses)), to: machine)
        self.begin(.peer(peer), addresses, from: machine, after: .zero)
    }

    mutating func dial(_ peer: ConfiguredPeer, from machine: Int) {
        let address = PeerAddress(host: peer.host, zone: peer.host.contains(":") ? "eth0" : nil, port: peer.port)
        let run = self.machines[machine].run
        // The name is resolved first.
        self.clock.plan(.input(machine, run: run, .configuredDial(peer, .began([address]))), after: .milliseconds(1))
        self.begin(.configured(peer), [address], from: machine, after: .milliseconds(2))
    }

    private mutating func begin(_ target: Dial.Target, _ addresses: [PeerAddress], from machine: Int, after delay: Duration) {
        let run = self.machines[machine].run
        let count = self.dials.count { $0.machine == machine }
        let random = SplitMix64(seed: self.schedule.seed, 5, UInt64(machine), UInt64(run), UInt64(count))
        self.dials.append(Dial(machine: machine, run: run, target: target, addresses: addresses, random: random))
        self.clock.plan(.dials(self.dials.count - 1), after: delay)
        self.counts[.dials] += 1
    }

    private func isAlive(_ dial: Int) -> Bool {
        let dial = self.dials[dial]
        return self.isRunning(dial.machine, dial.run) && !self.machines[dial.machine].isStopping
    }

    mutating func dialNext(_ dial: Int) {
        guard self.isAlive(dial) else { return }
        let own = self.dials[dial]
        guard own.next < own.addresses.count else {
            let error = own.failure ?? EarshotError(.unavailable, "no address of the peer is known on this machine's networks")
            return self.hand(own.input(.ended(error)), to: own.machine)
        }
        self.dials[dial].next += 1
        let there = self.network.machine(at: own.addresses[own.next])
        guard let there, self.network.parted(own.machine, there, at: self.clock.now) == nil, self.isAwake(there) else {
            self.dials[dial].failure = own.failure ?? EarshotError(.unavailable, "cannot reach \(own.addresses[own.next]): timed out")
            let isRefused = self.dials[dial].random.chance(50)
            return self.clock.plan(.dials(dial), after: isRefused ? .milliseconds(1) : EarshotLimits.connectTime)
        }
        let latency = Duration.microseconds(self.dials[dial].random.number(in: 400...9_000))
        let delay = self.network.delay(own.machine, there, at: self.clock.now)
        self.clock.plan(.answers(dial: dial, machine: there), after: latency + delay)
    }

    /// Handles the hellos of both sides: the identity of the other side, and the transport that the preferences yield.
    mutating func answered(_ dial: Int, by other: Int) {
        guard self.isAlive(dial) else { return }
        let own = self.dials[dial]
        let machine = own.machine
        let there = self.machines[other].id
        let failure: EarshotError?
        var transport: TransportKind?
        if !self.isAwake(other) || self.network.parted(machine, other, at: self.clock.now) != nil {
            failure = EarshotError(.unavailable, "the connection closed before the peer had proven who it is")
        } else if own.expected.map({ $0 != there }) ?? (there == self.machines[machine].id) {
            failure = EarshotError(.identityMismatch, "another key answered")
        } else if own.expected == nil, self.stands(there, at: machine) {
            self.clock.plan(.input(machine, run: own.run, own.input(.answered(there))), after: .milliseconds(1))
            self.clock.plan(.input(machine, run: own.run, own.input(.ended(nil))), after: .milliseconds(1))
            return
        } else {
            transport = TransportKind.agreed(self.machines[machine].settings.policy.encryption, self.preference(of: other))
            failure = self.refusal(of: transport, between: machine, other)
        }
        if let failure {
            if own.failure == nil || failure.code != .unavailable { self.dials[dial].failure = failure }
            return self.dialNext(dial)
        }
        let link = self.connect(machine, other, as: there, transport ?? .tls, at: own.addresses[own.next - 1])
        let latency = self.links[link].latency()
        self.clock.plan(.proven(link: link, side: 0, dial: dial), after: latency)
    }

    private func stands(_ peer: PeerID, at machine: Int) -> Bool {
        self.machines[machine].links.values.contains(peer)
    }

    func preference(of machine: Int) -> EncryptionPreference {
        self.machines[machine].isHostile ? .optional : self.machines[machine].settings.policy.encryption
    }

    private func refusal(of transport: TransportKind?, between one: Int, _ other: Int) -> EarshotError? {
        guard let transport else { return EarshotError(.encryptionMismatch, "the two preferences do not agree") }
        guard transport == .plaintext else { return nil }
        for (side, far) in [(one, other), (other, one)]
        where self.preference(of: side) == .optional && self.machines[side].pins.contains(self.machines[far].id) {
            return EarshotError(.downgradeDetected, "it has spoken TLS before")
        }
        return nil
    }

    /// Creates a connection between two machines, not reported to either yet. `id` is the identity of the other side, or of a hostile
    /// dialler.
    mutating func connect(_ machine: Int, _ other: Int, as id: PeerID, _ transport: TransportKind, at address: PeerAddress) -> Int {
        let link = self.links.count
        let count = self.pairs[[machine, other], default: 0]
        self.pairs[[machine, other]] = count + 1
        let transcript = Transcript(
            initiatorHello: [UInt8(machine), UInt8(truncatingIfNeeded: count), UInt8(truncatingIfNeeded: count >> 8)],
            responderHello: [UInt8(other)], transport: transport)
        let isHostile = self.machines[machine].isHostile
        let ids = isHostile ? [id, self.machines[other].id] : [self.machines[machine].id, id]
        let ends = [(machine, other), (other, machine)].enumerated().map { side, place in
            let far = self.machines[place.1]
            let label = (try? DisplayName(far.name)) ?? Self.anybody
            let peer = ProvenPeer(
                id: ids[1 - side], displayName: label, publicKey: [], signatureScheme: .ed25519, version: 1,
                encryption: self.preference(of: far.index), transport: transport,
                extensions: [.streamReroute, .groups, .fileAttributes, .replies],
                transcript: transcript)
            let facts = LinkFacts(
                peer: peer, origin: [10, 77, UInt8(far.isHostile ? count % 3 : 0), UInt8(far.index)], isInitiator: side == 0,
                dialledAddress: side == 0 ? address : nil, vouchedUntil: nil)
            return Wire.End(
                machine: place.0, run: self.machines[place.0].run, id: ids[side], facts: facts,
                wire: ConnectionStateMachine(localID: ids[side], peerID: ids[1 - side]))
        }
        let random = SplitMix64(seed: self.schedule.seed, 6, UInt64(machine), UInt64(other), UInt64(count))
        self.links.append(Wire(ends: ends, random: random, isHostile: self.machines[other].isHostile || isHostile))
        self.counts[.links] += 1
        return link
    }

    private static let anybody: DisplayName = {
        guard let name = try? DisplayName("anybody") else { preconditionFailure("that is a name") }
        return name
    }()

    // MARK: Proof

    mutating func proven(_ link: Int, _ side: Int, _ dial: Int?) {
        let end = self.links[link].ends[side]
        guard self.machines[end.machine].isHostile || self.isRunning(end.machine, end.run) else { return }
        guard end.state == .handshake else {
            guard let dial else { return }
            self.dials[dial].failure = EarshotError(.notConnected, "the connection closed before the peer had proven who it is")
            return self.dialNext(dial)
        }
        self.links[link].ends[side].state = .open
        if side == 0 { self.transmit(.proof, from: 0, on: link) }
        guard !self.machines[end.machine].isHostile else { return self.greet(link, side) }
        if end.facts.peer.transport == .tls { self.machines[end.machine].pins.insert(end.facts.peer.id) }
        self.yield(.proven(link: link, side: side, dial: dial), to: end.machine)
    }

    /// Reports a proven connection like `Node.connectionProven`.
    mutating func connectionProven(_ link: Int, _ side: Int, _ dial: Int?) {
        let end = self.links[link].ends[side]
        let (machine, peer) = (end.machine, end.facts.peer)
        if self.machines[machine].isStopping { return self.close(Wire.id(link, side), nil) }
        self.machines[machine].links[Wire.id(link, side)] = peer.id
        let standing = self.machines[machine].core?.facts(of: peer.id)?.link.map(Wire.place)
        let isOtherDead = standing.map { self.links[$0.link].ends[$0.side].isInactive } ?? false
        self.hand(.link(Wire.id(link, side), .proven(end.facts, isOtherDead: isOtherDead)), to: machine)
        guard let dial else { return }
        let own = self.dials[dial]
        // The dialling side is told after the node.
        let delay = Duration.microseconds(self.dials[dial].random.one(of: [20, 20, 20, 300, 60_000]))
        self.clock.plan(.input(machine, run: own.run, own.input(.ended(nil))), after: delay)
    }

    // MARK: Traffic

    /// Sends frames like a connection's handler, which discards those that are out of order now.
    mutating func send(_ frames: [Frame], on id: LinkID) {
        let (link, side) = Wire.place(id)
        guard self.links.indices.contains(link), self.links[link].ends[side].isOpen else { return }
        for frame in frames where self.links[link].ends[side].wire.sent(frame) == .send {
            self.transmit(frame, from: side, on: link)
        }
    }

    mutating func transmit(_ frame: Frame, from side: Int, on link: Int) {
        var bytes = ByteBuffer()
        do throws(WireError) {
            try FrameEncoder.encode(frame, into: &bytes)
        } catch {
            if !self.links[link].isHostile { self.fail(.links, "\(self.links[link].ends[side].machine) cannot encode \(frame): \(error)") }
            return
        }
        self.transmit(.bytes(bytes), from: side, on: link)
    }

    mutating func transmit(_ packet: Wire.Packet, from side: Int, on link: Int) {
        let far = 1 - side
        guard self.links[link].ends[far].state != .closed, !self.links[link].ends[far].isDeaf else { return }
        let latency = self.links[link].latency()
        let (here, there) = (self.links[link].ends[side].machine, self.links[link].ends[far].machine)
        let delay = self.network.delay(here, there, at: self.clock.now)
        let at = max(self.links[link].ends[far].lastArrival, self.clock.now + latency + delay)
        self.links[link].ends[far].lastArrival = at
        self.links[link].ends[far].inbound.append(packet)
        self.clock.plan(.arrives(link: link, side: far), at: at)
    }

    /// Handles the next packet that has arrived.
    mutating func arrive(_ link: Int, _ side: Int) {
        let end = self.links[link].ends[side]
        guard end.state != .closed, !end.isDeaf, !end.inbound.isEmpty else { return }
        if let until = self.network.parted(end.machine, self.links[link].ends[1 - side].machine, at: self.clock.now) {
            // TCP retransmits until the packet gets through, or the connection counts as dead.
            return self.clock.plan(.arrives(link: link, side: side), at: until + .milliseconds(200))
        }
        guard let packet = self.links[link].ends[side].inbound.popFirst() else { return }
        guard self.machines[end.machine].isHostile || self.isRunning(end.machine, end.run) else { return }
        switch packet {
        case .proof: self.proven(link, side, nil)
        case .bytes(let bytes): self.decode(bytes, on: link, side)
        }
    }

    /// Decodes received bytes. Bytes after an end's last frame are ignored.
    private mutating func decode(_ bytes: ByteBuffer, on link: Int, _ side: Int) {
        guard self.links[link].ends[side].isOpen else { return }
        self.links[link].ends[side].decoder.feed(bytes)
        do throws(WireError) {
            while self.links[link].ends[side].isOpen, let frame = try self.links[link].ends[side].decoder.next() {
                if self.machines[self.links[link].ends[side].machine].isHostile {
                    self.hear(frame, link, side)
                } else {
                    self.received(frame, on: link, side)
                }
            }
        } catch {
            self.refuse(error, on: link, side)
        }
    }

    private mutating func refuse(_ error: WireError, on link: Int, _ side: Int) {
        self.counts[.violations] += 1
        self.transmit(.refusal(error.refusal), from: side, on: link)
        self.finish(link, side, .refused(error.refusal))
    }

    /// Receives a frame like the handler, through the connection's state machine, which is ahead of the core.
    private mutating func received(_ frame: Frame, on link: Int, _ side: Int) {
        let machine = self.links[link].ends[side].machine
        switch self.links[link].ends[side].wire.received(frame) {
        case .ignore: self.counts[.crossedFrames] += 1
        case .reply(let reply): self.transmit(reply, from: side, on: link)
        case .violation(let error):
            if !self.links[link].isHostile { self.fail(.streams, "\(machine) is told \(frame), which is out of order: \(error)") }
            self.refuse(error, on: link, side)
        case .deliver:
            switch frame {
            case .pong: break
            case .goodbye: self.finish(link, side, .inOrder)
            case .refusal(let refusal): self.finish(link, side, .refused(refusal))
            default: self.yield(.frame(frame, link: link, side: side), to: machine)
            }
        }
    }

    /// Delivers a frame like `Node.received`.
    mutating func deliver(_ frame: Frame, on link: LinkID, from peer: PeerID, to machine: Int) {
        guard let core = self.machines[machine].core else { return }
        if core.isMuted(link) {
            // If the peer repeats its invitation, one of the answers may belong to the first.
            if case .invite(let invite) = frame, self.machines[machine].asked[invite.id] == nil {
                self.machines[machine].asked[invite.id] = self.clock.now
            }
            if case .group(.invite(let invite)) = frame, self.machines[machine].asked[invite.id] == nil {
                self.machines[machine].asked[invite.id] = self.clock.now
            }
            return self.hand(.link(link, .frame(frame)), to: machine)
        }
        guard core.isCurrent(link, of: peer) else { return }
        switch frame {
        case .messageReceipts, .group: self.hand(.link(link, .frame(frame)), to: machine)
        case .message(let message):
            let isLive = message.mode == .unreliable
            self.hand(.link(link, isLive ? .liveMessages([message]) : .messages([message])), to: machine)
        case .resource(.chunk(let chunk)):
            self.hand(.link(link, .heard), to: machine)
            if let sender = self.machine(of: peer) { self.received(chunk, from: sender, at: machine) }
        case .stream(.data(let data)):
            self.hand(.link(link, .heard), to: machine)
            self.received(data, at: machine)
        case .stream(.end(let end)):
            self.hand(.link(link, .heard), to: machine)
            self.received(end, at: machine)
        case .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd, .verification, .dataTicket, .dataUnavailable,
            .resource, .stream:
            self.note(frame, from: peer, at: machine)
            self.hand(.link(link, .frame(frame)), to: machine)
        default: self.hand(.link(link, .heard), to: machine)
        }
    }

    // MARK: End

    /// Closes a connection on this side, in order or with a refusal.
    mutating func close(_ id: LinkID, _ refusal: Refusal?) {
        let (link, side) = Wire.place(id)
        guard self.links.indices.contains(link), self.links[link].ends[side].isOpen else { return }
        let frame = refusal.map(Frame.refusal) ?? .goodbye
        if self.links[link].ends[side].wire.sent(frame) == .send { self.transmit(frame, from: side, on: link) }
        if refusal?.code == .superseded { self.counts[.superseded] += 1 }
        self.finish(link, side, refusal.map(LinkEnd.refused) ?? .inOrder)
    }

    /// Ends a connection on this side. The node is told once the channel is closed.
    mutating func finish(_ link: Int, _ side: Int, _ end: LinkEnd) {
        guard self.links[link].ends[side].isOpen else { return }
        self.links[link].ends[side].state = .closing(end)
        let delay = Duration.milliseconds(self.links[link].random.one(of: [0, 1, 5, 30, 1_000]))
        self.clock.plan(.breaks(link: link, side: side, end), after: delay)
    }

    /// Ends a connection on one side, which is told now.
    mutating func end(_ link: Int, _ side: Int, _ reason: LinkEnd) {
        let end = self.links[link].ends[side]
        let state = end.state
        guard state != .closed else { return }
        self.links[link].ends[side].state = .closed
        self.links[link].ends[side].isInactive = true
        self.links[link].ends[side].inbound = []
        self.planEnd(link, 1 - side)
        guard state != .handshake, self.isRunning(end.machine, end.run) else { return }
        var reported = reason
        if case .closing(let decided) = state { reported = decided }
        self.counts.note(reported)
        self.yield(.closed(link: link, side: side, reported), to: end.machine)
    }

    /// Plans the end of a side whose peer is gone: it notices when it next sends, or by silence.
    private mutating func planEnd(_ link: Int, _ side: Int) {
        guard self.links[link].ends[side].state != .closed, !self.links[link].ends[side].isDeaf else { return }
        let isQuick = self.links[link].random.chance(70)
        let time = Duration.milliseconds(self.links[link].random.number(in: isQuick ? 1...60 : 1_000...35_000))
        // Frames that were sent before an orderly end still arrive.
        let at = max(self.clock.now + time, self.links[link].ends[side].lastArrival)
        self.clock.plan(.breaks(link: link, side: side, isQuick ? .lost : .dead), at: at)
    }

    /// Ends one side silently, because its machine is gone.
    mutating func vanish(_ link: Int, _ side: Int) {
        guard self.links[link].ends[side].state != .closed else { return }
        self.links[link].ends[side].state = .closed
        self.links[link].ends[side].inbound = []
        self.planEnd(link, 1 - side)
    }

    /// Resets a connection for one side or both. With `isHalf` the other side notices only by silence.
    mutating func reset(_ link: Int, _ side: Int, isHalf: Bool) {
        guard self.links[link].ends[side].state != .closed else { return }
        self.links[link].ends[side].isInactive = true
        self.links[link].ends[side].isDeaf = true
        let delay = Duration.milliseconds(self.links[link].random.one(of: [0, 0, 1, 20]))
        self.clock.plan(.breaks(link: link, side: side, .lost), after: delay)
        guard isHalf else { return }
        self.links[link].ends[1 - side].isDeaf = true
        let silence = Duration.milliseconds(self.links[link].random.number(in: 25_000...35_000))
        self.clock.plan(.breaks(link: link, side: 1 - side, .dead), after: silence)
    }

    /// Plans the check for a sign of life after a time of silence.
    mutating func planListening(_ link: Int, _ side: Int) {
        guard self.links[link].ends[side].state != .closed else { return }
        let silence = Duration.milliseconds(self.links[link].random.number(in: 25_000...35_000))
        self.clock.plan(.listens(link: link, side: side), after: silence)
    }

    mutating func listen(_ link: Int, _ side: Int) {
        let (end, far) = (self.links[link].ends[side], self.links[link].ends[1 - side])
        guard end.state != .closed else { return }
        let isSilent = self.network.parted(end.machine, far.machine, at: self.clock.now) != nil || !self.isAwake(far.machine)
        if isSilent { self.end(link, side, .dead) }
    }
}
