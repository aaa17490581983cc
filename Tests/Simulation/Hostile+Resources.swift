import EarshotCore
import EarshotWire
import NIOCore

/// The resource frames of hostile peers.
extension World {
    func anyResource(_ random: inout SplitMix64) -> ResourceID {
        // Few ids, so that they collide; sometimes another peer's.
        let known = !self.resourceIDs.isEmpty && random.chance(40)
        return known ? random.one(of: self.resourceIDs) : ResourceID(high: 0, low: UInt64(random.below(4)))
    }

    func anyOffer(to link: Int, _ side: Int, _ random: inout SplitMix64) -> ResourceOffer {
        let size = UInt64(random.one(of: [0, 1, 1_000, 700_000, 5_000_000, 1 << 62]))
        return ResourceOffer(
            session: self.session(on: link, side, &random), id: self.anyResource(&random), kind: random.one(of: [.file, .directory]),
            size: size, name: random.one(of: ["a", "..", "a/b", "b"]))
    }

    func anyResourceFrame(_ random: inout SplitMix64) -> Frame {
        let id = self.anyResource(&random)
        let refuse = ResourceRefuse(id: id, refusal: Refusal(code: WireErrorCode(rawValue: UInt16(random.below(24)))))
        let offset = UInt64(random.one(of: [0, 1, 1_000, 700_000]))
        switch random.below(8) {
        case 0: return .resource(.refuse(refuse))
        case 1: return .resource(.done(id))
        case 2: return .resource(.accept(ResourceAccept(id: id, offset: offset, limit: 2 * offset)))
        case 3: return .resource(.from(ResourceFrom(id: id, offset: offset)))
        case 4: return .resource(.chunk(ResourceChunk(id: id, offset: offset, data: ByteBuffer(repeating: 0, count: 1))))
        default: return .resource(.cancel(refuse))
        }
    }

    func resourceAnswers(to frame: Frame, _ random: inout SplitMix64) -> [Frame] {
        let refusal = Refusal(code: random.one(of: [.busy, .cancelled, .declined, .noSpace]))
        switch frame {
        case .resource(.offer(let offer)):
            let limit = random.one(of: [0, offer.size / 2, offer.size])
            let accept = Frame.resource(.accept(ResourceAccept(id: offer.id, offset: 0, limit: limit)))
            switch random.below(8) {
            case 0: return [.resource(.refuse(ResourceRefuse(id: offer.id, refusal: refusal)))]
            case 1: return [.resource(.cancel(ResourceRefuse(id: offer.id, refusal: refusal)))]
            case 2: return [.resource(.done(offer.id))]
            case 3:
                let digest = [UInt8](repeating: 7, count: WireLimits.prefixDigest)
                return offer.size > 0 ? [.resource(.have(ResourceHave(id: offer.id, offset: offer.size / 2 + 1, digest: digest)))] : []
            case 4: return []
            default:
                let more = Frame.resource(.accept(ResourceAccept(id: offer.id, offset: 0, limit: offer.size)))
                return limit > 0 && random.chance(50) ? [accept, more] : [accept]
            }
        case .resource(.accept(let accept)):
            let count = min(accept.limit - accept.offset, 1_000)
            let data = Frame.resource(
                .chunk(
                    ResourceChunk(id: accept.id, offset: accept.offset, data: ByteBuffer(repeating: 0, count: Int(count)))))
            let end = Frame.resource(
                .end(
                    ResourceEnd(id: accept.id, algorithm: .xxh3, digest: [UInt8](repeating: 0, count: WireLimits.prefixDigest))))
            switch random.below(6) {
            case 0: return count > 0 ? [data] : [end]
            case 1: return count > 0 ? [data, end] : [end]
            case 2: return [.resource(.cancel(ResourceRefuse(id: accept.id, refusal: refusal)))]
            case 3: return [.dataUnavailable(TransferID(accept.id))]
            default: return []
            }
        case .resource(.have(let have)):
            return random.chance(70) ? [.resource(.from(ResourceFrom(id: have.id, offset: random.chance(50) ? have.offset : 0)))] : []
        case .resource(.from(let from)):
            return random.chance(70) ? [.resource(.accept(ResourceAccept(id: from.id, offset: from.offset, limit: from.offset)))] : []
        case .resource(.end(let end)):
            return random.chance(70) ? [.resource(.done(end.id))] : [.resource(.refuse(ResourceRefuse(id: end.id, refusal: refusal)))]
        default: return []
        }
    }
}
