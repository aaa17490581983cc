import DequeModule
import EarshotCore
import EarshotWire
import NIOCore

/// A control connection between two machines: its two ends, and the packets in flight to each. Packets arrive in order, as with TCP: late
/// during a partition, and not at all if an end is gone.
final class Wire {
    enum Packet {
        /// The initiator has proven its key. The responder's side is proven when this arrives.
        case proof
        /// A frame, encoded.
        case bytes(ByteBuffer)
    }

    enum State: Equatable {
        case handshake, open
        /// The end is decided, and not reported yet.
        case closing(LinkEnd)
        case closed
    }

    final class End {
        let machine: Int
        let run: Int
        /// The identity at this end.
        let id: PeerID
        let facts: LinkFacts
        var state = State.handshake
        var wire: ConnectionStateMachine
        var decoder = FrameDecoder()
        var inbound: Deque<Packet> = []
        var lastArrival: Instant = .zero
        /// Packets no longer arrive here, although nobody here knows.
        var isDeaf = false
        /// The channel is no longer active, although its end is not reported yet.
        var isInactive = false

        var isOpen: Bool { self.state == .open }
        /// Whether the end is alive, and no packet is in flight to it.
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

    /// The two ends, the initiator's first.
    let ends: [End]
    var random: SplitMix64
    /// Whether one of the two is a hostile peer.
    let isHostile: Bool

    init(ends: [End], random: SplitMix64, isHostile: Bool) {
        self.ends = ends
        self.random = random
        self.isHostile = isHostile
    }

    /// Returns the id of one end of a link.
    static func id(_ link: Int, _ side: Int) -> LinkID { LinkID(number: UInt64(link * 2 + side + 1)) }

    /// Returns the link and the side of an id.
    static func place(_ id: LinkID) -> (link: Int, side: Int) { (Int(id.number - 1) / 2, Int(id.number - 1) % 2) }

    /// Returns the delay of the next packet.
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

    /// The peer that must answer; any if `nil`.
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

/// The connectivity between machines.
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

    /// Returns the end of a partition between two machines; `nil` if there is none.
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

    /// Returns the address of a machine on one of its three interfaces: two with IPv4, one with a link-local IPv6 address.
    static func address(of machine: Int, interface: Int) -> PeerAddress {
        switch interface {
        case 0: PeerAddress(host: "10.77.0.\(machine + 1)", zone: nil, port: 47110)
        case 1: PeerAddress(host: "10.78.0.\(machine + 1)", zone: nil, port: 47110)
        default: PeerAddress(host: "fe80::\(machine + 1)", zone: "eth0", port: 47110)
        }
    }

    /// Returns the machine at an address.
    func machine(at address: PeerAddress) -> Int? {
        (0..<self.machines).first { machine in
            (0..<3).contains { Self.address(of: machine, interface: $0).host == address.host }
        }
    }
}
