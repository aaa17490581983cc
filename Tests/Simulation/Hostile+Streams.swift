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
            self.say(.stream(.open(StreamOpen(session: session, id: id, name: name))), on: link, side)
            let refusal = Refusal(code: .cancelled)
            if aborting { self.say(.stream(.abort(StreamRefuse(id: id, refusal: refusal))), on: link, side) }
        }
    }

    func streamAnswers(to frame: Frame, on link: Int, _ side: Int, _ random: inout SplitMix64) -> [Frame] {
        let refusal = Refusal(code: random.one(of: [.busy, .cancelled, .declined]))
        switch frame {
        case .stream(.open(let open)):
            let limit = UInt64(random.one(of: [0, 10, 60_000, 1_000_000]))
            switch random.below(8) {
            case 0: return [.stream(.refuse(StreamRefuse(id: open.id, refusal: refusal)))]
            case 1: return [.stream(.abort(StreamRefuse(id: open.id, refusal: refusal)))]
            case 2: return [.stream(.accept(StreamAccept(id: open.id, limit: limit))), .stream(.done(open.id))]
            case 3: return []
            default:
                return [
                    .stream(.accept(StreamAccept(id: open.id, limit: limit))),
                    .stream(.accept(StreamAccept(id: open.id, limit: 2 * limit))),
                ]
            }
        case .stream(.accept(let accept)):
            let count = UInt64(random.one(of: [0, 1, 1_000]))
            let data = Frame.stream(.data(StreamData(id: accept.id, data: ByteBuffer(repeating: 0, count: Int(count)))))
            switch random.below(5) {
            case 0: return [data, .stream(.end(StreamEnd(id: accept.id, size: count)))]
            case 1:
                let reroute = StreamReroute(id: accept.id, offset: count)
                return [
                    data, .stream(.reroute(reroute)), .stream(.rerouted(reroute)), .stream(.end(StreamEnd(id: accept.id, size: 2 * count))),
                ]
            case 2: return [.stream(.reroute(StreamReroute(id: accept.id, offset: 0)))]
            case 3: return [.stream(.abort(StreamRefuse(id: accept.id, refusal: refusal)))]
            default: return []
            }
        case .stream(.end(let end)): return random.chance(70) ? [.stream(.done(end.id))] : []
        case .stream(.reroute(let reroute)):
            let ticket = DataTicket(transfer: TransferID(reroute.id), token: DataToken(using: &random))
            return random.chance(50) ? [.dataUnavailable(ticket.transfer)] : [.dataTicket(ticket)]
        case .stream(.rerouted(let rerouted)):
            return random.chance(50) ? [.stream(.reroute(rerouted))] : [.stream(.accept(StreamAccept(id: rerouted.id, limit: 2_000_000)))]
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
        case 0: return .stream(.abort(refuse))
        case 1: return .stream(.refuse(refuse))
        case 2: return .stream(.accept(StreamAccept(id: id, limit: offset)))
        case 3: return .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 0, count: 1))))
        case 4: return .stream(.end(StreamEnd(id: id, size: offset)))
        case 5: return .stream(.done(id))
        case 6: return .stream(.reroute(StreamReroute(id: id, offset: offset)))
        case 7: return .stream(.rerouted(StreamReroute(id: id, offset: offset)))
        default:
            guard let name = try? StreamName("x") else { return .stream(.done(id)) }
            return .stream(.open(StreamOpen(session: self.session(on: link, side, &random), id: id, name: name)))
        }
    }
}
