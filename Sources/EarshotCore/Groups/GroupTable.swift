import EarshotWire
import OrderedCollections

/// A group that this machine is in, or is joining, or that it keeps for others to hear that it is over.
struct HeldGroup: Sendable {
    enum Stage: Sendable {
        /// By an invitation that was accepted here; its inviter has not let this machine in yet.
        case joining(InvitationID)
        case joined
        /// Dissolved.
        case over
    }

    var records: GroupRecords
    var stage: Stage
    /// The seat that this machine has taken while it is joining.
    var ownSeat: GroupSeat?
    /// Calls that have accepted the invitation, and wait to be let in.
    var joiners: [CallID] = []
    /// What is on disk of it.
    fileprivate(set) var kept: OrderedDictionary<GroupRecordHash, GroupRecord> = [:]
    /// Whether it is on disk at all.
    fileprivate(set) var isKept = false
    /// As it was last published.
    var published: Group?

    var id: GroupID { self.records.id }
    var isJoined: Bool { if case .joined = self.stage { true } else { false } }
    var isOver: Bool { if case .over = self.stage { true } else { false } }

    /// The invitation that it is being joined by.
    var invitation: InvitationID? { if case .joining(let id) = self.stage { id } else { nil } }

    /// While it is being joined, whether this machine was let in: by the seat that it has taken, or a later one. An older one it may have left.
    var isLetIn: Bool {
        guard let own = self.ownSeat, let seat = self.records.seat(of: own.peer) else { return false }
        return seat.number >= own.number
    }

    /// As it is to be on disk.
    func stored(_ records: [GroupRecord]) -> StoredGroup {
        StoredGroup(charter: self.records.charter, records: records, isOver: self.isOver)
    }

    /// What brings the disk to what memory has, and what will be there then.
    func changes() -> (operations: [StoreOperation], kept: OrderedDictionary<GroupRecordHash, GroupRecord>) {
        let all = self.records.all
        let wanted = OrderedDictionary(all.map { ($0.hash(in: self.id), $0) }) { first, _ in first }
        let new = all.filter { self.kept[$0.hash(in: self.id)] == nil }
        var operations: [StoreOperation] = []
        if !self.isKept {
            // What is left there of an earlier time in it, which could not be removed, is none of this one's.
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

/// The groups of this machine, in the order in which they were made, or joined.
struct GroupTable: Sendable {
    private var groups: OrderedDictionary<GroupID, HeldGroup> = [:]
    /// Groups that are gone here, and not from the disk yet.
    private(set) var gone: OrderedSet<GroupID> = []
    /// What is being signed, and checked.
    var signatures = GroupSignatures()
    /// Groups of which a change of its members' states is about to be published.
    var news: OrderedSet<GroupID> = []

    var isEmpty: Bool { self.groups.isEmpty }
    var all: [HeldGroup] { Array(self.groups.values) }
    /// Those that count for the limit on groups.
    var count: Int { self.groups.values.count { !$0.isOver } }

    subscript(id: GroupID) -> HeldGroup? { self.groups[id] }

    func holds(_ id: GroupID) -> Bool { self.groups.index(forKey: id) != nil }

    mutating func add(_ group: HeldGroup) { self.groups[group.id] = group }

    /// Changes one where it stands; `nil` where it is not there.
    @discardableResult
    mutating func update<Result>(_ id: GroupID, _ change: (inout HeldGroup) -> Result) -> Result? {
        guard let index = self.groups.index(forKey: id) else { return nil }
        return change(&self.groups.values[index])
    }

    /// It is gone from memory; from the disk once that is written.
    @discardableResult
    mutating func remove(_ id: GroupID) -> HeldGroup? {
        guard let group = self.groups.removeValue(forKey: id) else { return nil }
        if group.isKept { self.gone.append(id) }
        return group
    }

    mutating func load(_ group: HeldGroup) {
        var group = group
        group.isKept = true
        group.kept = OrderedDictionary(group.records.all.map { ($0.hash(in: group.id), $0) }) { first, _ in first }
        self.groups[group.id] = group
    }

    /// What was to be written is, of a group that was being joined by an invitation, or was joined already. Where that has gone meanwhile, it
    /// is still to be removed: one that is being joined anew has nothing on disk.
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

    /// It is on disk, and not held.
    mutating func isGone(_ id: GroupID) { self.gone.append(id) }

    mutating func wasRemoved(_ id: GroupID) { self.gone.remove(id) }

    /// The oldest of those that are kept only for others, where there are too many.
    var surplus: GroupID? {
        let over = self.groups.values.filter(\.isOver)
        return over.count > EarshotLimits.groups ? over.first?.id : nil
    }
}
