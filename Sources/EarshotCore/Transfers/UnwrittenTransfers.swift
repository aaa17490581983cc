import EarshotWire
import OrderedCollections

/// The transfers whose rows on disk differ from those in memory: the disk has refused them, or the transfer has ended and its row is being
/// written. A body in the spool is removed only after the row of its end is on disk.
struct UnwrittenTransfers: Sendable {
    /// The transfers whose rows the disk has refused, and which are to be written again.
    private var refused: OrderedSet<ResourceID> = []
    /// The rows of ended transfers with a body in the spool, until they are written.
    private var ends: OrderedDictionary<ResourceID, Resource> = [:]
    /// The rows among these that ended with the present input: one commit serves all.
    private var newEnds: [Resource] = []

    /// Records the end of a transfer whose body is in the spool.
    mutating func ended(_ row: Resource) {
        self.ends[row.id] = row
        self.newEnds.append(row)
    }

    /// Returns the rows that have ended since the last call.
    mutating func takeNewEnds() -> [Resource] {
        defer { self.newEnds = [] }
        return self.newEnds
    }

    /// Records that these transfers were written, apart from the refused ones. Returns those with a body in the spool that is to be removed.
    mutating func written(_ rows: [Resource]) -> [ResourceID] {
        rows.map(\.id).filter { !self.refused.contains($0) && self.ends.removeValue(forKey: $0) != nil }
    }

    /// Records refused rows. Meanwhile peers may offer and cancel without limit, so the number of rows without a body is bounded.
    mutating func refuse(_ ids: [ResourceID]) {
        self.refused.append(contentsOf: ids)
        while self.refused.count > EarshotLimits.rememberedTransfers,
            let oldest = self.refused.firstIndex(where: { self.ends[$0] == nil })
        {
            self.refused.remove(at: oldest)
        }
    }

    /// Returns the refused transfers, which are written again now, and the rows of those with a body in the spool.
    mutating func takeRefused() -> (ids: [ResourceID], ends: [Resource]) {
        defer { self.refused = [] }
        return (self.refused.elements, self.refused.compactMap { self.ends[$0] })
    }
}
