import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Testing

@testable import Earshot
@testable import EarshotCore

extension Node {
    /// As many received files in the spool, for a limit that would take long to reach.
    fileprivate func pretendToHold(_ count: Int, of peer: PeerID) {
        for number in 0..<count {
            let id = ResourceID(high: 1, low: UInt64(number))
            let row = Resource(
                id: id, direction: .incoming, peerID: peer, peerName: "x", name: "x", kind: .file, size: 0, state: .completed,
                createdAt: Date(),
                inSpool: true)
            self.core.transfers.put(TransferRecord(row: row))
        }
    }
}

extension Node {
    /// As if a peer had paused for a while.
    func forgetVainOffers(of peer: PeerID) { self.core.records[peer]?.vainOffers = VainOffers() }
}

/// What may take only so long, and what is kept only so often, each at its edge; time is moved by hand.
@Suite(.timeLimit(.minutes(1))) struct NodeTransferLimitTests {
    /// A peer by hand in a session with a node whose time is the loop's.
    private func joined(
        _ loop: NIOAsyncTestingEventLoop, configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws -> (RawPeer, TestNode, SessionID) {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.timers = Timers(on: loop)
            configure(&$0)
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        return (raw, bob, try await raw.join())
    }

    private func refusal(_ raw: RawPeer) async throws -> ResourceRefuse {
        try await raw.next { frame in
            switch frame {
            case .resourceRefuse(let refuse), .resourceCancel(let refuse): refuse
            default: nil
            }
        }
    }

    private func accepted(_ raw: RawPeer) async throws {
        _ = try await raw.next { if case .resourceAccept(let accept) = $0 { accept } else { nil } }
    }

    private func finished(_ node: TestNode, _ id: ResourceID) async throws -> Resource {
        try await node.event { if case .resourceFinished(let row) = $0, row.id == id { row } else { nil } }
    }

    /// Nothing happens a moment before the limit, and `timed-out` at it, on both sides.
    private func expectTimeOut(
        _ id: ResourceID, after limit: Duration, _ loop: NIOAsyncTestingEventLoop, _ raw: RawPeer, _ node: TestNode
    ) async throws {
        _ = try await node.node.resource(id)
        await loop.advanceTime(by: TimeAmount(limit) - .nanoseconds(1))
        try await raw.roundTrip()
        #expect(try await node.node.resource(id).state.isFinal == false)
        await loop.advanceTime(by: .nanoseconds(1))
        let told = try await self.refusal(raw)
        #expect(told.id == id && told.refusal.code == .timedOut)
        let row = try await self.finished(node, id)
        #expect(row.state == .failed && row.error == .timedOut)
    }

    private func end(_ raw: RawPeer, _ node: TestNode) async {
        await raw.close()
        await node.stop()
    }

    @Test func offerTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop) { $0.acceptResources = .ask }
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1, in: session, id: id))
        try await raw.roundTrip()
        try await self.expectTimeOut(id, after: EarshotLimits.offerTime, loop, raw, bob)
        #expect(EarshotLimits.resourceAnswerTime > EarshotLimits.offerTime, "the one who was asked says so first")
        await self.end(raw, bob)
    }

    @Test func resourceStallTimeOfASenderThatNeverSends() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop)
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1000, in: session, id: id))
        try await self.accepted(raw)
        #expect(await bob.node.spool.heldBytes() == fileRoom(1000))
        try await self.expectTimeOut(id, after: EarshotLimits.resourceStallTime, loop, raw, bob)
        try await eventually("its space is free") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        #expect(await bob.node.core.transfers.count(of: raw.id, .taking) == 0)
        await self.end(raw, bob)
    }

    @Test func aTransferThatMovesLivesOn() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop)
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1000, in: session, id: id))
        try await self.accepted(raw)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceStallTime) - .nanoseconds(1))
        try await raw.send(.resourceChunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(string: "x"))))
        try await eventually("the byte has come") { try await bob.node.resource(id).transferred == 1 }
        await loop.advanceTime(by: .nanoseconds(1))
        try await raw.roundTrip()
        try await self.expectTimeOut(id, after: EarshotLimits.resourceStallTime, loop, raw, bob)
        await self.end(raw, bob)
    }

    /// The node sends, and its peer goes along only so far.
    private func sending(_ loop: NIOAsyncTestingEventLoop, size: Int) async throws -> (RawPeer, TestNode, ResourceOffer) {
        let (raw, bob, _) = try await self.joined(loop)
        let path = "\(bob.directory)/file"
        try Data(count: size).write(to: URL(fileURLWithPath: path))
        _ = try await bob.node.sendResource(to: [raw.id.description], path: path)
        return (raw, bob, try await raw.next { if case .resourceOffer(let offer) = $0 { offer } else { nil } })
    }

    @Test func resourceAnswerTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, offer) = try await self.sending(loop, size: 1)
        try await self.expectTimeOut(offer.id, after: EarshotLimits.resourceAnswerTime, loop, raw, bob)
        await self.end(raw, bob)
    }

    @Test func resourceStallTimeOfAReceiverThatTakesNothing() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, offer) = try await self.sending(loop, size: 1)
        try await raw.send(.resourceAccept(ResourceAccept(id: offer.id, offset: 0, limit: 0)))
        try await eventually("it was accepted") { try await bob.node.resource(offer.id).state == .transferring }
        try await self.expectTimeOut(offer.id, after: EarshotLimits.resourceStallTime, loop, raw, bob)
        await self.end(raw, bob)
    }

    @Test func resourceDoneTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, offer) = try await self.sending(loop, size: 1)
        try await raw.send(.resourceAccept(ResourceAccept(id: offer.id, offset: 0, limit: 1)))
        _ = try await raw.next { if case .resourceEnd(let end) = $0 { end } else { nil } }
        try await self.expectTimeOut(offer.id, after: EarshotLimits.resourceDoneTime, loop, raw, bob)
        await self.end(raw, bob)
    }

    /// A slow disk has a second more for so many bytes.
    @Test(arguments: [(1, .zero), (0, .seconds(1))] as [(UInt64, Duration)])
    func resourceDoneRate(fewer: UInt64, more: Duration) async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, offer) = try await self.sending(loop, size: Int(EarshotLimits.resourceDoneRate - fewer))
        try await self.expectTimeOut(offer.id, after: EarshotLimits.resourceAnswerTime + more, loop, raw, bob)
        await self.end(raw, bob)
    }

    /// A transfer that has begun and has no byte yet.
    private func begun(_ loop: NIOAsyncTestingEventLoop) async throws -> (RawPeer, TestNode, ResourceID) {
        let (raw, bob, session) = try await self.joined(loop)
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1000, in: session, id: id))
        try await self.accepted(raw)
        return (raw, bob, id)
    }

    @Test func progressInterval() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, id) = try await self.begun(loop)
        func told() async throws -> [UInt64] {
            try await bob.told().compactMap { if case .resourceProgress(let row) = $0, row.id == id { row.transferred } else { nil } }
        }
        let before = try await told()
        await loop.advanceTime(by: TimeAmount(EarshotLimits.progressInterval) - .nanoseconds(1))
        await bob.node.handle(.transfer(id, .written(to: 1)))
        #expect(try await told() == before)
        await loop.advanceTime(by: .nanoseconds(1))
        await bob.node.handle(.transfer(id, .written(to: 2)))
        #expect(try await told() == before + [2])
        await self.end(raw, bob)
    }

    /// What has moved for so long is on disk as under way.
    @Test func resourceRecordTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, id) = try await self.begun(loop)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceRecordTime) - .nanoseconds(1))
        await bob.node.handle(.transfer(id, .written(to: 1)))
        #expect(await bob.node.core.transfers[id]?.unrecordedSince != nil)
        await loop.advanceTime(by: .nanoseconds(1))
        await bob.node.handle(.transfer(id, .written(to: 2)))
        #expect(await bob.node.core.transfers[id]?.unrecordedSince == nil)
        try await eventually("it is on disk") {
            try await bob.node.store.load().resources.contains { $0.id == id && $0.state == .transferring }
        }
        await self.end(raw, bob)
    }

    @Test func resourceReachTime() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, _) = try await self.joined(loop)
        let path = "\(bob.directory)/file"
        try Data(count: 1).write(to: URL(fileURLWithPath: path))
        await raw.close()
        try await eventually("the connection is gone") { await bob.node.status().counts.connections == 0 }
        let row = try #require(try await bob.node.sendResource(to: [raw.id.description], path: path).first)
        await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceReachTime) - .nanoseconds(1))
        #expect(try await bob.node.resource(row.id).state == .offered)
        await loop.advanceTime(by: .nanoseconds(1))
        #expect(try await self.finished(bob, row.id).error == .timedOut)
        await bob.stop()
    }

    @Test func finishedTransfers() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop) { $0.acceptResources = .ask }
        var ids: [ResourceID] = []
        for _ in 0...EarshotLimits.finishedTransfers {
            let id = ResourceID.random()
            ids.append(id)
            if ids.count % 100 == 0 {
                try await raw.roundTrip()
                await bob.node.forgetVainOffers(of: raw.id)
            }
            try await raw.send(
                raw.offer("x", size: 1, in: session, id: id), .resourceCancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled))))
            if ids.count == EarshotLimits.finishedTransfers {
                try await raw.roundTrip()
                #expect(await bob.node.resources().count == EarshotLimits.finishedTransfers)
            }
        }
        try await raw.roundTrip()
        #expect(await bob.node.resources().map(\.id) == Array(ids.dropFirst()), "the oldest goes")
        await self.end(raw, bob)
    }

    /// Transfers that are over leave their jobs behind while the disk is busy: so many, and the next offer has to wait.
    @Test func incomingMovers() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop)
        let (busy, released) = (OneShot<Void>(), DispatchSemaphore(value: 0))
        let spool = try #require(bob.node.heartbeats.first { $0.name == "spool" })
        spool.ask {
            busy.settle(())
            released.wait()
        }
        // Whatever comes of it, the spool's thread is let go.
        defer { released.signal() }
        await busy.value()
        for _ in 0..<EarshotLimits.incomingMovers {
            let id = ResourceID.random()
            try await raw.send(
                raw.offer("x", size: 1, in: session, id: id), .resourceCancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled))))
        }
        try await raw.roundTrip()
        #expect(await bob.node.core.transfers.count(of: raw.id, .incomingMover) == EarshotLimits.incomingMovers)
        #expect(await bob.node.core.transfers.count(of: raw.id, .taking) == 0)
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1, in: session, id: id))
        let refusal = try await self.refusal(raw)
        #expect(refusal.id == id && refusal.refusal.code == .busy)
        released.signal()
        try await eventually("all have returned") { await bob.node.core.transfers.count(of: raw.id, .incomingMover) == 0 }
        try await raw.send(raw.offer("x", size: 1, in: session))
        try await self.accepted(raw)
        await self.end(raw, bob)
    }

    @Test func spooledResources() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await self.joined(loop)
        await bob.node.pretendToHold(EarshotLimits.spooledResources - 1, of: raw.id)
        try await raw.send(raw.offer("x", size: 0, in: session))
        try await self.accepted(raw)
        try await raw.send(raw.offer("x", size: 0, in: session))
        #expect(try await self.refusal(raw).refusal.code == .noSpace)
        await self.end(raw, bob)
    }
}
