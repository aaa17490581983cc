import EarshotWire
import OrderedCollections

/// A group that this machine is in or is joining, or a dissolved group that it keeps to tell other members so.
struct HeldGroup: Sendable {
    enum Stage: Sendable {
        /// A user here accepted the invitation, and its inviter has not let this machine in yet.
        case joining(InvitationID)
        case joined
        /// The creator dissolved the group.
        case over
    }

    var records: GroupRecords
    private(set) var stage: Stage
    /// The seat that this machine has taken, while it is joining.
    private(set) var ownSeat: GroupSeat?
    /// The calls that accepted the invitation and wait for this machine to be let in.
    private(set) var joiners: [CallID] = []
    /// The records on disk.
    fileprivate(set) var kept: OrderedDictionary<GroupRecordHash, GroupRecord> = [:]
    /// Whether the group is on disk at all.
    fileprivate(set) var isKept = false
    /// The group as it was last published.
    private(set) var published: Group?

    var id: GroupID { self.records.id }
    var isJoined: Bool { if case .joined = self.stage { true } else { false } }
    var isOver: Bool { if case .over = self.stage { true } else { false } }

    /// The invitation by which this machine is joining the group.
    var invitation: InvitationID? { if case .joining(let id) = self.stage { id } else { nil } }

    /// Whether this machine, while joining, was let in by the seat that it has taken or by a later one. An older seat does not count,
    /// because this machine may have left it.
    var isLetIn: Bool {
        guard let own = self.ownSeat, let seat = self.records.seat(of: own.peer) else { return false }
        return seat.number >= own.number
    }

    /// Takes a seat, for a user's call or for a group in which the user was asked earlier.
    mutating func take(_ seat: GroupSeat, for call: CallID?) {
        self.ownSeat = seat
        if let call { self.joiners.append(call) }
    }

    /// Applies the terms in the records: the group is active, or dissolved.
    mutating func applyTerms() { self.stage = self.records.terms.isDissolved ? .over : .joined }

    /// Lets this machine in.
    mutating func join() {
        self.stage = .joined
        self.joiners = []
        self.ownSeat = nil
    }

    mutating func end() { self.stage = .over }
    mutating func publish(_ group: Group) { self.published = group }

    /// Returns the group in the form in which it is stored.
    func stored(_ records: [GroupRecord]) -> StoredGroup {
        StoredGroup(charter: self.records.charter, records: records, isOver: self.isOver)
    }

    /// Returns the operations that bring the disk up to date with memory, and the records on disk after them.
    func changes() -> (operations: [StoreOperation], kept: OrderedDictionary<GroupRecordHash, GroupRecord>) {
        let all = self.records.all
        let wanted = OrderedDictionary(all.map { ($0.hash(in: self.id), $0) }) { first, _ in first }
        let new = all.filter { self.kept[$0.hash(in: self.id)] == nil }
        var operations: [StoreOperation] = []
        if !self.isKept {
            // Rows of an earlier membership that could not be removed do not belong to this one.
            operations += [.removeGroup(self.id), .putGroup(self.stored(new))]
        } else if self.isOver {
            operations.append(.putGroup(self.stored(new)))
        } else {
            operations += new.map { .putGroupRecord($0, of: self.id) }
        }
        operations += self.kept.keys.filter { wanted[$0] == nil }.map { .removeGroupRecord($0, of: self.id) }
        return (operations, wanted)
    }
}

/// The groups of this machine, in the order in which they were made or joined.
struct GroupTable: Sendable {
    private var groups: OrderedDictionary<GroupID, HeldGroup> = [:]
    /// The groups that memory no longer holds and the disk still does.
    private(set) var gone: OrderedSet<GroupID> = []
    /// The pending signatures and checks.
    var signatures = GroupSignatures()
    /// The groups for which a change of their members' states is about to be published.
    private var news: OrderedSet<GroupID> = []

    var isEmpty: Bool { self.groups.isEmpty }
    var all: [HeldGroup] { Array(self.groups.values) }
    /// The number of groups that count for the limit.
    var count: Int { self.groups.values.count { !$0.isOver } }

    subscript(id: GroupID) -> HeldGroup? { self.groups[id] }

    func holds(_ id: GroupID) -> Bool { self.groups.index(forKey: id) != nil }

    mutating func add(_ group: HeldGroup) { self.groups[group.id] = group }

    /// Changes a group in place. Returns `nil` if the group is not held.
    @discardableResult
    mutating func update<Result>(_ id: GroupID, _ change: (inout HeldGroup) -> Result) -> Result? {
        guard let index = self.groups.index(forKey: id) else { return nil }
        return change(&self.groups.values[index])
    }

    /// Removes a group from memory. The disk follows once the removal is written.
    @discardableResult
    mutating func remove(_ id: GroupID) -> HeldGroup? {
        guard let group = self.groups.removeValue(forKey: id) else { return nil }
        if group.isKept { self.gone.append(id) }
        return group
    }

    /// Notes a change to be published. Returns whether it is the first one.
    mutating func addNews(of id: GroupID) -> Bool {
        defer { self.news.append(id) }
        return self.news.isEmpty
    }

    mutating func forgetNews(of id: GroupID) { self.news.remove(id) }

    mutating func takeNews() -> OrderedSet<GroupID> {
        defer { self.news = [] }
        return self.news
    }

    mutating func load(_ group: HeldGroup) {
        var group = group
        group.isKept = true
        group.kept = OrderedDictionary(group.records.all.map { ($0.hash(in: group.id), $0) }) { first, _ in first }
        self.groups[group.id] = group
    }

    /// Notes that the records of a group were written, if the group is still being joined by that invitation, or is joined. Otherwise the
    /// group stays in ``gone``: a group that is being joined again has nothing on disk.
    mutating func wasKept(
        _ id: GroupID, _ kept: OrderedDictionary<GroupRecordHash, GroupRecord>, joinedBy invitation: InvitationID? = nil
    ) {
        guard let held = self.groups[id], held.invitation == invitation else { return }
        self.update(id) {
            $0.isKept = true
            $0.kept = kept
        }
        self.gone.remove(id)
    }

    /// Notes that a group is on disk and not held.
    mutating func isGone(_ id: GroupID) { self.gone.append(id) }

    mutating func wasRemoved(_ id: GroupID) { self.gone.remove(id) }

    /// The oldest of the dissolved groups, if there are too many of them.
    var surplus: GroupID? {
        let over = self.groups.values.filter(\.isOver)
        return over.count > EarshotLimits.groups ? over.first?.id : nil
    }
}
