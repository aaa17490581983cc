import EarshotCoding
public import EarshotCore
public import EarshotWire

/// The progress of a transfer: see ``Node/progress(of:)``. Each iterator has one reader, and begins with the current state.
public struct ResourceProgress: AsyncSequence, Sendable {
    let node: Node
    let id: ResourceID

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(readings: TransferReadings(NodeTransfer(node: self.node, id: self.id)))
    }

    /// The position of one reader.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var readings: TransferReadings<NodeTransfer>

        /// Returns the current state first, and then waits for each change. Returns `nil` after the final state, if the task is cancelled,
        /// or if the node has ended.
        /// - Throws: `EarshotError`: `not-found` if there is no such transfer, or if it was deleted.
        public mutating func next() async throws -> Resource? { try await self.readings.next() }
    }
}

extension Node {
    /// Returns the progress of a transfer of either direction: its current row, and then the row after each change, until the transfer is
    /// over.
    ///
    /// ```swift
    /// for try await resource in node.progress(of: sent.id) {
    ///     print("\(resource.transferred) of \(resource.size) bytes", resource.secondsLeft.map { "\($0) s left" } ?? "")
    /// }
    /// ```
    ///
    /// `Resource.transferred` and `Resource.size` are in bytes. `Resource.bytesPerSecond` is the speed of the last few seconds, and
    /// `Resource.secondsLeft` is in whole seconds, if it can be estimated. Progress is reported at most four times a second. A slow reader
    /// misses intermediate states, but never the final one. The final state is `completed`, `cancelled` or `failed`
    /// (`Resource.State.isFinal`), and the sequence ends after it. For a finished transfer, the sequence has only the final state.
    ///
    /// The sequence also ends with the task, or with the node. The transfer then continues; ``removeResource(_:)`` cancels it. The
    /// sequence throws an `EarshotError` with `not-found` if there is no such transfer, or if it was deleted before its end could be read.
    public nonisolated func progress(of id: ResourceID) -> ResourceProgress { ResourceProgress(node: self, id: id) }

    /// Returns a subscription and the current row. No event falls between the two, and the subscription has no earlier event.
    fileprivate func reading(_ id: ResourceID) throws(EarshotError) -> (events: EventLog.Subscription, row: Resource) {
        (self.events.subscribe(), try self.resource(id))
    }
}

/// A transfer of a node.
private struct NodeTransfer: TransferSource {
    let node: Node
    let id: ResourceID
    private var events: EventLog.Subscription?

    init(node: Node, id: ResourceID) {
        self.node = node
        self.id = id
    }

    mutating func begin() async throws -> Resource {
        let (events, row) = try await self.node.reading(self.id)
        self.events = events
        return row
    }

    mutating func news() async throws -> TransferNews<Resource>? {
        while let event = await self.events?.next() {
            switch event.kind {
            case .resourceOffered(let row) where row.id == self.id: return .row(row)
            case .resourceProgress(let row) where row.id == self.id: return .row(row)
            case .resourceFinished(let row) where row.id == self.id: return .row(row)
            case .gap: return .missed
            default: break
            }
        }
        return nil
    }

    func isOver(_ row: Resource) -> Bool { row.state.isFinal }
}
