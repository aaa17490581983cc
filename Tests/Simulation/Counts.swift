import EarshotCore
import EarshotWire

/// The number of events of each kind. A kind that never occurs is not tested.
package struct Counts: Sendable {
    /// The events that follow from a schedule's actions.
    package enum Kind: String, Sendable, CaseIterable {
        case links, dials
        case superseded = "links superseded"
        case lost = "links lost"
        case dead = "links found dead"
        case refused = "links refused"
        case inOrder = "links closed in order"
        case crossedFrames = "frames that crossed"
        case violations = "frames out of order"
        case hostileFrames = "hostile frames"
        case crashes = "machines stopped"
        case lostEffects = "effects not carried out"
        case lostCommits = "commits lost"
        case orderlyStops = "machines stopped in order"
        case suspends = "machines suspended"
        case commits = "commits"
        case failedCommits = "commits failed"
        case answers = "answers"
        case failures = "answers of failure"
        case accepted = "invitations accepted"
        case declined = "invitations declined"
        case timedOut = "invitations timed out"
        case cancelled = "invitations cancelled"
        case failed = "invitations failed"
        case blocked = "peers blocked"
        case muted = "frames to blocked peers"
        case sessionsEnded = "sessions ended"
        case trustEnded = "trust that ended by itself"
        case digits = "digits shown"
        case matches = "digits matched"
        case mismatches = "digits differed"
        case comparisonsFailed = "comparisons failed"
        case dataUsed = "data connections used"
        case storedMessages = "messages stored"
        case duplicates = "messages that came again"
        case refusedMessages = "messages refused"
        case unreliableMessages = "unreliable messages"
        case delivered = "messages told delivered"
        case unconfirmed = "messages told unconfirmed"
        case failedMessages = "messages told failed"
        case waiting = "messages told queued"
        case reads = "messages read"
        case failedWork = "message work that failed"
        case streams
        case streamsAccepted = "streams accepted"
        case streamsDone = "streams done"
        case streamsAborted = "streams aborted"
        case streamsTimedOut = "streams timed out"
        case streamsBusy = "streams refused as too many"
        case streamsLost = "streams lost with their connection"
        case streamsMoved = "streams moved to data connections"
        case streamsCalledBack = "streams called back"
        case streamsLeft = "streams open at the end"
        case resources
        case resourcesOffered = "resources offered"
        case resourcesSent = "resources sent"
        case resourcesReceived = "resources received"
        case resourcesFailed = "resources failed"
        case resourcesCancelled = "resources cancelled"
        case resourcesTimedOut = "resources timed out"
        case resourcesPaused = "resources interrupted"
        case resourcesResumed = "resources resumed"
        case resourcesOverData = "resources over data connections"
        case resourcesPlaced = "resources put in place"
        case moversFailed = "movers failed"
        case groups
        case groupMessages = "frames in groups"
        case restores = "groups restored from backups"
        case hostileMembers = "hostile members at the end"
        case hostileGroups = "groups of hostile creators at the end"
        case shares = "files sent to groups"
        case sharesReceived = "files received in groups"
        case groupPairs = "pairs in a group at the end"
        case crowdedGroups = "groups with more peers than there is room for"
        case groupsLeft = "groups left"
        case groupsRemoved = "members removed"
        case groupsDissolved = "groups dissolved"
        case groupsJoined = "groups joined"
        case deviceAnnouncements = "announcements to devices"
        case deviceRegisters = "devices asked who they are"
        case deviceOffers = "devices' offers accepted"
        case deviceTexts = "devices' texts received"
        case deviceFiles = "devices' files received"
        case deviceUploadsRefused = "devices' uploads refused"
        case devicePINs = "devices' PINs refused"
        case devicesHidden = "devices' offers refused late"
        case shipments = "attempts to send to devices"
        case shipmentsDelivered = "things delivered to devices"
        case shipmentsUnconfirmed = "things for devices with an unknown outcome"
        case agreed = "pairs in a session at the end"
        case apart = "pairs in none at the end"
    }

    private var actions: [Action.Verb: Int] = [:]
    private var kinds: [Kind: Int] = [:]

    package init() {}

    package subscript(verb: Action.Verb) -> Int {
        get { self.actions[verb] ?? 0 }
        set { self.actions[verb] = newValue }
    }

    package subscript(kind: Kind) -> Int {
        get { self.kinds[kind] ?? 0 }
        set { self.kinds[kind] = newValue }
    }

    /// All counts, in a fixed order.
    package var all: [(name: String, count: Int)] {
        Action.Verb.allCases.map { ($0.rawValue, self[$0]) } + Kind.allCases.map { ($0.rawValue, self[$0]) }
    }

    package mutating func add(_ other: Counts) {
        for verb in Action.Verb.allCases { self[verb] += other[verb] }
        for kind in Kind.allCases { self[kind] += other[kind] }
    }

    mutating func note(_ end: LinkEnd) {
        switch end {
        case .lost: self[.lost] += 1
        case .dead: self[.dead] += 1
        case .refused: self[.refused] += 1
        case .inOrder: self[.inOrder] += 1
        }
    }

    mutating func note(_ status: Message.Status) {
        switch status {
        case .delivered, .read: self[.delivered] += 1
        case .unconfirmed: self[.unconfirmed] += 1
        case .failed: self[.failedMessages] += 1
        case .queued, .sent: self[.waiting] += 1
        }
    }

    mutating func note(_ effect: Effect) {
        switch effect {
        case .answer(_, .failure): self[.failures] += 1
        case .publish(.invitationResolved(let invitation)):
            switch invitation.state {
            case .accepted: self[.accepted] += 1
            case .declined: self[.declined] += 1
            case .timedOut: self[.timedOut] += 1
            case .cancelled: self[.cancelled] += 1
            case .failed: self[.failed] += 1
            case .pending: break
            }
        case .publish(.sessionChanged(_, ended: true)): self[.sessionsEnded] += 1
        case .publish(.groupLeft(_, let end)):
            switch end {
            case .left: self[.groupsLeft] += 1
            case .removed: self[.groupsRemoved] += 1
            case .dissolved: self[.groupsDissolved] += 1
            }
        case .answer(_, .invitation(let invitation)) where invitation.group != nil && invitation.state == .accepted:
            self[.answers] += 1
            self[.groupsJoined] += 1
        case .publish(.verificationChanged(let verification)):
            switch verification.state {
            case .ready: self[.digits] += 1
            case .mismatched: self[.mismatches] += 1
            case .failed, .timedOut: self[.comparisonsFailed] += 1
            case .none, .requested, .waiting, .matched, .cancelled: break
            }
        case .answer: self[.answers] += 1
        case .log(let notice): if notice.text == "trust has ended" { self[.trustEnded] += 1 }
        default: break
        }
    }
}
