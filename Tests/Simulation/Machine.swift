import DequeModule
import EarshotCore
import EarshotWire
import OrderedCollections

/// One machine of a world: what is there while its daemon runs, and what outlives that. A class, as the links are, so that it is changed where
/// it lies also where nothing is optimized.
final class Machine {
    let index: Int
    let isHostile: Bool
    /// A hostile machine has many; of an honest one there is the first alone.
    let identities: [PeerID]
    var name: String
    var settings: CoreSettings
    var disk = Disk()
    var mailbox = Mailbox()
    var shelf = Shelf()
    /// The last messages that persons have sent.
    var drafts: [MessageDraft] = []
    /// Numbers of messages that were sent more than once, and of those that were queued.
    var repeated: Set<UInt64> = []
    var queued: Set<UInt64> = []
    /// The number of the last message of each machine that was stored here, of queued ones and of others, in each conversation.
    var latest: OrderedDictionary<Line, UInt64> = [:]
    /// Messages of which readers of events have heard.
    var heard: OrderedSet<Mailbox.Key> = []
    /// How far its wall clock is set wrong.
    var skew: Duration = .zero
    /// Whether its clock begins in 1970 with each start, until somebody sets it.
    let forgetsTime: Bool
    /// For how long daemons have run with its disk, as that has it, and what this one goes on from.
    var runningNoted: WallTime?
    var runningBase = WallTime(milliseconds: 0)
    var runningSince: Instant = .zero
    /// Until when queued messages were to wait.
    var patience: [MessageID: Instant] = [:]
    /// What its clock said when it was set last.
    var clockSet = WallTime(milliseconds: .min)
    /// What persons here believe to have decided, by the answers that they had.
    var opinions: OrderedDictionary<PeerID, Opinion> = [:]
    /// How often the daemon was started.
    var run = 0
    var suspendedUntil: Instant?
    /// What has happened to it while it was suspended.
    var missed: [Happening] = []
    /// Until when it takes no data connections.
    var shutUntil = Instant.zero
    /// It stops after so many effects of its next input, and starts again so much later.
    var crash: (effects: Int, pause: Duration)?

    // While it runs
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
    /// Its control connections that the core knows of, and whose they are.
    var links: OrderedDictionary<LinkID, PeerID> = [:]
    var holds: OrderedSet<HoldID> = []
    /// Peers that were blocked when the last input had been dealt with.
    var blocked: [PeerID] = []
    /// The latest time that its wall clock has shown.
    var latestWall = WallTime(milliseconds: 0)
    /// When a blocked peer has asked something.
    var asked: OrderedDictionary<InvitationID, Instant> = [:]
    /// Blocked peers of which readers of events have heard since the start.
    var shownBlocked: [PeerID] = []
    /// Sessions that peers have named on their connections since the start.
    var named: OrderedDictionary<PeerID, [SessionID]> = [:]
    var data = DataSide()
    /// Whether a change of the outbox could not be written since the start.
    var hasFailedToKeep = false
    /// How much the disk was asked for messages.
    var works = 0
    var streams = StreamSide()
    var transfers = TransferSide()

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

    /// Messages that are stored in the order in which they were sent.
    struct Line: Hashable {
        let sender: Int
        let isQueued: Bool
        let group: GroupID?
    }

    /// What a person has decided about a peer, as far as was answered.
    struct Opinion {
        var trust: Trust
        var until: WallTime?
        /// What it may be instead: the machine stopped before it was answered.
        var doubts: [(Trust, until: WallTime?)] = []
    }

    struct OpenCall {
        let id: CallID
        let command: Command
        /// Whom it named, as that was understood then.
        let peer: PeerID?
        /// The resource that it named, as it was then.
        let resource: Resource?
        let at: Instant
    }

    /// What is gone when the daemon ends.
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
        self.crash = nil
        self.missed = []
        self.mailbox.pending = []
        self.works = 0
        self.hasFailedToKeep = false
    }
}

/// Simulated time, since the world began.
typealias Instant = Duration

/// What is to happen at some time. A machine is named with its run: what was meant for an earlier one comes to nothing.
enum Happening {
    case action(Action)
    case input(Int, run: Int, Input)
    /// The node comes to what was handed in.
    case turns(Int, run: Int)
    case timer(Int, run: Int, number: Int)
    case commits(Int, run: Int)
    /// What was asked for messages is done, or something of it.
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
    /// Whether the other side still gives signs of life.
    case listens(link: Int, side: Int)
    case hangsUp(link: Int)
    case dataDials(DataDial)
    case dataAttached(Int, run: Int, TransferID, attempt: UInt64, connection: Int)
    case dataLost(Int, run: Int, TransferID, attempt: UInt64)
    case streamBytes(Int, run: Int, StreamID)
    /// A resource's mover has done the next thing, or there is something on its data connection; and what a disk does beside movers.
    case moves(Int, run: Int, Int)
    case resourceBytes(Int, run: Int, Int)
    case shelves(Int, run: Int, World.ShelfWork)
    /// A program takes every stream that comes.
    case accepts(Int, run: Int, StreamID)

    /// Which machine has to be awake for it.
    func machine(_ links: [Wire], _ dials: [Dial]) -> Int? {
        switch self {
        case .action, .starts, .resumes, .hangsUp: nil
        case .turns(let machine, _), .input(let machine, _, _), .timer(let machine, _, _), .commits(let machine, _), .works(let machine, _),
            .drains(let machine, _), .dataAttached(let machine, _, _, _, _), .dataLost(let machine, _, _, _),
            .streamBytes(let machine, _, _), .accepts(let machine, _, _), .moves(let machine, _, _), .resourceBytes(let machine, _, _),
            .shelves(let machine, _, _):
            machine
        case .dials(let dial), .answers(let dial, _): dials[dial].machine
        case .proven(let link, let side, _), .arrives(let link, let side), .breaks(let link, let side, _), .listens(let link, let side):
            links[link].ends[side].machine
        case .dataDials(let dial): dial.from
        }
    }
}
