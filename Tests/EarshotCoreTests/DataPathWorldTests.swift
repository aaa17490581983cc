import EarshotWire
import Simulation
import Testing

@testable import EarshotCore

/// Two sides that want data connections for the same transfers, over a control connection with delays. Whichever side can dial, both get
/// the two ends of one connection or none, and each is told once.
@Suite struct DataPathWorldTests {
    private struct Side {
        var paths = DataPaths()
        var random: any RandomNumberGenerator & Sendable
        let peer: PeerID
        let canDial: Bool
        /// The frames in flight to this side.
        var inbox: [Frame] = []
        /// The tokens with which the peer may dial in.
        var expected: [(transfer: TransferID, token: DataToken, attempt: UInt64)] = []
        var dials: [(transfer: TransferID, token: DataToken, attempt: UInt64)] = []
        /// The outcomes of each transfer: the number of a connection, or 0 for none.
        var outcomes: [TransferID: [Int]] = [:]

        mutating func open(_ stream: StreamID, isInitiator: Bool, into effects: inout [Effect]) {
            self.paths.open(
                .stream(stream), with: self.peer, over: World.link, isInitiator: isInitiator, using: &self.random, into: &effects)
        }

        /// Returns whether there is a data connection, if the event ends the attempt.
        mutating func handle(_ event: DataPathEvent, of transfer: TransferID, into effects: inout [Effect]) -> Bool? {
            self.paths.handle(event, of: transfer, using: &self.random, into: &effects)?.stands
        }

        /// Whether no attempt is under way, and nobody may dial in.
        var isOver: Bool {
            self.expected.isEmpty && DataPathWorldTests.streams.allSatisfy { self.paths.waiting(TransferID($0)) == nil }
        }
    }

    private struct World {
        static let link = LinkID(number: 1)
        var sides: [Side]
        var random: SplitMix64
        var connections = 0
        /// The connection that is being reported as attached.
        var attached = 0

        init(seed: UInt64) {
            var random = SplitMix64(seed: seed)
            let ids = [PeerID(subjectPublicKeyInfo: [1]), PeerID(subjectPublicKeyInfo: [2])]
            let choice = random.next()
            self.sides = (0..<2).map { side in
                Side(random: SplitMix64(seed: random.next()), peer: ids[1 - side], canDial: choice >> UInt64(side) & 1 == 1)
            }
            self.random = random
        }

        mutating func open(_ stream: StreamID, by side: Int) {
            var effects: [Effect] = []
            self.sides[side].open(stream, isInitiator: side == 0, into: &effects)
            self.carryOut(effects, by: side)
        }

        mutating func handle(_ event: DataPathEvent, of transfer: TransferID, by side: Int) {
            var effects: [Effect] = []
            let stands = self.sides[side].handle(event, of: transfer, into: &effects)
            self.carryOut(effects, by: side)
            if let stands { self.sides[side].outcomes[transfer, default: []].append(stands ? self.attached : 0) }
        }

        /// Lets the time of all attempts of one side run out.
        mutating func expire(by side: Int) {
            for transfer in DataPathWorldTests.streams.map({ TransferID($0) }) {
                guard let attempt = self.sides[side].paths.waiting(transfer) else { continue }
                self.handle(.expired(attempt: attempt), of: transfer, by: side)
            }
        }

        private mutating func carryOut(_ effects: [Effect], by side: Int) {
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
            case .use, .drop, .close: break
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
                case .dataTicket(let ticket): self.handle(.ticket(ticket.token, from: peer), of: ticket.transfer, by: side)
                case .dataUnavailable(let transfer): self.handle(.unavailable(from: peer), of: transfer, by: side)
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
            else { return self.handle(.dialFailed(attempt: dial.attempt), of: dial.transfer, by: side) }
            let expected = self.sides[1 - side].expected.remove(at: place)
            self.connections += 1
            self.attached = self.connections
            self.handle(.attached(attempt: expected.attempt), of: dial.transfer, by: 1 - side)
            self.handle(.attached(attempt: dial.attempt), of: dial.transfer, by: side)
        }
    }

    private static let streams = (1...3).map { StreamID(high: 0, low: $0) }

    /// Makes a world in which both sides have agreed on some transfers.
    private func world(_ seed: UInt64) -> World {
        var world = World(seed: seed)
        for stream in Self.streams {
            for side in [0, 1] { world.open(stream, by: side) }
        }
        return world
    }

    @Test func bothHaveOneConnectionOrNone() {
        var (with, without) = (0, 0)
        for seed in 0..<2000 as Range<UInt64> {
            var world = self.world(seed)
            while world.step() {}
            let canDial = world.sides.contains(where: \.canDial)
            for stream in Self.streams {
                let outcomes = world.sides.map { $0.outcomes[TransferID(stream), default: []] }
                #expect(outcomes[0] == outcomes[1] && outcomes[0].count == 1, "seed \(seed)")
                #expect((outcomes[0] != [0]) == canDial, "seed \(seed)")
            }
            if canDial { with += 1 } else { without += 1 }
            #expect(world.sides.allSatisfy { $0.isOver }, "seed \(seed)")
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
            for side in [0, 1] where world.random.next() % 2 == 0 { world.expire(by: side) }
            while world.step() {}
            for side in [0, 1] { world.expire(by: side) }
            for stream in Self.streams {
                let outcomes = world.sides.map { $0.outcomes[TransferID(stream), default: []] }
                #expect(outcomes.allSatisfy { $0.count == 1 }, "seed \(seed)")
                let used = outcomes.flatMap(\.self).filter { $0 != 0 }
                #expect(Set(used).count <= 1, "seed \(seed)")
                if used.count < 2 { expired += 1 }
            }
            #expect(world.sides.allSatisfy { $0.isOver }, "seed \(seed)")
        }
        #expect(expired > 0)
    }
}
