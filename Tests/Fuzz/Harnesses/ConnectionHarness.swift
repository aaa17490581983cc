import EarshotWire
import NIOCore

/// The machine of a proven connection: the first byte says whether the other side is honest, and whether the two speak of groups.
///
/// Two honest machines never see a violation, however their frames cross. A hostile peer may send anything: the machine never traps, holds
/// no more transfers open than its limit, lets no data through that was not accepted, and after a violation delivers nothing.
enum ConnectionHarness: Harness {
    private static let session = SessionID(high: 1, low: 1)

    static func run(_ input: [UInt8]) {
        var dice = Dice(input)
        let first = dice.byte()
        let hasGroups = first & 2 != 0
        if first & 1 == 0 { self.honest(&dice, hasGroups) } else { self.hostile(&dice, hasGroups) }
    }

    private static func machines() -> [ConnectionStateMachine] {
        let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])]
        return [ConnectionStateMachine(localID: ids[0], peerID: ids[1]), ConnectionStateMachine(localID: ids[1], peerID: ids[0])]
    }

    private static func honest(_ dice: inout Dice, _ hasGroups: Bool) {
        var machines = self.machines()
        var underWay: [[Frame]] = [[], []]
        /// Ids are made once: an honest side never offers or invites under an old one.
        var made: Set<UInt64> = []
        while !dice.isEmpty {
            let choice = dice.byte()
            let me = Int(choice & 1)
            if choice & 2 == 0, !underWay[me].isEmpty {
                let frame = underWay[me].removeFirst()
                switch machines[me].received(frame) {
                case .deliver, .ignore: break
                case .reply(let reply): underWay[1 - me].append(reply)
                case .violation(let error): demand(false, "an honest peer is never at fault: \(error) on \(frame.type)")
                }
            } else {
                let frame = self.frame(&dice, hasGroups)
                if let fresh = self.freshNumber(of: frame), !made.insert(fresh).inserted { continue }
                if self.isHonest(frame), machines[me].sent(frame) == .send { underWay[1 - me].append(frame) }
            }
        }
    }

    /// Sequences of messages and the values of pings are the owner's to choose: only the machine's own rules are at stake here.
    private static func isHonest(_ frame: Frame) -> Bool {
        if case .message(let message) = frame { return message.mode != .reliable }
        return true
    }

    private static func freshNumber(of frame: Frame) -> UInt64? {
        switch frame {
        case .invite(let invite): invite.id.low
        case .resource(.offer(let offer)): offer.id.low | 1 << 32
        case .stream(.open(let open)): open.id.low | 1 << 33
        case .group(.invite(let invite)): invite.id.low | 1 << 34
        default: nil
        }
    }

    private static func hostile(_ dice: inout Dice, _ hasGroups: Bool) {
        var machine = self.machines()[0]
        var isOver = false
        var accepted: [ResourceID: UInt64] = [:]
        var windows: [StreamID: (taken: UInt64, limit: UInt64)] = [:]
        while !dice.isEmpty {
            let isOurs = dice.byte() & 3 == 0
            let frame = self.frame(&dice, hasGroups)
            if isOurs {
                let action = machine.sent(frame)
                demand(!isOver || action == .drop, "nothing is said after the end")
                if case .resource(.accept(let accept)) = frame, action == .send { accepted[accept.id] = accept.limit }
                if case .stream(.accept(let accept)) = frame, action == .send { windows[accept.id, default: (0, 0)].limit = accept.limit }
                if case .stream(.reroute(let reroute)) = frame, action == .send { windows[reroute.id]?.taken = reroute.offset }
                continue
            }
            switch machine.received(frame) {
            case .deliver:
                demand(!isOver, "nothing is delivered after a violation")
                if case .resource(.chunk(let chunk)) = frame {
                    let end = chunk.offset + UInt64(chunk.data.readableBytes)
                    demand(end <= accepted[chunk.id] ?? 0, "no data comes before consent, nor past it")
                }
                if case .stream(.data(let data)) = frame {
                    windows[data.id, default: (0, 0)].taken += UInt64(data.data.readableBytes)
                    demand(windows[data.id].map { $0.taken <= $0.limit } == true, "no stream goes beyond its window")
                }
                if frame.type == .goodbye || frame.type == .refusal { isOver = true }
            case .ignore: break
            case .reply: demand(!isOver, "nothing is answered after a violation")
            case .violation: isOver = true
            }
            demand(machine.openTransfers.incoming <= 64, "transfers of a peer are bounded")
        }
    }

    /// Any frame, about few enough things that it is often about the same one.
    private static func frame(_ dice: inout Dice, _ hasGroups: Bool) -> Frame {
        let kind = dice.byte()
        if hasGroups, (0x40..<0x60).contains(kind), let frame = self.groupFrame(kind, &dice) { return .group(frame) }
        if kind >= 0xE0, let type = FrameType(rawValue: dice.byte()),
            let frame = try? FrameParser.parse(ByteBuffer(bytes: dice.block()), of: type)
        {
            return frame
        }
        if kind >= 0xC0 { return self.streamFrame(kind, &dice) }
        let resource = ResourceID(high: 0, low: dice.number(below: 96))
        let invitation = InvitationID(high: 0, low: resource.low)
        let refusal = Refusal(code: .cancelled)
        switch kind % 16 {
        case 0: return .ping(dice.number(below: 4))
        case 1: return .pong(dice.number(below: 4))
        case 2: return .invite(Invite(id: invitation, timeoutMilliseconds: 1, context: []))
        case 3: return .inviteAnswer(InviteAnswer(id: invitation, decision: kind & 16 == 0 ? .accepted(self.session) : .declined))
        case 4: return .inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn))
        case 5:
            return .message(
                MessageFrame(
                    session: self.session, id: MessageID(high: 0, low: 1), mode: kind & 16 == 0 ? .reliable : .resumed,
                    sequence: dice.number(below: 8), sentAtMilliseconds: 0,
                    inReplyTo: kind & 32 == 0 ? nil : MessageID(high: 0, low: 2), contentType: "x", body: ByteBuffer()))
        case 6, 7:
            let size = kind & 16 == 0 ? dice.number(below: 8) : UInt64(Int64.max)
            return .resource(.offer(ResourceOffer(session: self.session, id: resource, kind: .file, size: size, name: "a")))
        case 8:
            let offset = dice.number(below: 8)
            return .resource(.accept(ResourceAccept(id: resource, offset: offset, limit: offset + dice.number(below: 8))))
        case 9, 10:
            let offset = kind & 16 == 0 ? dice.number(below: 8) : UInt64(Int64.max) - 2
            return .resource(
                .chunk(
                    ResourceChunk(id: resource, offset: offset, data: ByteBuffer(repeating: 1, count: 1 + Int(dice.number(below: 2))))))
        case 11: return .resource(.end(ResourceEnd(id: resource, algorithm: .xxh3, digest: [1])))
        case 12: return .resource(.done(resource))
        case 13: return .resource(.refuse(ResourceRefuse(id: resource, refusal: refusal)))
        case 14: return .resource(.cancel(ResourceRefuse(id: resource, refusal: refusal)))
        default: return kind & 16 == 0 ? .goodbye : .sessionEnd(self.session)
        }
    }

    private static func streamFrame(_ kind: UInt8, _ dice: inout Dice) -> Frame {
        let id = StreamID(high: 0, low: dice.number(below: 96))
        let refusal = StreamRefuse(id: id, refusal: Refusal(code: .cancelled))
        switch kind % 8 {
        case 0:
            guard let name = try? StreamName("a") else { return .goodbye }
            return .stream(.open(StreamOpen(session: self.session, id: id, name: name)))
        case 1: return .stream(.accept(StreamAccept(id: id, limit: kind & 16 == 0 ? dice.number(below: 8) : .max)))
        case 2, 3: return .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 1, count: 1 + Int(dice.number(below: 2))))))
        case 4: return .stream(.end(StreamEnd(id: id, size: dice.number(below: 8))))
        case 5: return .stream(.done(id))
        case 6: return .stream(.refuse(refusal))
        default:
            switch kind & 24 {
            case 8: return .stream(.reroute(StreamReroute(id: id, offset: dice.number(below: 8))))
            case 16: return .stream(.rerouted(StreamReroute(id: id, offset: dice.number(below: 8))))
            default: return .stream(.abort(refusal))
            }
        }
    }
}
