import DequeModule
import EarshotCore
import EarshotWire
import NIOCore

/// A control connection between two machines: its two ends, and what is on its way to each. What is sent arrives in its order, as TCP has it,
/// late where the two are parted for a while, and not at all where an end is gone.
final class Wire {
    enum Packet {
        /// The initiator has proven its key: the responder's side is proven when this arrives.
        case proof
        /// A frame, encoded.
        case bytes(ByteBuffer)
        /// Stands for the frames by which both sides agree on a data connection.
        case agreement(TransferID)
    }

    enum State: Equatable {
        case handshake, open
        /// Its end is decided, and not reported yet.
        case closing(LinkEnd)
        case closed
    }

    final class End {
        let machine: Int
        let run: Int
        /// Who is here.
        let id: PeerID
        let facts: LinkFacts
        var state = State.handshake
        var wire: ConnectionStateMachine
        var decoder = FrameDecoder()
        var inbound: Deque<Packet> = []
        var lastArrival: Instant = .zero
        /// Nothing arrives here any more, though nobody here knows.
        var isDeaf = false
        /// The channel is not active any more, though its end is not reported yet.
        var isInactive = false

        var isOpen: Bool { self.state == .open }
        /// Whether it is there, and nothing is on its way to it.
        var isQuiet: Bool { self.isOpen && !self.isInactive && !self.isDeaf && self.inbound.isEmpty }

        init(machine: Int, run: Int, id: PeerID, facts: LinkFacts, wire: ConnectionStateMachine) {
            self.machine = machine
            self.run = run
            self.id = id
            self.facts = facts
            self.wire = wire
            self.decoder.phase = .proven
        }
    }

    /// The initiator's first.
    let ends: [End]
    var random: SplitMix64
    /// Whether one of the two is a hostile peer's.
    let isHostile: Bool

    init(ends: [End], random: SplitMix64, isHostile: Bool) {
        self.ends = ends
        self.random = random
        self.isHostile = isHostile
    }

    /// How its two ends are named.
    static func id(_ link: Int, _ side: Int) -> LinkID { LinkID(number: UInt64(link * 2 + side + 1)) }

    /// Which link and which side of it that is.
    static func place(_ id: LinkID) -> (link: Int, side: Int) { (Int(id.number - 1) / 2, Int(id.number - 1) % 2) }

    /// How long the next thing on it takes.
    func latency() -> Duration {
        switch self.random.below(10) {
        case 0: .microseconds(self.random.number(in: 5_000...120_000))
        default: .microseconds(self.random.number(in: 200...4_000))
        }
    }
}

/// An attempt to reach a peer, address by address.
struct Dial {
    enum Target {
        case peer(PeerID)
        case configured(ConfiguredPeer)
    }

    let machine: Int
    let run: Int
    let target: Target
    let addresses: [PeerAddress]
    var next = 0
    var failure: EarshotError?
    var random: SplitMix64

    /// Who must answer; anybody where `nil`.
    var expected: PeerID? {
        switch self.target {
        case .peer(let id): id
        case .configured(let peer): peer.id
        }
    }

    func input(_ event: DialEvent) -> Input {
        switch self.target {
        case .peer(let id): .dial(id, event)
        case .configured(let peer): .configuredDial(peer, event)
        }
    }
}

/// What passes, or does not, between machines.
struct Network {
    private let machines: Int
    private var parted: [Instant]
    private var slowed: [(until: Instant, by: Duration)]

    init(machines: Int) {
        self.machines = machines
        self.parted = Array(repeating: .zero, count: machines * machines)
        self.slowed = Array(repeating: (.zero, .zero), count: machines * machines)
    }

    private func place(_ one: Int, _ other: Int) -> Int { min(one, other) * self.machines + max(one, other) }

    mutating func part(_ one: Int, _ other: Int, until instant: Instant) {
        let place = self.place(one, other)
        self.parted[place] = max(self.parted[place], instant)
    }

    mutating func slow(_ one: Int, _ other: Int, by delay: Duration, until instant: Instant) {
        self.slowed[self.place(one, other)] = (instant, delay)
    }

    /// Until when nothing gets through between two machines; `nil` where it does.
    func parted(_ one: Int, _ other: Int, at now: Instant) -> Instant? {
        let until = self.parted[self.place(one, other)]
        return until > now ? until : nil
    }

    func delay(_ one: Int, _ other: Int, at now: Instant) -> Duration {
        let slowed = self.slowed[self.place(one, other)]
        return slowed.until > now ? slowed.by : .zero
    }

    mutating func heal() { self = Network(machines: self.machines) }

    // MARK: Addresses

    /// Where a machine is on one of its three interfaces: two with IPv4, one with a link-local IPv6 address.
    static func address(of machine: Int, interface: Int) -> PeerAddress {
        switch interface {
        case 0: PeerAddress(host: "10.77.0.\(machine + 1)", zone: nil, port: 47110)
        case 1: PeerAddress(host: "10.78.0.\(machine + 1)", zone: nil, port: 47110)
        default: PeerAddress(host: "fe80::\(machine + 1)", zone: "eth0", port: 47110)
        }
    }

    /// Which machine is there.
    func machine(at address: PeerAddress) -> Int? {
        (0..<self.machines).first { machine in
            (0..<3).contains { Self.address(of: machine, interface: $0).host == address.host }
        }
    }
}
