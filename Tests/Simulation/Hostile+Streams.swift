import EarshotCore
import EarshotWire
import NIOCore

/// The stream frames of hostile peers.
extension World {
    /// Returns their session with the peer at the other end, if there is one, or any other.
    func session(on link: Int, _ side: Int, _ random: inout SplitMix64) -> SessionID {
        let far = self.links[link].ends[1 - side].machine
        let own = self.machines[far].core?.facts(of: self.links[link].ends[side].id)?.session
        return own.flatMap { random.chance(80) ? $0 : nil } ?? self.anySession(&random)
    }

    /// Opens streams one after the other, far more than anyone accepts. Aborts them at once, or leaves them open.
    mutating func flood(_ link: Int, by hostile: Int, _ count: Int, aborting: Bool) {
        let side = self.links[link].ends[0].machine == hostile ? 0 : 1
        var random = self.links[link].random
        defer { self.links[link].random = random }
        let session = self.session(on: link, side, &random)
        for _ in 0..<count {
            let id = StreamID(using: &random)
            guard let name = try? StreamName("x") else { return }
            self.say(.streamOpen(StreamOpen(session: session, id: id, name: name)), on: link, side)
            let refusal = Refusal(code: .cancelled)
            if aborting { self.say(.streamAbort(StreamRefuse(id: id, refusal: refusal)), on: link, side) }
        }
    }

    func streamAnswers(to frame: Frame, on link: Int, _ side: Int, _ random: inout SplitMix64) -> [Frame] {
        let refusal = Refusal(code: random.one(of: [.busy, .cancelled, .declined]))
        switch frame {
        case .streamOpen(let open):
            let limit = UInt64(random.one(of: [0, 10, 60_000, 1_000_000]))
            switch random.below(8) {
            case 0: return [.streamRefuse(StreamRefuse(id: open.id, refusal: refusal))]
            case 1: return [.streamAbort(StreamRefuse(id: open.id, refusal: refusal))]
            case 2: return [.streamAccept(StreamAccept(id: open.id, limit: limit)), .streamDone(open.id)]
            case 3: return []
            default:
                return [.streamAccept(StreamAccept(id: open.id, limit: limit)), .streamAccept(StreamAccept(id: open.id, limit: 2 * limit))]
            }
        case .streamAccept(let accept):
            let count = UInt64(random.one(of: [0, 1, 1_000]))
            let data = Frame.streamData(StreamData(id: accept.id, data: ByteBuffer(repeating: 0, count: Int(count))))
            switch random.below(5) {
            case 0: return [data, .streamEnd(StreamEnd(id: accept.id, size: count))]
            case 1:
                let reroute = StreamReroute(id: accept.id, offset: count)
                return [data, .streamReroute(reroute), .streamRerouted(reroute), .streamEnd(StreamEnd(id: accept.id, size: 2 * count))]
            case 2: return [.streamReroute(StreamReroute(id: accept.id, offset: 0))]
            case 3: return [.streamAbort(StreamRefuse(id: accept.id, refusal: refusal))]
            default: return []
            }
        case .streamEnd(let end): return random.chance(70) ? [.streamDone(end.id)] : []
        case .streamReroute(let reroute):
            let ticket = DataTicket(transfer: TransferID(reroute.id), token: DataToken(using: &random))
            return random.chance(50) ? [.dataUnavailable(ticket.transfer)] : [.dataTicket(ticket)]
        case .streamRerouted(let rerouted):
            return random.chance(50) ? [.streamReroute(rerouted)] : [.streamAccept(StreamAccept(id: rerouted.id, limit: 2_000_000))]
        default: return []
        }
    }

    func anyStreamFrame(to link: Int, _ side: Int, _ random: inout SplitMix64) -> Frame {
        // Few ids, so that they collide; sometimes another peer's.
        let known = !self.streamIDs.isEmpty && random.chance(40)
        let id = known ? random.one(of: self.streamIDs) : StreamID(high: 0, low: UInt64(random.below(4)))
        let refuse = StreamRefuse(id: id, refusal: Refusal(code: WireErrorCode(rawValue: UInt16(random.below(24)))))
        let offset = UInt64(random.one(of: [0, 1, 50_000]))
        switch random.below(14) {
        case 0: return .streamAbort(refuse)
        case 1: return .streamRefuse(refuse)
        case 2: return .streamAccept(StreamAccept(id: id, limit: offset))
        case 3: return .streamData(StreamData(id: id, data: ByteBuffer(repeating: 0, count: 1)))
        case 4: return .streamEnd(StreamEnd(id: id, size: offset))
        case 5: return .streamDone(id)
        case 6: return .streamReroute(StreamReroute(id: id, offset: offset))
        case 7: return .streamRerouted(StreamReroute(id: id, offset: offset))
        default:
            guard let name = try? StreamName("x") else { return .streamDone(id) }
            return .streamOpen(StreamOpen(session: self.session(on: link, side, &random), id: id, name: name))
        }
    }
}
