/// Where a transfer's row lies, and how a reader hears of its changes: this machine's daemon, or a node of the program's own.
package protocol TransferSource {
    associatedtype Row: Sendable

    /// Begins to listen, and reads the row as it is now.
    mutating func begin() async throws -> Row
    /// Waits for what comes next; `nil` where the task is cancelled, or the source has ended.
    mutating func news() async throws -> TransferNews<Row>?
    /// Whether nothing will move any more.
    func isOver(_ row: Row) -> Bool
}

/// What a reader of a transfer hears.
package enum TransferNews<Row: Sendable>: Sendable {
    case row(Row)
    /// Something may have been missed: the row is to be read again.
    case missed
}

/// A transfer's row as it is, and each time that it changes, until it is over.
package struct TransferReadings<Source: TransferSource> {
    private var source: Source
    private var isLookDue = true
    private var isOver = false

    package init(_ source: Source) { self.source = source }

    /// The next state; `nil` after the last one, where the task is cancelled, or the source has ended.
    package mutating func next() async throws -> Source.Row? {
        guard !self.isOver, let row = Task.isCancelled ? nil : try await self.read() else {
            self.isOver = true
            return nil
        }
        self.isOver = self.source.isOver(row)
        return row
    }

    private mutating func read() async throws -> Source.Row? {
        while true {
            if self.isLookDue {
                let row = try await self.source.begin()
                self.isLookDue = false
                return row
            }
            switch try await self.source.news() {
            case .row(let row)?: return row
            case .missed?: self.isLookDue = true
            case nil: return nil
            }
        }
    }
}
