import NIOCore
import Testing

@testable import Earshot

@Suite struct DataInboxTests {
    private let inbox = DataInbox(limit: 100)

    private func put(_ count: Int) -> Bool { self.inbox.put(ByteBuffer(repeating: 0, count: count)) }

    /// Takes one piece, and returns whether that made room.
    private func take() async throws -> Bool {
        var hasRoom = false
        _ = try await self.inbox.next { hasRoom = true }
        return hasRoom
    }

    /// Bytes that arrive while the reader catches up must not lose the note that a writer waits for room.
    @Test func whoeverWasToldToStopHearsOfRoom() async throws {
        #expect(self.put(32))
        #expect(self.put(64))
        #expect(!self.put(4))
        #expect(try await !self.take())
        #expect(!self.put(4))
        #expect(try await self.take())
        #expect(self.put(4))
    }

    @Test func roomIsReportedOnceAtTheEdges() async throws {
        #expect(self.put(64))
        #expect(self.put(35))
        #expect(!self.put(1))
        #expect(try await self.take())
        // Reported once.
        #expect(try await !self.take())
    }

    /// Small pieces are combined and large ones split. No byte is lost or reordered.
    @Test func whatComesIsWhatWent() async throws {
        let inbox = DataInbox(limit: .max)
        var sent = ByteBuffer()
        for count in [1, 7, 4096, 3, EarshotLimits.dataBlock - 1, 2, 3 * EarshotLimits.dataBlock, 1, 100, 100_000] {
            let piece = ByteBuffer(bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ count) })
            _ = inbox.put(piece)
            sent.writeImmutableBuffer(piece)
            guard count == 3 else { continue }
            let first = try #require(try await inbox.next {})
            #expect(sent.readSlice(length: first.readableBytes) == first)
            inbox.giveBack(first)
        }
        inbox.end(.success(()))
        while let piece = try await inbox.next(hasRoom: {}) {
            #expect(sent.readSlice(length: piece.readableBytes) == piece)
            inbox.giveBack(piece)
        }
        #expect(sent.readableBytes == 0)
    }

    /// A returned block that a reader still holds is not overwritten.
    @Test func whatIsHeldStays() async throws {
        let inbox = DataInbox(limit: .max)
        let full = ByteBuffer(repeating: 1, count: EarshotLimits.dataBlock)
        _ = inbox.put(full)
        let held = try #require(try await inbox.next {})
        inbox.giveBack(held)
        _ = inbox.put(ByteBuffer(repeating: 2, count: EarshotLimits.dataBlock))
        #expect(held == full)
        #expect(try await inbox.next {} == ByteBuffer(repeating: 2, count: EarshotLimits.dataBlock))
    }

    @Test func theEndComesBehindTheBytes() async throws {
        _ = self.put(3)
        self.inbox.end(.success(()))
        self.inbox.end(.failure(DataConnection.lost))
        #expect(try await self.inbox.next {}?.readableBytes == 3)
        #expect(try await self.inbox.next {} == nil)
        let lost = DataInbox(limit: 1)
        lost.end(.failure(DataConnection.lost))
        await #expect { try await lost.next {} } throws: { ($0 as? EarshotError)?.code == DataConnection.lost.code }
    }
}
