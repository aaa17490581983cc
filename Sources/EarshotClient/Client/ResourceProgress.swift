import EarshotCoding

/// How a transfer goes on: see ``ControlClient/progress(of:)``. Read by one reader: each iterator begins with the present state.
public struct ResourceProgress: AsyncSequence, Sendable {
    let client: ControlClient
    let id: String

    /// A reader.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(readings: TransferReadings(DaemonTransfer(client: self.client, id: self.id)))
    }

    /// One reader, and how far it is.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var readings: TransferReadings<DaemonTransfer>

        /// The present state first, and then waits for each change; `nil` after the final state, or where the task is cancelled.
        /// - Throws: ``ControlError``: a problem with the code `not-found` where there is no such transfer, or it was deleted.
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
    /// A transfer of either direction: its row as it is now, and then each time that it changes, until it is over.
    ///
    /// ```swift
    /// for try await resource in client.progress(of: id) {
    ///     print("\(resource.transferred) of \(resource.size) bytes", resource.secondsLeft.map { "\($0) s left" } ?? "")
    /// }
    /// ```
    ///
    /// ``ControlAPI/Resource/transferred`` and ``ControlAPI/Resource/size`` are bytes, ``ControlAPI/Resource/bytesPerSecond`` is the pace of the
    /// last few seconds, and ``ControlAPI/Resource/secondsLeft`` whole seconds, where that can be told. What moves is told of at most four
    /// times a second; a reader that is slower may miss states in between, never the last one. That is `completed`, `cancelled` or `failed`
    /// (``ControlAPI/Resource/State/isFinal``), and the sequence ends after it; of one that is over already it is all that comes. A change of
    /// the moment in which the reading begins may come once more.
    ///
    /// `id` is that of one transfer; what was sent to a group has one for each member. The sequence ends with the task too, and the transfer
    /// goes on: ``removeResource(_:)`` cancels it. It throws a ``ControlError``: a problem with the code `not-found` where there is no such
    /// transfer, or it was deleted before its end could be read; what ``events(since:epoch:)`` throws where the daemon goes away.
    public func progress(of id: String) -> ResourceProgress { ResourceProgress(client: self, id: id) }
}

/// One of the daemon's transfers.
private struct DaemonTransfer: TransferSource {
    let client: ControlClient
    let id: String
    private var events: ControlEvents.AsyncIterator?

    init(client: ControlClient, id: String) {
        self.client = client
        self.id = id
    }

    /// What came in before something was missed is older than the row: another stream of events is read from here on.
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
    /// Whether nothing will move any more.
    public var isFinal: Bool {
        switch self {
        case .offered, .transferring, .paused: false
        case .completed, .cancelled, .failed: true
        }
    }
}
