/// The source of a transfer's row and its changes: this machine's daemon, or a node in the program.
package protocol TransferSource {
    associatedtype Row: Sendable

    /// Starts listening, and reads the present row.
    mutating func begin() async throws -> Row
    /// Waits for the next news; `nil` if the task is cancelled, or the source has ended.
    mutating func news() async throws -> TransferNews<Row>?
    /// Whether the transfer is over.
    func isOver(_ row: Row) -> Bool
}

/// A change of a transfer, as its reader hears it.
package enum TransferNews<Row: Sendable>: Sendable {
    case row(Row)
    /// News may have been lost: the row must be read again.
    case missed
}

/// The present row of a transfer, and each changed row until the transfer is over.
package struct TransferReadings<Source: TransferSource> {
    private var source: Source
    private var isLookDue = true
    private var isOver = false

    package init(_ source: Source) { self.source = source }

    /// Returns the next row; `nil` after the last one, if the task is cancelled, or if the source has ended.
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
