import DequeModule
package import EarshotWire

/// The latest ended transfers of one peer whose rows have been removed. The oldest are evicted. A value.
package struct EndedTransfers {
    private var entries: [ResourceID: EndedTransfer] = [:]
    private var order: Deque<ResourceID> = []

    package init() {}

    package subscript(id: ResourceID) -> EndedTransfer? { self.entries[id] }

    package var count: Int { self.entries.count }

    /// The next transfer to be evicted.
    package var oldest: ResourceID? { self.order.first }

    package mutating func remember(_ ended: EndedTransfer) {
        if self.entries.updateValue(ended, forKey: ended.id) == nil { self.order.append(ended.id) }
        guard self.entries.count > EarshotLimits.rememberedTransfers, let oldest = self.order.popFirst() else { return }
        self.entries[oldest] = nil
    }
}
