import EarshotCoding
public import EarshotCore
public import EarshotWire

/// How a transfer goes on: see ``Node/progress(of:)``. Read by one reader: each iterator begins with the present state.
public struct ResourceProgress: AsyncSequence, Sendable {
    let node: Node
    let id: ResourceID

    /// A reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(readings: TransferReadings(NodeTransfer(node: self.node, id: self.id)))
    }

    /// One reader, and how far it is.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var readings: TransferReadings<NodeTransfer>

        /// The present state first, and then waits for each change; `nil` after the final state, where the task is cancelled, or the node has ended.
        /// - Throws: `EarshotError`: `not-found` where there is no such transfer, or it was deleted.
        public mutating func next() async throws -> Resource? { try await self.readings.next() }
    }
}

extension Node {
    /// A transfer of either direction: its row as it is now, and then each time that it changes, until it is over.
    ///
    /// ```swift
    /// for try await resource in node.progress(of: sent.id) {
    ///     print("\(resource.transferred) of \(resource.size) bytes", resource.secondsLeft.map { "\($0) s left" } ?? "")
    /// }
    /// ```
    ///
    /// `Resource.transferred` and `Resource.size` are bytes, `Resource.bytesPerSecond` is the pace of the last few seconds, and
    /// `Resource.secondsLeft` whole seconds, where that can be told. What moves is told of at most four times a second; a reader that is slower
    /// misses states in between, never the last one. That is `completed`, `cancelled` or `failed` (`Resource.State.isFinal`), and the
    /// sequence ends after it; of one that is over already it is all that comes.
    ///
    /// The sequence ends with the task too, or with the node, and the transfer goes on: ``removeResource(_:)`` cancels it. It throws an
    /// `EarshotError` with `not-found` where there is no such transfer, or it was deleted before its end could be read.
    public nonisolated func progress(of id: ResourceID) -> ResourceProgress { ResourceProgress(node: self, id: id) }

    /// What happens from now on, and the row as it is now: nothing falls between the two, and nothing of before comes after it.
    fileprivate func reading(_ id: ResourceID) throws(EarshotError) -> (events: EventLog.Subscription, row: Resource) {
        (self.events.subscribe(), try self.resource(id))
    }
}

/// One of a node's transfers.
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
