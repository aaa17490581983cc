import EarshotCoding
import Testing

/// A reader of a transfer, over a source whose every answer a test has written.
@Suite struct TransferReadingsTests {
    private struct Failure: Error, Equatable {}

    /// A row is a number of bytes; at 10 it is over.
    private struct Source: TransferSource {
        /// The rows that `begin` returns, one per call. After the last one, `begin` fails.
        var rows: [Int]
        /// The news that follows, in order.
        var told: [TransferNews<Int>?]

        mutating func begin() async throws -> Int {
            guard !self.rows.isEmpty else { throw Failure() }
            return self.rows.removeFirst()
        }

        mutating func news() async throws -> TransferNews<Int>? { self.told.isEmpty ? nil : self.told.removeFirst() }
        func isOver(_ row: Int) -> Bool { row == 10 }
    }

    private func read(_ source: Source) async throws -> [Int] {
        var readings = TransferReadings(source)
        var rows: [Int] = []
        while let row = try await readings.next() { rows.append(row) }
        // After its end, the sequence stays at its end.
        #expect(try await readings.next() == nil)
        return rows
    }

    @Test func thePresentStateThenEachChangeToTheLast() async throws {
        #expect(try await self.read(Source(rows: [3], told: [.row(5), .row(10), .row(11)])) == [3, 5, 10])
    }

    @Test func oneThatIsOverIsAllThatComes() async throws {
        #expect(try await self.read(Source(rows: [10], told: [.row(10)])) == [10])
    }

    /// A missed change may have been the last one.
    @Test func afterAGapTheRowIsReadAgain() async throws {
        #expect(try await self.read(Source(rows: [3, 7, 10], told: [.missed, .row(8), .missed])) == [3, 7, 8, 10])
        var gone = TransferReadings(Source(rows: [3], told: [.missed]))
        #expect(try await gone.next() == 3)
        await #expect(throws: Failure.self) { try await gone.next() }
    }

    @Test func itEndsWithItsSource() async throws {
        #expect(try await self.read(Source(rows: [3], told: [.row(4), nil, .row(5)])) == [3, 4])
    }

    @Test func itEndsWithItsTask() async throws {
        let reader = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await self.read(Source(rows: [3], told: []))
        }
        #expect(try await reader.value == [])
    }
}
