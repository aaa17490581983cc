import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

/// Receiving: the remains of an interrupted transfer, and resuming it. The test controls the sender's frames.
@Suite(.timeLimit(.minutes(1))) struct NodeResumeTests {
    private let bytes = Array("0123456789".utf8)
    private let id = ResourceID.random()

    private func chunk(_ range: Range<Int>) -> Frame {
        .resource(.chunk(ResourceChunk(id: self.id, offset: UInt64(range.lowerBound), data: ByteBuffer(bytes: self.bytes[range]))))
    }

    private func digest(_ count: Int) throws -> [UInt8] {
        let hash = try XXH3()
        hash.update(ByteBuffer(bytes: self.bytes.prefix(count)))
        return hash.digest()
    }

    private func end() throws -> Frame { .resource(.end(ResourceEnd(id: self.id, algorithm: .xxh3, digest: try self.digest(10)))) }

    /// Offers ten bytes, sends four, which are written, and loses the connection.
    private func interrupted(_ raw: RawPeer, _ bob: TestNode, _ session: SessionID) async throws {
        try await raw.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await raw.resourceAnswer() == .resource(.accept(ResourceAccept(id: self.id, offset: 0, limit: 10))))
        try await raw.send(self.chunk(0..<4))
        try await eventually("four bytes are written") { try await bob.node.resource(self.id).transferred == 4 }
        await raw.close()
        try await self.paused(bob)
    }

    private func paused(_ bob: TestNode) async throws {
        try await eventually("it is paused") {
            let row = try await bob.node.resource(self.id)
            let hasJob = await bob.node.hasJob(self.id)
            return row.state == .paused && row.transferred == 4 && !hasJob
        }
    }

    private var have: Frame {
        get throws { .resource(.have(ResourceHave(id: self.id, offset: 4, digest: try self.digest(4)))) }
    }

    private func finish(_ raw: RawPeer, _ bob: TestNode, from offset: Int) async throws {
        #expect(try await raw.resourceAnswer() == .resource(.accept(ResourceAccept(id: self.id, offset: UInt64(offset), limit: 10))))
        try await raw.send(self.chunk(offset..<10), self.end())
        #expect(try await raw.resourceAnswer() == .resource(.done(self.id)))
        let row = try await bob.node.resource(self.id)
        #expect(row.state == .completed && row.transferred == 10)
        #expect(row.digest == "xxh3:" + (try self.digest(10)).hexadecimal)
        let content = try await bob.node.resourceContent(self.id)
        #expect(try await content.read(at: 0, count: 100) == ByteBuffer(bytes: self.bytes))
        #expect(await bob.node.spool.heldBytes() == fileRoom(10))
    }

    @Test func itGoesOnWhereItWas() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await again.resourceAnswer() == self.have)
        try await again.send(.resource(.from(ResourceFrom(id: self.id, offset: 4))))
        try await self.finish(again, bob, from: 4)
        await again.close()
        await bob.stop()
    }

    @Test func itGoesOnAfterARestartAndInterruptionsWhileComparing() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        // The connection is lost again during the comparison.
        let second = try await raw.attached(to: bob, in: session)
        try await second.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await second.resourceAnswer() == self.have)
        await second.close()
        try await self.paused(bob)
        await bob.stop()
        let bob2 = try await TestNode("bob", in: bob.state)
        #expect(try await bob2.node.resource(self.id).state == .paused)
        #expect(try await bob2.node.resource(self.id).transferred == 4)
        #expect(await bob2.node.spool.heldBytes() == fileRoom(4), "what has come")
        let third = try await raw.attached(to: bob2, in: session)
        try await third.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await third.resourceAnswer() == self.have)
        try await third.send(.resource(.from(ResourceFrom(id: self.id, offset: 4))))
        try await self.finish(third, bob2, from: 4)
        await third.close()
        await bob2.stop()
    }

    /// A state that was restored from before the session has the transfer without its session.
    @Test func aStartWithoutItsSessionLeavesNothingOfIt() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        await bob.stop()
        try await Store(directory: bob.directory).apply([.removeSession(with: raw.id)])
        let bob2 = try await TestNode("bob", in: bob.state)
        #expect(try await bob2.node.resource(self.id).state == .failed)
        #expect(await bob2.node.spool.heldBytes() == 0)
        await bob2.stop()
    }

    @Test func aSourceThatBeginsOtherwiseIsReceivedAnew() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await again.resourceAnswer() == self.have)
        try await again.send(.resource(.from(ResourceFrom(id: self.id, offset: 0))))
        try await self.finish(again, bob, from: 0)
        await again.close()
        await bob.stop()
    }

    @Test func aSourceOfAnotherSizeIsReceivedAnew() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: 12, in: session, id: self.id))
        #expect(try await again.resourceAnswer() == .resource(.accept(ResourceAccept(id: self.id, offset: 0, limit: 12))))
        #expect(try await bob.node.resource(self.id).size == 12)
        #expect(await bob.node.spool.heldBytes() == fileRoom(12))
        await again.close()
        await bob.stop()
    }

    @Test func whatIsHereAlreadyIsSaidSo() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await raw.send(raw.offer("x", size: 10, in: session, id: self.id))
        _ = try await raw.resourceAnswer()
        try await raw.send(self.chunk(0..<10), self.end())
        #expect(try await raw.resourceAnswer() == .resource(.done(self.id)))
        await raw.close()
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await again.resourceAnswer() == .resource(.done(self.id)))
        // Under another name, it is a different resource, and the id is already in use.
        let other = try await raw.attached(to: bob, in: session)
        try await other.send(raw.offer("y", size: 10, in: session, id: self.id))
        guard case .resource(.refuse(let refuse)) = try await other.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        #expect(refuse.refusal.code == .conflict)
        await other.close()
        await bob.stop()
    }

    @Test func cancelledHereWhileTheSenderIsAway() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        #expect(try await bob.node.removeResource(self.id)?.state == .cancelled)
        try await eventually("nothing is left") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        guard case .resource(.refuse(let refuse)) = try await again.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        #expect(refuse.refusal.code == .cancelled)
        await again.close()
        await bob.stop()
    }

    @Test func cancelledThereMeanwhile() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(
            raw.offer("x", size: 10, in: session, id: self.id),
            .resource(.cancel(ResourceRefuse(id: self.id, refusal: Refusal(code: .cancelled)))))
        try await eventually("it is cancelled and gone") {
            try await bob.node.resource(self.id).state == .cancelled && bob.spoolNames() == []
        }
        #expect(await bob.node.spool.heldBytes() == 0)
        await again.close()
        await bob.stop()
    }

    @Test func leavingEndsWhatIsPaused() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        try await self.interrupted(raw, bob, session)
        try await bob.node.leave(session)
        try await eventually("it is gone") { try await bob.node.resource(self.id).state == .failed && bob.spoolNames() == [] }
        await bob.stop()
    }

    @Test func aPartialCountsForTheQuota() async throws {
        let (raw, bob, session) = try await RawPeer.joined {
            $0.quota = 4 * (fileRoom(4) + fileRoom(6)) - 1
            $0.reserve = 0
        }
        try await self.interrupted(raw, bob, session)
        let again = try await raw.attached(to: bob, in: session)
        try await again.send(raw.offer("y", size: 6, in: session))
        guard case .resource(.refuse(let refuse)) = try await again.resourceAnswer() else { throw EarshotError(.notFound, "not refused") }
        #expect(refuse.refusal.code == .noSpace)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        #expect(try await again.resourceAnswer() == self.have)
        await again.close()
        await bob.stop()
    }

    @Test func resourceResumeTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await RawPeer.joined { $0.timers = Timers(on: loop) }
        try await self.interrupted(raw, bob, session)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceResumeTime) - .seconds(50))
        let again = try await raw.attached(to: bob, in: session)
        #expect(try await bob.node.resource(self.id).state == .paused)
        await loop.advanceTime(by: .seconds(50))
        try await eventually("it has expired") { try await bob.node.resource(self.id).error == .timedOut && bob.spoolNames() == [] }
        #expect(await bob.node.spool.heldBytes() == 0)
        // Its sender is more patient: the transfer starts from the beginning.
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        try await self.finish(again, bob, from: 0)
        await again.close()
        await bob.stop()
    }

    @Test func anOfferThatIsAcceptedWhileItsSenderIsAway() async throws {
        let (raw, bob, session) = try await RawPeer.joined { $0.acceptResources = .ask }
        try await raw.send(raw.offer("x", size: 10, in: session, id: self.id))
        try await raw.roundTrip()
        await raw.close()
        try await eventually("it is away") { await bob.node.sessions().first?.members.first?.state != .connected }
        #expect(try await bob.node.resource(self.id).state == .offered)
        #expect(try await bob.node.respond(to: self.id, .accept).state == .paused)
        await bob.stop()
        let bob2 = try await TestNode("bob", in: bob.state) { $0.acceptResources = .ask }
        let again = try await raw.attached(to: bob2, in: session)
        try await again.send(raw.offer("x", size: 10, in: session, id: self.id))
        try await self.finish(again, bob2, from: 0)
        await again.close()
        await bob2.stop()
    }
}

extension Node {
    fileprivate func hasJob(_ id: ResourceID) -> Bool { self.core.transfers[id]?.hasMover ?? false }
}
