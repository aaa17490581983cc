import DequeModule
import EarshotCore
import EarshotWire
import OrderedCollections

/// What a machine's connections and tasks have handed in, and the node has not dealt with (`NodeInput`).
enum Handed {
    case proven(link: Int, side: Int, dial: Int?)
    /// The connection's machine has let it pass.
    case frame(Frame, link: Int, side: Int)
    case closed(link: Int, side: Int, LinkEnd)
    case input(Input)

    /// Whether it came on that connection.
    func isOf(_ link: Int) -> Bool {
        switch self {
        case .proven(let own, _, _), .frame(_, let own, _), .closed(let own, _, _): own == link
        case .input: false
        }
    }
}

/// The node's one queue (`NodeInputs`).
struct NodeQueue {
    var waiting: Deque<Handed> = []
    /// When the last of it has its turn.
    var end: Instant = .zero
    private var random: SplitMix64
    /// Whether the node has much to do.
    private let isBusy: Bool

    init(_ random: SplitMix64) {
        self.random = random
        self.isBusy = self.random.chance(40)
    }

    /// How long it takes until the node comes to something, where nothing is before that.
    mutating func delay() -> Duration {
        switch self.random.below(100) {
        case 0..<(self.isBusy ? 30 : 70): .zero
        case 0..<(self.isBusy ? 60 : 96): .microseconds(self.random.number(in: 10...500))
        default: .microseconds(self.random.number(in: 1_000...15_000))
        }
    }
}

/// Inputs in their order: what is handed in waits for its turn, and what persons ask and the disk has done comes in between. So the machine of a
/// connection has heard frames that the core has not, when the core says something on the connection.
extension World {
    mutating func yield(_ handed: Handed, to machine: Int) {
        let delay = self.machines[machine].queue.delay()
        let isFirst = self.machines[machine].queue.waiting.isEmpty
        guard !isFirst || delay > .zero else { return self.dealWith(handed, on: machine) }
        let at = max(self.clock.now + delay, isFirst ? .zero : self.machines[machine].queue.end)
        self.machines[machine].queue.end = at
        self.machines[machine].queue.waiting.append(handed)
        self.clock.plan(.turns(machine, run: self.machines[machine].run), at: at)
    }

    /// The next one has its turn.
    mutating func takeTurn(of machine: Int) {
        guard let handed = self.machines[machine].queue.waiting.popFirst() else { return }
        self.dealWith(handed, on: machine)
    }

    /// A node that is to stop deals first with what was handed in.
    mutating func dealWithAll(on machine: Int) {
        while let handed = self.machines[machine].queue.waiting.popFirst() { self.dealWith(handed, on: machine) }
    }

    private mutating func dealWith(_ handed: Handed, on machine: Int) {
        switch handed {
        case .proven(let link, let side, let dial): self.connectionProven(link, side, dial)
        case .frame(let frame, let link, let side):
            self.deliver(frame, on: Wire.id(link, side), from: self.links[link].ends[side].facts.peer.id, to: machine)
        case .closed(let link, let side, let end):
            self.hand(.link(Wire.id(link, side), .closed(end)), to: machine)
            self.machines[machine].links.removeValue(forKey: Wire.id(link, side))
        case .input(let input): self.hand(input, to: machine)
        }
    }

    /// Whether an input comes from a task, through the queue.
    static func isHandedIn(_ input: Input) -> Bool {
        switch input {
        case .dial, .configuredDial, .flush: true
        default: false
        }
    }
}
