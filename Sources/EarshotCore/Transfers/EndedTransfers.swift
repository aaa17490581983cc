import DequeModule
package import EarshotWire

/// How one peer's transfers ended whose rows are gone: the latest ones, of which the oldest give way. A value.
package struct EndedTransfers {
    private var entries: [ResourceID: EndedTransfer] = [:]
    private var order: Deque<ResourceID> = []

    package init() {}

    package subscript(id: ResourceID) -> EndedTransfer? { self.entries[id] }

    package var count: Int { self.entries.count }

    /// The one that gives way next.
    package var oldest: ResourceID? { self.order.first }

    package mutating func remember(_ ended: EndedTransfer) {
        if self.entries.updateValue(ended, forKey: ended.id) == nil { self.order.append(ended.id) }
        guard self.entries.count > EarshotLimits.rememberedTransfers, let oldest = self.order.popFirst() else { return }
        self.entries[oldest] = nil
    }
}
