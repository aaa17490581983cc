import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

@Suite(.timeLimit(.minutes(1))) struct NodeResourceLimitTests {
    private func refusal(_ raw: RawPeer) async throws -> ResourceRefuse {
        try await raw.next { if case .resource(.refuse(let refuse)) = $0 { refuse } else { nil } }
    }

    private func accepted(_ raw: RawPeer) async throws -> ResourceAccept {
        try await raw.next { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
    }

    private func chunk(_ id: ResourceID, _ offset: UInt64, _ data: ByteBuffer) -> Frame {
        .resource(.chunk(ResourceChunk(id: id, offset: offset, data: data)))
    }

    /// Offers a file of 10 bytes, which is accepted, and sends 3 of them.
    private func begun(_ raw: RawPeer, _ session: SessionID) async throws -> ResourceID {
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 10, in: session, id: id))
        _ = try await self.accepted(raw)
        try await raw.send(self.chunk(id, 0, ByteBuffer(string: "abc")))
        return id
    }

    private func finished(_ node: TestNode) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0 { row } else { nil } }
    }

    private func expectEmptySpool(_ node: TestNode) async throws {
        try await eventually("the spool is empty") { try await node.node.spool.heldBytes() == 0 && node.spoolNames() == [] }
    }

    private func end(_ raw: RawPeer, _ bob: TestNode) async {
        await raw.close()
        await bob.stop()
    }

    @Test func hostileNamesAreRefused() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let names = [
            "../../.ssh/authorized_keys", "/etc/x", "..", ".", "a/b", "a\0b", "a\nb", String(repeating: "x", count: 256), " ", "\u{200B}",
        ]
        for name in names {
            let id = ResourceID.random()
            try await raw.send(raw.offer(name, size: 1, in: session, id: id))
            let refusal = try await self.refusal(raw)
            #expect(refusal.id == id)
            #expect(refusal.refusal.code == .nameRejected, "\(name.debugDescription)")
        }
        #expect(await bob.node.resources().isEmpty)
        #expect(try bob.spoolNames() == [])
        try await raw.send(raw.offer(String(repeating: "x", count: 255), size: 1, in: session))
        #expect(try await self.accepted(raw).limit == 1)
        await self.end(raw, bob)
    }

    @Test func maximumResourceSize() async throws {
        let (raw, bob, session) = try await RawPeer.joined { $0.maximumResourceSize = 1000 }
        try await raw.send(raw.offer("x", size: 1001, in: session))
        #expect(try await self.refusal(raw).refusal.code == .tooLarge)
        try await raw.send(raw.offer("x", size: 1000, in: session))
        #expect(try await self.accepted(raw).limit == 1000)
        await self.end(raw, bob)
    }

    @Test func quotaAndTheLargestSizes() async throws {
        let (raw, bob, session) = try await RawPeer.joined {
            $0.quota = 4 * fileRoom(4096)
            $0.reserve = 0
        }
        for size in [4097, WireLimits.resourceSize] {
            try await raw.send(raw.offer("x", size: size, in: session))
            #expect(try await self.refusal(raw).refusal.code == .noSpace)
        }
        try await self.expectEmptySpool(bob)
        #expect(await bob.node.resources().allSatisfy { $0.state == .failed && $0.error == .noSpace })
        try await raw.send(raw.offer("x", size: 4096, in: session))
        #expect(try await self.accepted(raw).limit == 4096)
        await self.end(raw, bob)
    }

    @Test func moreThanWasDeclared() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 10, in: session, id: id))
        _ = try await self.accepted(raw)
        try await raw.send(self.chunk(id, 0, ByteBuffer(repeating: 1, count: 11)))
        #expect(await raw.refusal() == .protocolViolation)
        #expect(try await self.finished(bob).state == .failed)
        try await self.expectEmptySpool(bob)
        await bob.stop()
    }

    @Test func aDigestThatDoesNotMatch() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 3, in: session, id: id))
        _ = try await self.accepted(raw)
        try await raw.send(
            self.chunk(id, 0, ByteBuffer(string: "abc")),
            .resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: [UInt8](repeating: 0, count: 16)))))
        #expect(try await self.refusal(raw).refusal.code == .digestMismatch)
        let row = try await self.finished(bob)
        #expect(row.state == .failed)
        #expect(row.error == .digestMismatch)
        try await self.expectEmptySpool(bob)
        await self.end(raw, bob)
    }

    @Test func incomingTransfersAboveTheLimitAreRefused() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        for _ in 0..<EarshotLimits.incomingTransfers {
            try await raw.send(raw.offer("x", size: 10, in: session))
            _ = try await self.accepted(raw)
        }
        try await raw.send(raw.offer("x", size: 10, in: session))
        #expect(try await self.refusal(raw).refusal.code == .busy)
        #expect(await bob.node.resources().count == EarshotLimits.incomingTransfers)
        await self.end(raw, bob)
    }

    @Test func transfersOfOnePeerShareAWindow() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let size = EarshotLimits.dataThreshold - 1
        try await raw.send(raw.offer("x", size: size, in: session))
        #expect(try await self.accepted(raw).limit == min(size, EarshotLimits.resourceWindow))
        try await raw.send(raw.offer("y", size: size, in: session))
        #expect(try await self.accepted(raw).limit == EarshotLimits.sharedResourceWindow)
        // From this size on, over a data connection.
        try await raw.send(raw.offer("z", size: size + 1, in: session))
        #expect(try await self.accepted(raw).limit == 0)
        await self.end(raw, bob)
    }

    @Test func cancellingByTheSender() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = try await self.begun(raw, session)
        try await raw.send(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled)))))
        #expect(try await self.finished(bob).state == .cancelled)
        try await self.expectEmptySpool(bob)
        await self.end(raw, bob)
    }

    @Test func cancellingByTheReceiver() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = try await self.begun(raw, session)
        try await raw.roundTrip()
        #expect(try await bob.node.removeResource(id)?.state == .cancelled)
        let told = try await raw.next { frame -> WireErrorCode? in
            switch frame {
            case .resource(.cancel(let cancel)), .resource(.refuse(let cancel)): cancel.id == id ? cancel.refusal.code : nil
            default: nil
            }
        }
        #expect(told == .cancelled)
        try await self.expectEmptySpool(bob)
        // Bytes in flight are dropped, and the connection remains.
        try await raw.send(self.chunk(id, 3, ByteBuffer(string: "def")))
        try await raw.roundTrip()
        await self.end(raw, bob)
    }

    @Test func aFloodOfTinyChunksArrives() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let id = ResourceID.random()
        let size: UInt64 = 5_000
        let hash = try XXH3()
        try await raw.send(raw.offer("x", size: size, in: session, id: id))
        _ = try await self.accepted(raw)
        var buffer = ByteBuffer()
        for offset in 0..<size {
            let byte = ByteBuffer(bytes: [UInt8(truncatingIfNeeded: offset)])
            hash.update(byte)
            try FrameEncoder.encode(self.chunk(id, offset, byte), into: &buffer)
        }
        try await raw.channel.writeAndFlush(buffer)
        try await raw.send(.resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: hash.digest()))))
        #expect(try await raw.next { if case .resource(.done(let done)) = $0 { done } else { nil } } == id)
        #expect(try await bob.node.resource(id).state == .completed)
        await self.end(raw, bob)
    }

    /// The name is long and not ASCII, so the reason has to be truncated for the wire.
    @Test func aSourceThatShrinks() async throws {
        let (alice, bob) = try await pair()
        let path = alice.directory + "/" + String(repeating: "長", count: 80)
        try Data(count: 3_000_000).write(to: URL(fileURLWithPath: path))
        let file = try SourceFile(path: path)
        let source = try SourceContent(file)
        #expect(file.size == 3_000_000)
        #expect(truncate(path, 10) == 0)
        await #expect(throws: EarshotError.self) { _ = try await source.read(at: 0, count: 100) }
        let refusal = Refusal(EarshotError(.tooLarge, String(repeating: "長", count: 200)))
        #expect(refusal.explanation.utf8.count == 510)
        // The window limits the transfer at first. The file shrinks during the transfer.
        try Data(count: 20_000_000).write(to: URL(fileURLWithPath: path))
        _ = try await alice.node.sendResource(to: ["bob"], path: path)
        #expect(truncate(path, 10) == 0)
        let sent = try await self.finished(alice)
        #expect(sent.state == .failed)
        #expect(sent.error == .sourceChanged)
        let received = try await self.finished(bob)
        #expect(received.state == .failed)
        #expect(received.error == .sourceChanged)
        try await self.expectEmptySpool(bob)
        await alice.stop()
        await bob.stop()
    }
}
