import NIOCore
import Testing

@testable import Earshot

@Suite struct DataInboxTests {
    private let inbox = DataInbox(limit: 100)

    private func put(_ count: Int) -> Bool { self.inbox.put(ByteBuffer(repeating: 0, count: count)) }

    /// Takes one piece; whether that made room.
    private func take() async throws -> Bool {
        var hasRoom = false
        _ = try await self.inbox.next { hasRoom = true }
        return hasRoom
    }

    /// What comes while the reader is catching up must not make it forget that somebody waits for room.
    @Test func whoeverWasToldToStopHearsOfRoom() async throws {
        #expect(self.put(40))
        #expect(self.put(30))
        #expect(!self.put(30))
        #expect(try await !self.take())
        #expect(!self.put(5))
        #expect(try await self.take())
        #expect(self.put(5))
    }

    @Test func theEdges() async throws {
        #expect(self.put(99))
        #expect(!self.put(1))
        #expect(try await self.take())
        // Told once.
        #expect(try await !self.take())
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
