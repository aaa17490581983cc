import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Received resources whose rows were deleted before their senders learned of the end. If they are offered again, they are not transferred
/// again.
@Suite(.timeLimit(.minutes(1))) struct NodeEndedTransferTests {
    private let bytes = Array("0123456789".utf8)
    private let id = ResourceID.random()

    /// Returns bob in a session with a peer whose frames the test controls, and that has offered ten bytes.
    private func offered() async throws -> (raw: RawPeer, bob: TestNode, session: SessionID) {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        try await raw.send(self.offer(raw, session))
        #expect(try await raw.resourceAnswer() == .resource(.accept(ResourceAccept(id: self.id, offset: 0, limit: 10))))
        return (raw, bob, session)
    }

    private func offer(_ raw: RawPeer, _ session: SessionID) -> Frame { raw.offer("x", size: 10, in: session, id: self.id) }

    private func complete(_ raw: RawPeer) async throws {
        let hash = try XXH3()
        hash.update(ByteBuffer(bytes: self.bytes))
        try await raw.send(
            .resource(.chunk(ResourceChunk(id: self.id, offset: 0, data: ByteBuffer(bytes: self.bytes)))),
            .resource(.end(ResourceEnd(id: self.id, algorithm: .xxh3, digest: hash.digest()))))
        #expect(try await raw.resourceAnswer() == .resource(.done(self.id)))
    }

    private func delete(from bob: TestNode) async throws {
        #expect(try await bob.node.removeResource(self.id) == nil)
        #expect(await bob.node.resources() == [])
    }

    @Test func aDeletedCompleteOneIsStillComplete() async throws {
        let (raw, bob, session) = try await self.offered()
        try await self.complete(raw)
        await raw.close()
        try await self.delete(from: bob)
        let second = try await raw.attached(to: bob, in: session)
        try await second.send(self.offer(raw, session))
        #expect(try await second.resourceAnswer() == .resource(.done(self.id)))
        #expect(await bob.node.resources() == [])
        await second.close()
        await bob.stop()
        // The record is on disk.
        let bob2 = try await TestNode("bob", in: bob.state)
        let third = try await raw.attached(to: bob2, in: session)
        try await third.send(self.offer(raw, session))
        #expect(try await third.resourceAnswer() == .resource(.done(self.id)))
        #expect(await bob2.node.resources() == [])
        #expect(try bob2.spoolNames() == [])
        // Another resource with the same name is independent.
        try await third.send(raw.offer("x", size: 10, in: session))
        guard case .resource(.accept) = try await third.resourceAnswer() else { throw EarshotError(.notFound, "not accepted") }
        await third.close()
        await bob2.stop()
    }

    @Test func aDeletedCancelledOneStaysCancelled() async throws {
        let (raw, bob, session) = try await self.offered()
        await raw.close()
        try await eventually("it is paused") { try await bob.node.resource(self.id).state == .paused }
        #expect(try await bob.node.removeResource(self.id)?.state == .cancelled)
        try await self.delete(from: bob)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(self.offer(raw, session))
        guard case .resource(.refuse(let refuse)) = try await again.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        #expect(refuse.refusal.code == .cancelled)
        await again.close()
        await bob.stop()
    }

    @Test func aDeletedFailedOneMayBeTriedAgain() async throws {
        let (raw, bob, session) = try await self.offered()
        try await raw.send(
            .resource(.chunk(ResourceChunk(id: self.id, offset: 0, data: ByteBuffer(bytes: self.bytes)))),
            .resource(.end(ResourceEnd(id: self.id, algorithm: .xxh3, digest: [UInt8](repeating: 0, count: 16)))))
        guard case .resource(.refuse) = try await raw.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        try await eventually("it has failed") { try await bob.node.resource(self.id).state == .failed }
        try await self.delete(from: bob)
        await raw.close()
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(self.offer(raw, session))
        #expect(try await again.resourceAnswer() == .resource(.accept(ResourceAccept(id: self.id, offset: 0, limit: 10))))
        await again.close()
        await bob.stop()
    }

    @Test func theyAreForgottenWithTheSession() async throws {
        let (raw, bob, session) = try await self.offered()
        try await self.complete(raw)
        try await self.delete(from: bob)
        #expect(try await bob.node.store.load().endedTransfers.map(\.id) == [self.id])
        try await bob.node.leave(session)
        #expect(try await bob.node.store.load().endedTransfers == [])
        #expect(await bob.node.endedTransfers(of: raw.id) == 0)
        await raw.close()
        await bob.stop()
    }

    @Test func finishedTransfersThatGiveWayAreRemembered() async throws {
        let (raw, bob, session) = try await self.offered()
        try await self.complete(raw)
        try await bob.node.dropContent(self.id)
        await bob.node.addFinished(EarshotLimits.finishedTransfers, of: raw.id)
        await #expect(throws: EarshotError.self) { try await bob.node.resource(self.id) }
        await raw.close()
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(self.offer(raw, session))
        #expect(try await again.resourceAnswer() == .resource(.done(self.id)))
        await again.close()
        await bob.stop()
    }

    @Test func endedTransfersAboveTheLimitAreForgotten() async throws {
        let limit = EarshotLimits.rememberedTransfers
        let time = Date(timeIntervalSince1970: 1_700_000_000)
        func ended(_ number: Int, of peer: UInt8 = 1) -> EndedTransfer {
            EndedTransfer(id: ResourceID(high: UInt64(peer), low: UInt64(number)), peerID: peerID(peer), endedAt: WallTime(time))
        }
        var remembered = EndedTransfers()
        for number in 0..<limit { remembered.remember(ended(number)) }
        #expect(remembered.count == limit && remembered.oldest == ended(0).id)
        remembered.remember(ended(limit))
        #expect(remembered.count == limit && remembered.oldest == ended(1).id)

        let directory = try StateDirectory()
        let store = try Store(directory: directory.path)
        try await store.apply([.putEndedTransfer(ended(0)), .putEndedTransfer(ended(0, of: 2))])
        let blob = peerID(1).bytes.hexadecimal
        try await store.sql(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(limit - 2))
            INSERT INTO ended_transfers (id, peer_id, message, ended_at) SELECT randomblob(16), x'\(blob)', '', 1700000000000 FROM n
            """)
        try await store.apply([.putEndedTransfer(ended(1))])
        var kept = try await store.load().endedTransfers
        #expect(kept.count == limit + 1 && kept.first == ended(0))
        try await store.apply([.putEndedTransfer(ended(2))])
        kept = try await store.load().endedTransfers
        #expect(kept.count == limit + 1 && kept.first == ended(0, of: 2) && kept.last == ended(2), "the oldest of that peer's gives way")

        let old = Double(InboxLimits.rememberedSeconds)
        try await store.prune(readBefore: time, now: time + old)
        #expect(try await store.load().endedTransfers.count == limit + 1)
        try await store.prune(readBefore: time, now: time + old + 1)
        #expect(try await store.load().endedTransfers == [])
    }
}

extension Node {
    fileprivate func endedTransfers(of peer: PeerID) -> Int { self.core.transfers.endedCount(of: peer) }

    /// Adds rows of finished transfers without content, more than are kept.
    fileprivate func addFinished(_ count: Int, of peer: PeerID) {
        for _ in 0..<count {
            let row = Resource(
                id: .random(), direction: .outgoing, peerID: peer, peerName: "", name: "y", kind: .file, size: 0, state: .cancelled,
                createdAt: Date())
            self.core.transfers.put(TransferRecord(row: row))
        }
        self.core.forgetFinishedTransfers(endedBy: peer)
        // Makes the node carry out the effects.
        self.handle(Input.deadline)
    }
}
