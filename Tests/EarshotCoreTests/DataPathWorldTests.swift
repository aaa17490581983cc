import EarshotWire
import Simulation
import Testing

@testable import EarshotCore

/// Two cores that want data connections for the same transfers, over a control connection with delays. Whichever core can dial, both get
/// the two ends of one connection or none, and each is told once.
@Suite struct DataPathWorldTests {
    private struct Side {
        var core: NodeCore
        let peer: PeerID
        let canDial: Bool
        /// The frames in flight to this side.
        var inbox: [Frame] = []
        /// The tokens with which the peer may dial in.
        var expected: [(transfer: TransferID, token: DataToken, attempt: UInt64)] = []
        var dials: [(transfer: TransferID, token: DataToken, attempt: UInt64)] = []
        /// The outcomes of each transfer: the number of a connection, or 0 for none.
        var outcomes: [TransferID: [Int]] = [:]
    }

    private struct World {
        static let link = LinkID(number: 1)
        var sides: [Side]
        var random: SplitMix64
        var now = MonotonicInstant(nanoseconds: 0)
        var connections = 0
        /// The connection that is being reported as attached.
        var attached = 0

        init(seed: UInt64) {
            var random = SplitMix64(seed: seed)
            let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])]
            let choice = random.next()
            self.sides = (0..<2).map { side in
                Side(core: .bench(ids[side], seed: random.next()), peer: ids[1 - side], canDial: choice >> UInt64(side) & 1 == 1)
            }
            self.random = random
        }

        mutating func handle(_ input: Input, by side: Int) {
            var effects: [Effect] = []
            self.sides[side].core.handle(input, at: Now(monotonic: self.now, wall: WallTime(milliseconds: 0)), into: &effects)
            for effect in effects {
                switch effect {
                case .send(_, let frames): self.sides[1 - side].inbox += frames
                case .dataPath(let transfer, let effect): self.carryOut(effect, transfer, by: side)
                default: Issue.record("an effect that is none of data connections")
                }
            }
        }

        private mutating func carryOut(_ effect: DataPathEffect, _ transfer: TransferID, by side: Int) {
            switch effect {
            case .expect(let token, _, _, let attempt): self.sides[side].expected.append((transfer, token, attempt))
            case .dial(let token, _, _, let attempt): self.sides[side].dials.append((transfer, token, attempt))
            case .revoke: self.sides[side].expected.removeAll { $0.transfer == transfer }
            case .use: self.sides[side].outcomes[transfer, default: []].append(self.attached)
            case .doWithout: self.sides[side].outcomes[transfer, default: []].append(0)
            case .drop, .close: break
            }
        }

        /// Delivers a frame, or ends a dial. Returns `false` if nothing is in flight.
        mutating func step() -> Bool {
            let choices = (0..<2).flatMap { side in
                (self.sides[side].inbox.isEmpty ? [] : [(side, true)]) + (self.sides[side].dials.isEmpty ? [] : [(side, false)])
            }
            guard !choices.isEmpty else { return false }
            let (side, isFrame) = choices[Int(self.random.next() % UInt64(choices.count))]
            if isFrame {
                let peer = self.sides[side].peer
                switch self.sides[side].inbox.removeFirst() {
                case .dataTicket(let ticket): self.handle(.dataPath(ticket.transfer, .ticket(ticket.token, from: peer)), by: side)
                case .dataUnavailable(let transfer): self.handle(.dataPath(transfer, .unavailable(from: peer)), by: side)
                default: Issue.record("a frame that is none of data connections")
                }
            } else {
                self.endDial(by: side)
            }
            return true
        }

        private mutating func endDial(by side: Int) {
            let index = Int(self.random.next() % UInt64(self.sides[side].dials.count))
            let dial = self.sides[side].dials.remove(at: index)
            guard self.sides[side].canDial,
                let place = self.sides[1 - side].expected.firstIndex(where: { $0.transfer == dial.transfer && $0.token == dial.token })
            else { return self.handle(.dataPath(dial.transfer, .dialFailed(attempt: dial.attempt)), by: side) }
            let expected = self.sides[1 - side].expected.remove(at: place)
            self.connections += 1
            self.attached = self.connections
            self.handle(.dataPath(dial.transfer, .attached(attempt: expected.attempt)), by: 1 - side)
            self.handle(.dataPath(dial.transfer, .attached(attempt: dial.attempt)), by: side)
        }
    }

    private static let transfers = (1...3).map { TransferID(high: 0, low: $0) }

    /// Makes a world in which both sides have agreed on some transfers.
    private func world(_ seed: UInt64) -> World {
        var world = World(seed: seed)
        for transfer in Self.transfers {
            for side in [0, 1] {
                let event = DataPathEvent.wanted(
                    world.sides[side].peer, link: World.link, isInitiator: side == 0, attempt: transfer.low)
                world.handle(.dataPath(transfer, event), by: side)
            }
        }
        return world
    }

    @Test func bothHaveOneConnectionOrNone() {
        var (with, without) = (0, 0)
        for seed in 0..<2000 as Range<UInt64> {
            var world = self.world(seed)
            while world.step() {}
            let canDial = world.sides.contains(where: \.canDial)
            for transfer in Self.transfers {
                let outcomes = world.sides.map { $0.outcomes[transfer, default: []] }
                #expect(outcomes[0] == outcomes[1] && outcomes[0].count == 1, "seed \(seed)")
                #expect((outcomes[0] != [0]) == canDial, "seed \(seed)")
            }
            if canDial { with += 1 } else { without += 1 }
            #expect(world.sides.allSatisfy { $0.expected.isEmpty && $0.core.nextDeadline == nil }, "seed \(seed)")
        }
        #expect(with > 0 && without > 0)
    }

    /// Time runs out on either side at any step. Each side is still told once, and two different connections never count as one.
    @Test func eachIsToldOnceWhateverRunsOut() {
        var expired = 0
        for seed in 0..<2000 as Range<UInt64> {
            var world = self.world(seed)
            let steps = world.random.next() % 12
            for _ in 0..<steps where world.step() {}
            world.now = world.now + EarshotLimits.dataDialTime
            for side in [0, 1] where world.random.next() % 2 == 0 { world.handle(.deadline, by: side) }
            while world.step() {}
            for side in [0, 1] { world.handle(.deadline, by: side) }
            for transfer in Self.transfers {
                let outcomes = world.sides.map { $0.outcomes[transfer, default: []] }
                #expect(outcomes.allSatisfy { $0.count == 1 }, "seed \(seed)")
                let used = outcomes.flatMap(\.self).filter { $0 != 0 }
                #expect(Set(used).count <= 1, "seed \(seed)")
                if used.count < 2 { expired += 1 }
            }
            #expect(world.sides.allSatisfy { $0.expected.isEmpty && $0.core.nextDeadline == nil }, "seed \(seed)")
        }
        #expect(expired > 0)
    }
}
