import DequeModule
import EarshotWire
import OrderedCollections

/// The state of one peer in the groups that it shares with this machine.
struct GroupTies: Sendable {
    /// The groups in which both are members, by the records that this side holds.
    private(set) var shared: OrderedSet<GroupID> = []

    // State of the present connection

    /// The groups that this side has named, each with the digest that it sent last.
    private(set) var named: OrderedDictionary<GroupID, GroupRecordHash> = [:]
    /// The groups that the peer has named, each with the peer's digest.
    private(set) var heard: OrderedDictionary<GroupID, GroupRecordHash> = [:]
    /// The groups in which this side has shown its seat to the peer.
    private var shown: Set<GroupID> = []
    /// The groups in which this side has shown the peer that the peer is no longer a member.
    private var shownEnds: Set<GroupID> = []
    /// The groups for which the peer was asked for missing records and has not answered.
    private var asked: Set<GroupID> = []
    /// The two digests, this side's and the peer's, at the last question about each group. With the same digests the answer would be the
    /// same: this side refuses whatever else the peer holds.
    private var questioned: [GroupID: [GroupRecordHash]] = [:]
    /// The groups about which the peer is to be asked as soon as the rate limit allows it.
    private var unasked: OrderedSet<GroupID> = []
    /// The rate limit on questions to the peer, per group: lower than the rate at which the peer has to answer, so that each gets an answer.
    private var questions = Self.questions
    /// The groups that the peer has named and that this side does not hold. The peer is asked once for its records.
    private var strange: Set<GroupID> = []
    /// For each group, the number of this side's latest seat of which the peer heard that it is left.
    private var left: [GroupID: UInt32] = [:]
    /// The number of such leaves sent to the peer, in all groups.
    private var leaves = 0
    /// The rate limit on answers to the peer's indexes, per group.
    private var answers = Self.answers
    /// The records that wait to be checked.
    private var records: Deque<GroupRecordInput> = []
    /// Whether some of the peer's records are being checked.
    private(set) var isChecking = false
    /// Names received while earlier records are still unchecked. They are compared after those records are merged.
    private var late: OrderedDictionary<GroupID, GroupName> = [:]
    /// The order of the peer's messages in each group. It is kept regardless of membership: if the records here show the peer out and in
    /// again, the peer may never have noticed, and continues its order of messages.
    private var orders: [GroupID: IncomingOrder] = [:]
    /// The groups that both were in on this connection, and no longer are. Messages still in flight there keep their order.
    private var former: Set<GroupID> = []
    private var rate = RateLimiter<Int>(
        burst: EarshotLimits.groupRecordsPerSecond, interval: .seconds(1) / EarshotLimits.groupRecordsPerSecond, capacity: 4)

    /// The rate limit on the peer's invalid signatures. The limit is kept across connections, so that reconnecting does not restore the
    /// allowance.
    private var invalid = RateLimiter<Int>(
        burst: EarshotLimits.groupInvalidSignatures, interval: EarshotLimits.groupInvalidSignatureInterval, capacity: 4)

    var isEmpty: Bool { self.shared.isEmpty }
    private static let questions = RateLimiter<GroupID>(
        burst: EarshotLimits.groupExchanges, interval: EarshotLimits.groupQuestionInterval, capacity: 2 * EarshotLimits.groups)
    private static let answers = RateLimiter<GroupID>(
        burst: EarshotLimits.groupExchanges, interval: .seconds(60) / EarshotLimits.groupExchanges, capacity: 2 * EarshotLimits.groups)

    /// Whether any group is attached now.
    var isAttached: Bool { self.shared.contains(where: self.isAttached) }

    /// Whether both sides have named the group and consider each other members.
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

    /// Forgets what the peer said of a group that this machine has left, or stopped joining. The peer said it to the former seat. If the
    /// peer names the group again, this side handles the name as the first one.
    mutating func forgetName(of group: GroupID) {
        self.heard[group] = nil
        self.strange.remove(group)
    }

    /// Clears the state of the connection, after a connection was established or lost.
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
        self.orders = [:]
        self.former = []
    }

    func wasShared(_ group: GroupID) -> Bool { self.former.contains(group) }
    func order(in group: GroupID) -> IncomingOrder? { self.orders[group] }
    mutating func note(_ order: IncomingOrder, in group: GroupID) { self.orders[group] = order }

    mutating func name(_ group: GroupID, _ digest: GroupRecordHash) { self.named[group] = digest }

    /// The next record to check.
    var nextRecord: GroupRecordInput? { self.records.first }

    /// The charges for the records that wait to be checked.
    var holds: [HoldID?] { self.records.map(\.hold) }
    mutating func queue(_ input: GroupRecordInput) { self.records.append(input) }
    mutating func takeRecord() -> GroupRecordInput? { self.records.popFirst() }
    mutating func setChecking(_ isChecking: Bool) { self.isChecking = isChecking }

    /// Whether too many records wait to be checked.
    var isFull: Bool { self.records.count >= EarshotLimits.groupRecordsWaiting }

    /// Whether earlier records still have to be checked and merged.
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
        // This side was out of the group, and the peer speaks to its new seat. Earlier refusals do not apply to these messages.
        if self.heard[group] == nil, self.former.remove(group) != nil { self.orders[group] = nil }
        self.heard[group] = digest
        self.asked.remove(group)
    }

    /// Marks this side's seat as shown. Returns whether it was not shown before.
    mutating func show(_ group: GroupID) -> Bool { self.shown.insert(group).inserted }
    /// Marks the end of the peer's membership as shown. Returns whether it was not shown before.
    mutating func showEnd(_ group: GroupID) -> Bool { self.shownEnds.insert(group).inserted }

    /// The result of an attempt to ask the peer for missing records.
    enum Question: Sendable {
        case asks
        /// The rate limit is reached: the peer is asked after a pause (`takeUnasked()`).
        case asksLater
        /// The peer was asked already, or will be.
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

    /// Whether to tell the peer that this machine has left a seat in a group that it does not hold. Each seat is reported once per
    /// connection, and older seats are not reported after a newer one. The peer may hold several seats, and shows the seats first on which
    /// others rest. The peer shows the seat before it names the group, so that the name is not required.
    mutating func mayLeave(_ group: GroupID, _ number: UInt32) -> Bool {
        guard number > self.left[group] ?? 0, self.leaves < EarshotLimits.groupRecords else { return false }
        self.left[group] = number
        self.leaves += 1
        return true
    }

    /// Whether this side answers another index of the peer. Counts the answer.
    mutating func mayAnswer(_ group: GroupID, at now: MonotonicInstant) -> Bool {
        guard self.answers.allows(group, at: now) else { return false }
        self.answers.note(group, at: now)
        return true
    }

    /// Returns the pause before the peer's next record is checked; `nil` if the record is checked now.
    mutating func pauseBeforeCheck(at now: MonotonicInstant) -> Duration? {
        guard self.mayCheckMore(at: now) else { return EarshotLimits.groupInvalidSignatureInterval }
        guard self.rate.allows(0, at: now) else { return .seconds(1) / EarshotLimits.groupRecordsPerSecond }
        self.rate.note(0, at: now)
        return nil
    }

    /// Whether few enough of the peer's recent signatures were invalid for another check.
    func mayCheckMore(at now: MonotonicInstant) -> Bool { self.invalid.allows(0, at: now) }

    mutating func signatureFailed(at now: MonotonicInstant) { self.invalid.note(0, at: now) }
}

/// A received record, with the amount that its peer is charged for it until it is merged or dropped.
struct GroupRecordInput: Sendable {
    let group: GroupID
    let record: GroupRecord
    let hold: HoldID?
}
