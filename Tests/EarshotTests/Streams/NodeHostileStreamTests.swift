import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// A peer with frames from the test that violates the rules of streams.
@Suite(.timeLimit(.minutes(1))) struct NodeHostileStreamTests {
    private func open(_ id: StreamID, in session: SessionID) throws -> Frame {
        .stream(.open(StreamOpen(session: session, id: id, name: try StreamName("x"))))
    }

    private func data(_ id: StreamID, _ count: Int) -> Frame {
        .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 1, count: count))))
    }

    private func end(_ raw: RawPeer, _ bob: TestNode) async {
        await raw.close()
        await bob.stop()
    }

    @Test func dataBeforeAccept() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = StreamID.random()
        try await raw.send(try self.open(id, in: session), self.data(id, 1))
        #expect(await raw.refusal() == .protocolViolation)
        #expect(try await bob.streamClosed().error == .unavailable)
        await self.end(raw, bob)
    }

    @Test func dataBeyondTheWindow() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = StreamID.random()
        try await raw.send(try self.open(id, in: session))
        let content = try await bob.node.acceptNextStream()
        let accept = try await raw.next { if case .stream(.accept(let accept)) = $0 { accept } else { nil } }
        for _ in 0..<accept.limit / 65_536 { try await raw.send(self.data(id, 65_536)) }
        try await raw.send(self.data(id, 1))
        #expect(await raw.refusal() == .protocolViolation)
        await #expect { while try await content.next() != nil {} } throws: { ($0 as? EarshotError)?.code == .unavailable }
        await self.end(raw, bob)
    }

    @Test func anIDOpenedTwiceIsAViolation() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = StreamID.random()
        try await raw.send(try self.open(id, in: session), try self.open(id, in: session))
        #expect(await raw.refusal() == .protocolViolation)
        await self.end(raw, bob)
    }

    /// Single bytes within the window take no more memory than their sum.
    @Test func aStreamOfSingleBytesIsPutTogether() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = StreamID.random()
        try await raw.send(try self.open(id, in: session))
        let content = try await bob.node.acceptNextStream()
        // Data before the other side has accepted the stream is a violation.
        _ = try await raw.next { if case .stream(.accept(let accept)) = $0 { accept } else { nil } }
        let frame = self.data(id, 1)
        for _ in 0..<2000 { try await raw.send(frame) }
        try await raw.roundTrip()
        #expect(try await content.next()?.readableBytes == 2000)
        await self.end(raw, bob)
    }
}
