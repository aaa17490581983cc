import DequeModule
import EarshotWire
import OrderedCollections

/// What this machine and a peer have to do with each other in groups.
struct GroupTies: Sendable {
    /// Groups in which both are members, by what this side holds.
    private(set) var shared: OrderedSet<GroupID> = []

    // Of the connection that stands

    /// The groups that this side has named, each with the digest that it said last.
    private(set) var named: OrderedDictionary<GroupID, GroupRecordHash> = [:]
    /// Those that the peer has named, with its digests.
    private(set) var heard: OrderedDictionary<GroupID, GroupRecordHash> = [:]
    /// Groups in which this side's seat was shown to the peer.
    private var shown: Set<GroupID> = []
    /// Groups of which the peer was shown that it is no member.
    private var shownEnds: Set<GroupID> = []
    /// Groups of which the peer was asked for what is lacking, and has not answered.
    private var asked: Set<GroupID> = []
    /// By which digests, this side's and the peer's, it was last asked. Under the same ones its answer would be the same: what it holds beyond this
    /// side is not taken here.
    private var questioned: [GroupID: [GroupRecordHash]] = [:]
    /// Groups of which the peer is to be asked once it may be asked again.
    private var unasked: OrderedSet<GroupID> = []
    /// When the peer was asked, of each group: not as often as it has to answer, so that no question is in vain.
    private var questions = Self.questions
    /// Groups that the peer has named and that this side does not hold: it is asked once for what it has.
    private var strange: Set<GroupID> = []
    /// The seat of this side's, by its number, of which the peer heard last that it is left.
    private var left: [GroupID: UInt32] = [:]
    /// How often it has heard that, in all groups.
    private var leaves = 0
    /// When indexes of the peer were answered, of each group.
    private var answers = Self.answers
    /// Records that wait to be checked.
    var records: Deque<GroupRecordInput> = []
    /// Whether some of its are being checked.
    var isChecking = false
    /// What it has named behind records that are not dealt with: what it holds is what it has shown.
    private var late: OrderedDictionary<GroupID, GroupName> = [:]
    /// Groups in which it has sent a reliable message, and those in which one was refused, held here whoever is a member: where it is out and in
    /// again by what this side holds, it may never have known, and the order of its messages goes on.
    private var sentMessages: Set<GroupID> = []
    private var refusing: Set<GroupID> = []
    /// Groups that the two were in together on this connection, and are not any more: what is still on its way there keeps its own order.
    private var former: Set<GroupID> = []
    private var rate = RateLimiter<Int>(
        burst: EarshotLimits.groupRecordsPerSecond, interval: .seconds(1) / EarshotLimits.groupRecordsPerSecond, capacity: 4)

    /// Signatures of the peer's that were not valid. Kept across connections, so that a new one does not restore the allowance.
    private var invalid = RateLimiter<Int>(
        burst: EarshotLimits.groupInvalidSignatures, interval: EarshotLimits.groupInvalidSignatureInterval, capacity: 4)

    var isEmpty: Bool { self.shared.isEmpty }
    private static let questions = RateLimiter<GroupID>(
        burst: EarshotLimits.groupExchanges, interval: EarshotLimits.groupQuestionInterval, capacity: 2 * EarshotLimits.groups)
    private static let answers = RateLimiter<GroupID>(
        burst: EarshotLimits.groupExchanges, interval: .seconds(60) / EarshotLimits.groupExchanges, capacity: 2 * EarshotLimits.groups)

    /// Whether something may be said in any group now.
    var isAttached: Bool { self.shared.contains(where: self.isAttached) }

    /// Whether both sides have named the group, and hold each other for members.
    func isAttached(_ group: GroupID) -> Bool {
        self.named[group] != nil && self.heard[group] != nil && self.shared.contains(group)
    }

    mutating func join(_ group: GroupID) -> Bool {
        self.shownEnds.remove(group)
        return self.shared.append(group).inserted
    }

    mutating func part(_ group: GroupID) {
        if self.shared.remove(group) != nil { self.former.insert(group) }
        self.named[group] = nil
        self.shown.remove(group)
    }

    /// This machine is in the group no longer, or has given up joining it: what the peer has said of it was said to that seat, and where the peer
    /// names it again it is heard as if for the first time.
    mutating func forgetName(of group: GroupID) {
        self.heard[group] = nil
        self.strange.remove(group)
    }

    /// A connection stands, or none does: what was said counts no more.
    mutating func renew() {
        self.named = [:]
        self.heard = [:]
        self.shown = []
        self.shownEnds = []
        self.asked = []
        self.questioned = [:]
        self.unasked = []
        self.questions = Self.questions
        self.answers = Self.answers
        self.strange = []
        self.left = [:]
        self.leaves = 0
        self.records = []
        self.isChecking = false
        self.late = [:]
        self.sentMessages = []
        self.refusing = []
        self.former = []
    }

    func wasShared(_ group: GroupID) -> Bool { self.former.contains(group) }
    func hasSentMessage(in group: GroupID) -> Bool { self.sentMessages.contains(group) }
    func isRefusing(in group: GroupID) -> Bool { self.refusing.contains(group) }
    mutating func messageCame(in group: GroupID) { self.sentMessages.insert(group) }
    mutating func refuse(_ isRefusing: Bool, in group: GroupID) {
        if isRefusing { self.refusing.insert(group) } else { self.refusing.remove(group) }
    }

    mutating func name(_ group: GroupID, _ digest: GroupRecordHash) { self.named[group] = digest }

    /// Whether records that came before are still to be dealt with.
    var isBehind: Bool { self.isChecking || !self.records.isEmpty }

    mutating func hearLater(_ name: GroupName) {
        if self.late[name.group] != nil || self.late.count < WireLimits.groupsPerFrame { self.late[name.group] = name }
    }

    mutating func takeLate() -> [GroupName] {
        defer { self.late = [:] }
        return Array(self.late.values)
    }

    mutating func hear(_ group: GroupID, _ digest: GroupRecordHash) {
        // A peer is in no more groups than it can name at once.
        guard self.heard[group] != nil || self.heard.count < WireLimits.groupsPerFrame else { return }
        // This side was out, and the peer speaks to its new seat: what it says there has nothing to do with what was refused before.
        if self.heard[group] == nil, self.former.remove(group) != nil {
            self.refusing.remove(group)
            self.sentMessages.remove(group)
        }
        self.heard[group] = digest
        self.asked.remove(group)
    }

    /// Whether this side's seat has not been shown yet.
    mutating func show(_ group: GroupID) -> Bool { self.shown.insert(group).inserted }
    /// Whether the peer has not been shown yet that it is no member.
    mutating func showEnd(_ group: GroupID) -> Bool { self.shownEnds.insert(group).inserted }

    /// What comes of a wish to ask the peer for what is lacking.
    enum Question: Sendable {
        case asks
        /// It was asked so often that it need not answer: it is to be asked after a while (``takeUnasked()``).
        case asksLater
        /// It is asked already, or will be.
        case isAsking
        /// The peer has answered since, and neither side has changed.
        case isAnswered
    }

    mutating func ask(_ group: GroupID, holding own: GroupRecordHash, at now: MonotonicInstant) -> Question {
        guard !self.asked.contains(group), !self.unasked.contains(group), let said = self.heard[group] else { return .isAsking }
        guard self.questioned[group] != [own, said] else { return .isAnswered }
        guard self.questions.allows(group, at: now) else {
            self.unasked.append(group)
            return self.unasked.count == 1 ? .asksLater : .isAsking
        }
        self.questions.note(group, at: now)
        self.asked.insert(group)
        self.questioned[group] = [own, said]
        return .asks
    }

    mutating func takeUnasked() -> OrderedSet<GroupID> {
        defer { self.unasked = [] }
        return self.unasked
    }

    mutating func isStrange(_ group: GroupID) -> Bool {
        self.strange.count < WireLimits.groupsPerFrame && self.strange.insert(group).inserted
    }

    /// Whether the peer hears that this machine has left a seat in a group that it does not hold: once a connection, and of an older seat not
    /// any more. It may hold several, and shows those first on which others rest. It need not have named the group: it shows the seat before.
    mutating func mayLeave(_ group: GroupID, _ number: UInt32) -> Bool {
        guard number > self.left[group] ?? 0, self.leaves < EarshotLimits.groupRecords else { return false }
        self.left[group] = number
        self.leaves += 1
        return true
    }

    /// Whether one more index of the peer is answered.
    mutating func mayAnswer(_ group: GroupID, at now: MonotonicInstant) -> Bool {
        guard self.answers.allows(group, at: now) else { return false }
        self.answers.note(group, at: now)
        return true
    }

    /// How long the peer's next record has to wait before it is checked; `nil` if it is checked now.
    mutating func pauseBeforeCheck(at now: MonotonicInstant) -> Duration? {
        guard self.mayCheckMore(at: now) else { return EarshotLimits.groupInvalidSignatureInterval }
        guard self.rate.allows(0, at: now) else { return .seconds(1) / EarshotLimits.groupRecordsPerSecond }
        self.rate.note(0, at: now)
        return nil
    }

    /// Whether few enough of the peer's signatures were invalid lately for another one to be checked.
    func mayCheckMore(at now: MonotonicInstant) -> Bool { self.invalid.allows(0, at: now) }

    mutating func signatureFailed(at now: MonotonicInstant) { self.invalid.note(0, at: now) }
}

/// A record that came, and what its peer is charged for it until it is dealt with.
struct GroupRecordInput: Sendable {
    let group: GroupID
    let record: GroupRecord
    let hold: HoldID?
}
