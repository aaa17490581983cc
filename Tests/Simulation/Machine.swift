import DequeModule
import EarshotCore
import EarshotWire
import OrderedCollections

/// One machine of a world: the state while its daemon runs, and the state that outlives the daemon. A class like the links, so that it is
/// changed in place even in unoptimized builds.
final class Machine {
    let index: Int
    let isHostile: Bool
    /// A hostile machine has many identities, an honest one only the first.
    let identities: [PeerID]
    var name: String
    var settings: CoreSettings
    var disk = Disk()
    var mailbox = Mailbox()
    var shelf = Shelf()
    /// The last messages that users have sent.
    var drafts: [MessageDraft] = []
    /// The numbers of messages that were sent more than once, and of queued ones.
    var repeated: Set<UInt64> = []
    var queued: Set<UInt64> = []
    /// The number of the last message of each machine that was stored here, for queued messages and others, in each conversation.
    var latest: OrderedDictionary<Line, UInt64> = [:]
    /// The messages that subscribers of events have received.
    var heard: OrderedSet<Mailbox.Key> = []
    /// The error of its wall clock.
    var skew: Duration = .zero
    /// Whether its clock begins in 1970 with each start, until it is set.
    let forgetsTime: Bool
    /// The total running time of daemons with its disk, as stored on disk, and the value that this run started from.
    var runningNoted: WallTime?
    var runningBase = WallTime(milliseconds: 0)
    var runningSince: Instant = .zero
    /// The times until which queued messages must wait.
    var patience: [MessageID: Instant] = [:]
    /// The time of its clock when it was set last.
    var clockSet = WallTime(milliseconds: .min)
    /// The decisions of users here, as the answers confirmed them.
    var opinions: OrderedDictionary<PeerID, Opinion> = [:]
    /// The number of starts of the daemon.
    var run = 0
    var suspendedUntil: Instant?
    /// The events that occurred while it was suspended.
    var missed: [Happening] = []
    /// The time until which it accepts no data connections.
    var shutUntil = Instant.zero
    /// A pending crash: after so many effects of the next input, with a restart after the pause.
    var crash: (effects: Int, pause: Duration)?

    // State of the running daemon
    var core: NodeCore?
    var pins = PinnedPeers()
    var queue: NodeQueue
    var inputs: Deque<Input> = []
    var isCarryingOut = false
    var timer: (at: MonotonicInstant, number: Int)?
    var timers = 0
    var calls: [OpenCall] = []
    var lastCall: UInt64 = 0
    var isStopping = false
    /// The control connections that the core knows of, with their peers.
    var links: OrderedDictionary<LinkID, PeerID> = [:]
    var holds: OrderedSet<HoldID> = []
    /// The peers that were blocked after the last input.
    var blocked: [PeerID] = []
    /// The latest time that its wall clock has shown.
    var latestWall = WallTime(milliseconds: 0)
    /// The times at which blocked peers sent invitations.
    var asked: OrderedDictionary<InvitationID, Instant> = [:]
    /// The blocked peers that subscribers of events have seen since the start.
    var shownBlocked: [PeerID] = []
    /// The sessions that peers have named on their connections since the start.
    var named: OrderedDictionary<PeerID, [SessionID]> = [:]
    var data = DataSide()
    /// Whether writing a change of the outbox has failed since the start.
    var hasFailedToKeep = false
    /// The number of disk operations for messages.
    var works = 0
    var streams = StreamSide()
    var transfers = TransferSide()
    var devices = DeviceSide()

    var id: PeerID { self.identities[0] }

    init(index: Int, isHostile: Bool, identities: [PeerID], name: String, settings: CoreSettings, forgetsTime: Bool, queue: NodeQueue) {
        self.index = index
        self.isHostile = isHostile
        self.identities = identities
        self.name = name
        self.settings = settings
        self.forgetsTime = forgetsTime
        self.queue = queue
    }

    /// A sequence of messages that must be stored in the order of sending.
    struct Line: Hashable {
        let sender: Int
        let isQueued: Bool
        let group: GroupID?
    }

    /// A user's decision about a peer, as confirmed by an answer.
    struct Opinion {
        var trust: Trust
        var until: WallTime?
        /// The alternatives: the machine stopped before it answered.
        var doubts: [(Trust, until: WallTime?)] = []
    }

    struct OpenCall {
        let id: CallID
        let command: Command
        /// The peer that the call named, as resolved then.
        let peer: PeerID?
        /// The resource that the call named, as it was then.
        let resource: Resource?
        let at: Instant
    }

    /// Discards the state of the daemon, which has ended.
    func powerOff() {
        self.core = nil
        self.pins = PinnedPeers()
        self.inputs = []
        self.queue.waiting = []
        self.queue.end = .zero
        self.timer = nil
        self.calls = []
        self.isStopping = false
        self.links = [:]
        self.holds = []
        self.blocked = []
        self.shownBlocked = []
        self.named = [:]
        self.asked = [:]
        self.data = DataSide()
        self.streams = StreamSide()
        self.transfers = TransferSide()
        self.devices = DeviceSide()
        self.crash = nil
        self.missed = []
        self.mailbox.pending = []
        self.works = 0
        self.hasFailedToKeep = false
    }
}

/// The simulated time since the world began.
typealias Instant = Duration

/// A planned event. Machines are named with their run: events for an earlier run are dropped.
enum Happening {
    case action(Action)
    case input(Int, run: Int, Input)
    /// The node takes up what was handed in.
    case turns(Int, run: Int)
    case timer(Int, run: Int, number: Int)
    case commits(Int, run: Int)
    /// A disk operation for messages is done, or part of it.
    case works(Int, run: Int)
    case starts(Int, run: Int)
    case resumes(Int)
    case drains(Int, run: Int)
    /// The next address of a dial is tried, or has answered.
    case dials(Int)
    case answers(dial: Int, machine: Int)
    case proven(link: Int, side: Int, dial: Int?)
    case arrives(link: Int, side: Int)
    case breaks(link: Int, side: Int, LinkEnd)
    /// One side checks for a sign of life of the other.
    case listens(link: Int, side: Int)
    case hangsUp(link: Int)
    case dataDials(DataDial)
    case dataAttached(Int, run: Int, connection: Int, attempt: UInt64, since: Instant)
    case dataLost(Int, run: Int, connection: Int)
    case streamBytes(Int, run: Int, StreamID)
    /// A resource's mover finishes an order, its data connection has bytes, or the disk works outside of movers.
    case moves(Int, run: Int, Int)
    case resourceBytes(Int, run: Int, Int)
    case shelves(Int, run: Int, World.ShelfWork)
    /// A device takes the next step of an attempt.
    case receives(Int, run: Int, Int)
    /// A program accepts every stream.
    case accepts(Int, run: Int, StreamID)

    /// Returns the machine that must be awake for the event.
    func machine(_ links: [Wire], _ dials: [Dial]) -> Int? {
        switch self {
        case .action, .starts, .resumes, .hangsUp: nil
        case .turns(let machine, _), .input(let machine, _, _), .timer(let machine, _, _), .commits(let machine, _), .works(let machine, _),
            .drains(let machine, _), .dataAttached(let machine, _, _, _, _), .dataLost(let machine, _, _),
            .streamBytes(let machine, _, _), .accepts(let machine, _, _), .moves(let machine, _, _), .resourceBytes(let machine, _, _),
            .shelves(let machine, _, _), .receives(let machine, _, _):
            machine
        case .dials(let dial), .answers(let dial, _): dials[dial].machine
        case .proven(let link, let side, _), .arrives(let link, let side), .breaks(let link, let side, _), .listens(let link, let side):
            links[link].ends[side].machine
        case .dataDials(let dial): dial.from
        }
    }
}
