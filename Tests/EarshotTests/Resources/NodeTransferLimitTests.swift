import EarshotWaiting
import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotCore

/// The spool's part of the limits of transfers. The core tests the limits themselves (TransferLimitTests).
@Suite(.timeLimit(.minutes(1))) struct NodeTransferLimitTests {
    private func refusal(_ raw: RawPeer) async throws -> ResourceRefuse {
        try await raw.next { frame in
            switch frame {
            case .resource(.refuse(let refuse)), .resource(.cancel(let refuse)): refuse
            default: nil
            }
        }
    }

    private func accepted(_ raw: RawPeer) async throws {
        _ = try await raw.next { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
    }

    private func end(_ raw: RawPeer, _ node: TestNode) async {
        await raw.close()
        await node.stop()
    }

    /// The sender sends no bytes, so the reserved space is released.
    @Test func whatTimesOutFreesItsSpace() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let (raw, bob, session) = try await RawPeer.joined { $0.timers = Timers(on: loop) }
        let id = ResourceID.random()
        try await raw.send(raw.offer("x", size: 1000, in: session, id: id))
        try await self.accepted(raw)
        #expect(await bob.node.spool.heldBytes() == fileRoom(1000))
        await loop.advanceTime(by: TimeAmount(EarshotLimits.resourceStallTime))
        let refusal = try await self.refusal(raw)
        #expect(refusal.id == id && refusal.refusal.code == .timedOut)
        try await eventually("its space is free") { try await bob.node.spool.heldBytes() == 0 && bob.spoolNames() == [] }
        await self.end(raw, bob)
        await loop.end()
    }

    /// While the disk is busy, ended transfers leave their jobs behind. At the limit, the next offer has to wait.
    @Test func moversAboveTheLimitRefuseTheNextOffer() async throws {
        let (raw, bob, session) = try await RawPeer.joined()
        let (busy, released) = (OneShot<Void>(), DispatchSemaphore(value: 0))
        let spool = try #require(bob.node.heartbeats.first { $0.name == "spool" })
        spool.ask {
            busy.settle(())
            released.wait()
        }
        // Releases the spool's thread in every case.
        defer { released.signal() }
        await busy.value()
        for _ in 0..<EarshotLimits.incomingMovers {
            let id = ResourceID.random()
            try await raw.send(
                raw.offer("x", size: 1, in: session, id: id), .resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled))))
            )
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
}
