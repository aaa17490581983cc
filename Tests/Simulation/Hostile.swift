import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// Peers that follow no rules. They send any frame that the codec can encode, answer arbitrarily, refer to others' invitations and
/// sessions, advertise others' ids, and connect with any number of keys.
extension World {
    mutating func attack(_ action: Action) {
        guard self.schedule.hostile > 0 else { return }
        let hostile = self.schedule.honest + action[0] % self.schedule.hostile
        switch action.verb {
        case .approach: self.approach(action[1] % self.schedule.honest, hostile, key: action[2])
        case .say:
            let open = self.links.indices.filter { link in
                self.links[link].ends.contains { $0.machine == hostile && $0.isOpen }
            }
            guard !open.isEmpty else { return }
            let link = open[action[1] % open.count]
            let side = self.links[link].ends[0].machine == hostile ? 0 : 1
            var random = SplitMix64(seed: self.schedule.seed, 7, UInt64(action[3]))
            for _ in 0..<(action[2] % 100) { self.say(self.anyFrame(to: link, side, &random), on: link, side) }
        case .forge:
            var random = SplitMix64(seed: self.schedule.seed, 8, UInt64(action[3]))
            let (victim, peer) = (action[1] % self.schedule.honest, action[2] % self.machines.count)
            let places = (0..<random.number(in: 1...40)).map { place in
                place % 3 == 0
                    ? Network.address(of: hostile, interface: 0)
                    : PeerAddress(host: "10.99.\(place).\(random.below(250))", zone: nil, port: 47110)
            }
            for number in 0..<random.one(of: [1, 1, 3, 20]) {
                let key = Sighting.Key(instanceName: "forged \(number)", interfaceIndex: 9, overIPv6: false)
                self.see(key, self.machines[peer].id, Self.names[random.below(8)], places, by: victim)
            }
        case .swarm:
            var random = SplitMix64(seed: self.schedule.seed, 9, UInt64(action[3]))
            let victim = action[1] % self.schedule.honest
            for number in 0..<(action[2] % 64) {
                if random.chance(20) {
                    let key = Sighting.Key(instanceName: "swarm \(number)", interfaceIndex: 9, overIPv6: false)
                    let id = PeerID(subjectPublicKeyInfo: [77, UInt8(number), UInt8(random.below(250))])
                    self.see(key, id, "swarm", [Network.address(of: hostile, interface: 1)], by: victim)
                } else {
                    self.approach(victim, hostile, key: number)
                }
            }
        case .flood:
            let open = self.links.indices.filter { link in self.links[link].ends.contains { $0.machine == hostile && $0.isOpen } }
            if !open.isEmpty { self.flood(open[action[1] % open.count], by: hostile, action[2] % 512, aborting: action[3] % 3 > 0) }
        case .crowd: self.crowd(by: hostile, action[1], action[2] % 512, seed: action[3])
        case .hangUp:
            let open = self.links.indices.filter { link in self.links[link].ends.contains { $0.machine == hostile && $0.isOpen } }
            guard !open.isEmpty else { return }
            self.hangUp(open[action[1] % open.count])
        default: break
        }
    }

    mutating func hangUp(_ link: Int) {
        let side = self.machines[self.links[link].ends[0].machine].isHostile ? 0 : 1
        self.reset(link, side, isHalf: false)
    }

    /// Dials with one of its keys.
    private mutating func approach(_ victim: Int, _ hostile: Int, key: Int) {
        guard self.isAwake(victim), self.network.parted(victim, hostile, at: self.clock.now) == nil else { return }
        guard let transport = TransportKind.agreed(.optional, self.preference(of: victim)) else { return }
        let id = self.machines[hostile].identities[key % 64]
        // An honest machine refuses plaintext from a peer that has spoken TLS before.
        guard transport == .tls || !self.machines[victim].pins.contains(id) else { return }
        let link = self.connect(hostile, victim, as: id, transport, at: Network.address(of: victim, interface: 0))
        let latency = self.links[link].latency()
        self.clock.plan(.proven(link: link, side: 0, dial: nil), after: latency)
    }

    /// Sends its first frames on a connection.
    mutating func greet(_ link: Int, _ side: Int) {
        // A key of a swarm invites at once.
        if let key = self.machines[self.links[link].ends[side].machine].identities.firstIndex(of: self.links[link].ends[side].id), key > 3 {
            let invite = Invite(id: InvitationID(using: &self.links[link].random), timeoutMilliseconds: 60_000, context: [])
            self.say(.invite(invite), on: link, side)
        }
        for _ in 0..<self.links[link].random.below(3) {
            var random = self.links[link].random
            let frame = self.anyFrame(to: link, side, &random)
            self.links[link].random = random
            self.say(frame, on: link, side)
        }
    }

    mutating func say(_ frame: Frame, on link: Int, _ side: Int) {
        self.counts[.hostileFrames] += 1
        self.transmit(frame, from: side, on: link)
    }

    /// Receives a frame, and answers arbitrarily.
    mutating func hear(_ frame: Frame, _ link: Int, _ side: Int) {
        var random = self.links[link].random
        defer { self.links[link].random = random }
        let answers: [Frame]
        switch frame {
        case .goodbye, .refusal: return self.reset(link, side, isHalf: false)
        case .ping(let value): answers = random.chance(50) ? [.pong(value)] : []
        case .invite(let invite):
            let decision: InviteAnswer.Decision =
                switch random.below(5) {
                case 0: .declined
                case 1: .busy
                default: .accepted(self.anySession(&random))
                }
            answers = random.chance(80) ? [.inviteAnswer(InviteAnswer(id: invite.id, decision: decision))] : []
        case .sessionResume(let session): answers = random.chance(50) ? [.sessionResume(session)] : [.sessionEnd(session)]
        case .verification(let verification):
            let nonce = [UInt8](repeating: UInt8(random.below(250)), count: WireLimits.verificationPart)
            switch verification.part {
            case .begin: answers = random.chance(80) ? [.verification(VerificationFrame(id: verification.id, .answer(nonce: nonce)))] : []
            case .answer: answers = random.chance(80) ? [.verification(VerificationFrame(id: verification.id, .reveal(nonce: nonce)))] : []
            case .reveal, .end: answers = []
            }
        case .stream(.open), .stream(.accept), .stream(.end), .stream(.reroute), .stream(.rerouted):
            answers = self.streamAnswers(to: frame, on: link, side, &random)
        case .resource(.offer), .resource(.accept), .resource(.have), .resource(.from), .resource(.end):
            answers = self.resourceAnswers(to: frame, &random)
        case .group(let frame): answers = self.groupAnswers(to: frame, on: link, side, &random)
        default: answers = random.chance(5) ? [self.anyFrame(to: link, side, &random)] : []
        }
        for answer in answers { self.say(answer, on: link, side) }
    }

    // MARK: Frames

    func anySession(_ random: inout SplitMix64) -> SessionID {
        !self.sessionIDs.isEmpty && random.chance(50) ? random.one(of: self.sessionIDs) : SessionID(using: &random)
    }

    private func anyInvitation(_ random: inout SplitMix64) -> InvitationID {
        !self.invitationIDs.isEmpty && random.chance(50) ? random.one(of: self.invitationIDs) : InvitationID(using: &random)
    }

    private mutating func anyFrame(to link: Int, _ side: Int, _ random: inout SplitMix64) -> Frame {
        let nonce = [UInt8](repeating: UInt8(random.below(250)), count: WireLimits.verificationPart)
        // Few ids, so that they collide.
        let small = UInt64(random.below(4))
        let transfer = TransferID(self.anyResource(&random))
        let refusal = Refusal(code: WireErrorCode(rawValue: UInt16(random.below(24))))
        switch random.below(38) {
        case 30...: return self.anyGroupFrame(on: link, side, &random)
        case 0..<8:
            let timeout = UInt32(random.one(of: [1, 500, 5_000, 60_000, 86_400_000]))
            return .invite(Invite(id: self.anyInvitation(&random), timeoutMilliseconds: timeout, context: []))
        case 8, 9:
            let decisions: [InviteAnswer.Decision] = [.accepted(self.anySession(&random)), .declined, .busy]
            return .inviteAnswer(InviteAnswer(id: self.anyInvitation(&random), decision: random.one(of: decisions)))
        case 10, 11:
            let reason = random.one(of: [InviteWithdraw.Reason.withdrawn, .timedOut])
            return .inviteWithdraw(InviteWithdraw(id: self.anyInvitation(&random), reason: reason))
        case 12, 13: return .sessionResume(self.anySession(&random))
        case 14: return .sessionEnd(self.anySession(&random))
        case 15, 16: return .verification(VerificationFrame(id: VerificationID(high: 1, low: small), .begin(commitment: nonce)))
        case 17:
            let parts: [VerificationFrame.Part] = [
                .answer(nonce: nonce), .reveal(nonce: nonce), .end(.mismatch), .end(.busy), .end(.givenUp),
            ]
            return .verification(VerificationFrame(id: VerificationID(high: 1, low: small), random.one(of: parts)))
        case 18: return .dataUnavailable(transfer)
        case 19: return .dataTicket(DataTicket(transfer: transfer, token: DataToken(using: &random)))
        case 20:
            let mode = random.one(of: [MessageFrame.Mode.reliable, .unreliable, .resumed])
            return .message(
                MessageFrame(
                    session: self.anySession(&random), id: MessageID(using: &random), mode: mode, sequence: random.next() >> 1,
                    sentAtMilliseconds: 0, contentType: "", body: ByteBuffer()))
        case 21:
            let outcome = random.one(of: [MessageReceipt.Outcome.delivered, .noted])
            return .messageReceipts([MessageReceipt(id: MessageID(high: 0, low: small), outcome: outcome)])
        case 22:
            return .resource(.offer(self.anyOffer(to: link, side, &random)))
        case 23: return self.anyResourceFrame(&random)
        case 24, 25: return self.anyStreamFrame(to: link, side, &random)
        case 26: return .ping(small)
        case 27: return random.chance(20) ? .pong(small) : .resource(.done(ResourceID(high: 0, low: small)))
        case 28: return random.chance(20) ? .goodbye : .ping(small)
        default: return random.chance(30) ? .refusal(refusal) : .sessionResume(self.anySession(&random))
        }
    }
}
