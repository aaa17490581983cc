import EarshotCoding
public import EarshotWire

/// The progress of a transfer: see ``ControlClient/progress(of:)``. Each iterator belongs to one reader and starts with the current state.
public struct ResourceProgress: AsyncSequence, Sendable {
    let client: ControlClient
    let id: ResourceID

    /// Returns a reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(readings: TransferReadings(DaemonTransfer(client: self.client, id: self.id)))
    }

    /// A reader with its position.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var readings: TransferReadings<DaemonTransfer>

        /// Returns the current state first; then waits for each change. Returns `nil` after the final state, or if the task is cancelled.
        /// - Throws: ``ControlError``: a problem with the code `not-found` if the transfer does not exist or was deleted.
        public mutating func next() async throws -> ControlAPI.Resource? {
            do {
                return try await self.readings.next()
            } catch ControlError.cancelled {
                return nil
            }
        }
    }
}

extension ControlClient {
    /// Returns the progress of an incoming or outgoing transfer: its current row, and then the row after each change, until the transfer
    /// has ended.
    ///
    /// ```swift
    /// for try await resource in client.progress(of: id) {
    ///     print("\(resource.transferred) of \(resource.size) bytes", resource.secondsLeft.map { "\($0) s left" } ?? "")
    /// }
    /// ```
    ///
    /// ``ControlAPI/Resource/transferred`` and ``ControlAPI/Resource/size`` are bytes, ``ControlAPI/Resource/bytesPerSecond`` is the rate
    /// over the last few seconds, and ``ControlAPI/Resource/secondsLeft`` is in whole seconds, if it is known. Progress is reported at most
    /// four times a second. A slow reader may miss states in between, but never the last one. The last state is `completed`, `cancelled` or
    /// `failed` (``ControlAPI/Resource/State/isFinal``), and the sequence ends after it. For a transfer that has ended already, only the
    /// last state is returned. A change during the start of the reading may be returned twice.
    ///
    /// `id` is the id of one transfer; a resource sent to a group has one transfer per member. If the task ends, the sequence ends but the
    /// transfer continues: ``removeResource(_:)`` cancels it. The sequence throws a ``ControlError``: a problem with the code `not-found`
    /// if the transfer does not exist or was deleted before its end could be read; the errors of ``events(since:epoch:)`` if the daemon
    /// goes away.
    public func progress(of id: ResourceID) -> ResourceProgress { ResourceProgress(client: self, id: id) }
}

/// A transfer of the daemon.
private struct DaemonTransfer: TransferSource {
    let client: ControlClient
    let id: ResourceID
    private var events: ControlEvents.AsyncIterator?

    init(client: ControlClient, id: ResourceID) {
        self.client = client
        self.id = id
    }

    /// Opens a new stream of events: events before a gap are older than the row that is fetched here.
    mutating func begin() async throws -> ControlAPI.Resource {
        self.events = nil
        let events = try await self.client.events()
        self.events = events.makeAsyncIterator()
        return try await self.client.resource(self.id).value
    }

    mutating func news() async throws -> TransferNews<ControlAPI.Resource>? {
        while let event = try await self.events?.next() {
            if let row = event.value.resource {
                if row.id == self.id { return .row(row) }
            } else if event.value.type == .gap || !event.unreadable.isEmpty {
                return .missed
            }
        }
        return nil
    }

    func isOver(_ row: ControlAPI.Resource) -> Bool { row.state.known?.isFinal ?? false }
}

extension ControlAPI.Resource.State {
    /// Whether the state is final.
    public var isFinal: Bool {
        switch self {
        case .offered, .transferring, .paused: false
        case .completed, .cancelled, .failed: true
        }
    }
}
