import EarshotWire
import NIOCore
import Testing

/// Two machines over two queues, driven at random: what one side's machine lets it send, the other's never calls a violation,
/// however the frames cross.
@Suite struct ConnectionPropertyTests {
    /// Made once: it is signed.
    private let groupInvite: GroupInvite

    init() throws { self.groupInvite = try GroupFixtures().invite() }

    private func invite(_ id: InvitationID) -> GroupInvite {
        var invite = self.groupInvite
        invite.id = id
        return invite
    }

    private struct Side {
        var machine: ConnectionStateMachine
        /// Frames under way to this side.
        var inbox: [Frame] = []
        var sequence: UInt64 = 0
    }

    /// How many of each there are; the next has that number plus one.
    private struct Names {
        var invitations: UInt64 = 0
        var groupInvitations: UInt64 = 0
        var resources: UInt64 = 0
        var streams: UInt64 = 0
    }

    /// In one of four worlds many more frames may be under way than a machine remembers of what is over.
    @Test(arguments: 0..<24 as Range<UInt64>) func honestPeersNeverSeeAViolation(_ seed: UInt64) throws {
        let underWay = seed % 4 == 3 ? 4096 : 12
        let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])]
        var sides = [
            Side(machine: ConnectionStateMachine(localID: ids[0], peerID: ids[1])),
            Side(machine: ConnectionStateMachine(localID: ids[1], peerID: ids[0])),
        ]
        var generator = SeededGenerator(state: seed)
        var names = Names()
        var delivered: [FrameType: Int] = [:]
        var ignored = 0
        for _ in 0..<96_000 {
            let me = Int(generator.next() % 2)
            if generator.next() % 2 == 0, !sides[me].inbox.isEmpty {
                let frame = sides[me].inbox.removeFirst()
                switch sides[me].machine.received(frame) {
                case .deliver: delivered[frame.type, default: 0] += 1
                case .ignore: ignored += 1
                case .reply(let reply): sides[1 - me].inbox.append(reply)
                case .violation(let error):
                    Issue.record("seed \(seed): \(error) on \(frame)")
                    return
                }
            } else if sides[1 - me].inbox.count < underWay {
                let frame = try self.randomFrame(of: &sides[me], named: names, using: &generator)
                if sides[me].machine.sent(frame) == .send {
                    switch frame.type {
                    case .invite: names.invitations += 1
                    case .groupInvite: names.groupInvitations += 1
                    case .resourceOffer: names.resources += 1
                    case .streamOpen: names.streams += 1
                    default: break
                    }
                    sides[1 - me].inbox.append(frame)
                }
            }
        }
        // The walk reaches every kind of frame that has rules, and frames did cross.
        let kinds: [FrameType] = [
            .pong, .invite, .inviteAnswer, .inviteWithdraw, .message, .resourceOffer, .resourceAccept, .resourceRefuse, .resourceChunk,
            .resourceEnd, .resourceDone, .resourceCancel, .resourceHave, .resourceFrom,
            .streamOpen, .streamAccept, .streamRefuse, .streamData, .streamEnd, .streamDone,
            .streamAbort, .streamReroute, .streamRerouted, .sessionEnd,
            .groupInvite, .groupAnswer, .groupWithdraw,
        ]
        for kind in kinds {
            #expect(delivered[kind, default: 0] > 0, "seed \(seed) never delivered \(kind)")
        }
        #expect(ignored > 0)
    }

    private func randomStreamFrame(named names: Names, _ number: UInt64, using generator: inout SeededGenerator) throws -> Frame {
        let stream = StreamID(high: 0, low: names.streams - min(names.streams, generator.next() % 4))
        switch generator.next() % 38 {
        case 0:
            let id = StreamID(high: 0, low: names.streams + 1)
            return .stream(.open(StreamOpen(session: Fixtures.session, id: id, name: try StreamName("a"))))
        case 1...7: return .stream(.accept(StreamAccept(id: stream, limit: number)))
        case 8...16: return .stream(.data(StreamData(id: stream, data: ByteBuffer(repeating: 1, count: 1 + Int(generator.next() % 2)))))
        case 17...20: return .stream(.end(StreamEnd(id: stream, size: number)))
        case 21...26: return .stream(.done(stream))
        case 27: return .stream(.refuse(StreamRefuse(id: stream, refusal: Refusal(code: .busy))))
        case 28...32: return .stream(.reroute(StreamReroute(id: stream, offset: number)))
        case 33...36: return .stream(.rerouted(StreamReroute(id: stream, offset: number)))
        default: return .stream(.abort(StreamRefuse(id: stream, refusal: Refusal(code: .cancelled))))
        }
    }

    private func randomGroupFrame(named names: Names, using generator: inout SeededGenerator) throws -> Frame {
        let id = InvitationID(high: 0, low: names.groupInvitations - min(names.groupInvitations, generator.next() % 2))
        switch generator.next() % 3 {
        case 0: return .group(.invite(self.invite(InvitationID(high: 0, low: names.groupInvitations + 1))))
        case 1: return .group(.inviteAnswer(GroupInviteAnswer(id: id, decision: .declined)))
        default: return .group(.inviteWithdraw(InviteWithdraw(id: id, reason: .withdrawn)))
        }
    }

    /// Any frame, mostly about something recent; the sender's machine drops what would be out of order.
    private func randomFrame(of side: inout Side, named names: Names, using generator: inout SeededGenerator) throws -> Frame {
        let invitation = InvitationID(high: 0, low: names.invitations - min(names.invitations, generator.next() % 2))
        let resource = ResourceID(high: 0, low: names.resources - min(names.resources, generator.next() % 4))
        let refusal = ResourceRefuse(id: resource, refusal: Refusal(code: .cancelled))
        let number = generator.next() % 5
        // With all that is open, however it stands.
        if generator.next() % 1000 == 0 { return .sessionEnd(Fixtures.session) }
        if generator.next() % 16 == 0 { return try self.randomGroupFrame(named: names, using: &generator) }
        if generator.next() % 2 == 0 { return try self.randomStreamFrame(named: names, number, using: &generator) }
        switch generator.next() % 54 {
        case 0: return .ping(generator.next())
        case 1, 2:
            return .invite(Invite(id: InvitationID(high: 0, low: names.invitations + 1), timeoutMilliseconds: 1, context: []))
        case 3, 4:
            return .inviteAnswer(InviteAnswer(id: invitation, decision: number < 3 ? .accepted(Fixtures.session) : .declined))
        case 5, 6: return .inviteWithdraw(InviteWithdraw(id: invitation, reason: .withdrawn))
        case 7:
            side.sequence += 1 + number
            return .message(Fixtures.message(sequence: side.sequence))
        case 8:
            let id = ResourceID(high: 0, low: names.resources + 1)
            return .resource(.offer(ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: number, name: "a")))
        case 9...17:
            // Mostly from the start, where a first one has to begin.
            let offset = generator.next() % 4 == 0 ? number / 2 : 0
            return .resource(.accept(ResourceAccept(id: resource, offset: offset, limit: max(offset, generator.next() % 5))))
        case 18...27:
            let data = ByteBuffer(repeating: 1, count: 1 + Int(generator.next() % 2))
            return .resource(.chunk(ResourceChunk(id: resource, offset: number, data: data)))
        case 28...32: return .resource(.end(ResourceEnd(id: resource, algorithm: .xxh3, digest: [1])))
        case 33...41: return .resource(.done(resource))
        case 42: return .resource(.refuse(refusal))
        case 43...46: return .resource(.have(ResourceHave(id: resource, offset: number, digest: [UInt8](repeating: 0, count: 16))))
        case 47...52: return .resource(.from(ResourceFrom(id: resource, offset: generator.next() % 2 == 0 ? 0 : number)))
        default: return .resource(.cancel(refusal))
        }
    }
}
