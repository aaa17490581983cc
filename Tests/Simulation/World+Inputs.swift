import DequeModule
import EarshotCore
import EarshotWire
import OrderedCollections

/// Events that a machine's connections and tasks have handed in, and the node has not handled yet (`NodeInput`).
enum Handed {
    case proven(link: Int, side: Int, dial: Int?)
    /// The connection's state machine has accepted the frame.
    case frame(Frame, link: Int, side: Int)
    case closed(link: Int, side: Int, LinkEnd)
    case input(Input)

    /// Whether the event came on that connection.
    func isOf(_ link: Int) -> Bool {
        switch self {
        case .proven(let own, _, _), .frame(_, let own, _), .closed(let own, _, _): own == link
        case .input: false
        }
    }
}

/// The node's only queue (`NodeInputs`).
struct NodeQueue {
    var waiting: Deque<Handed> = []
    /// The time of its last entry's turn.
    var end: Instant = .zero
    private var random: SplitMix64
    /// Whether the node is busy.
    private let isBusy: Bool

    init(_ random: SplitMix64) {
        self.random = random
        self.isBusy = self.random.chance(40)
    }

    /// Returns the delay until the node handles an entry, if no entry is before it.
    mutating func delay() -> Duration {
        switch self.random.below(100) {
        case 0..<(self.isBusy ? 30 : 70): .zero
        case 0..<(self.isBusy ? 60 : 96): .microseconds(self.random.number(in: 10...500))
        default: .microseconds(self.random.number(in: 1_000...15_000))
        }
    }
}

/// The order of inputs. Entries of the queue wait for their turn, while users' calls and the results of the disk come in between. The state
/// machine of a connection may therefore have processed frames that the core has not, when the core sends on the connection.
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

    /// Handles the next entry.
    mutating func takeTurn(of machine: Int) {
        guard let handed = self.machines[machine].queue.waiting.popFirst() else { return }
        self.dealWith(handed, on: machine)
    }

    /// Handles all entries, before the node stops.
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
