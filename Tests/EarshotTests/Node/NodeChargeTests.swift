import EarshotWire
import Foundation
import NIOCore
import NIOEmbedded
import OrderedCollections
import Synchronization
import Testing

@testable import Earshot

extension Node {
    /// The amount of work that was queued for the store.
    fileprivate var storeWork: Int { self.storeQueue.total }
}

/// The effects of a peer's frames: none without a session, and none twice.
@Suite(.timeLimit(.minutes(2))) struct NodeChargeTests {
    private func receipts(_ outcome: MessageReceipt.Outcome) -> Frame {
        .messageReceipts((0..<WireLimits.receiptsPerFrame).map { _ in MessageReceipt(id: .random(), outcome: outcome) })
    }

    /// A stranger's receipts are ignored. Receipts of a member for unknown messages cause no work for the store.
    @Test(arguments: [false, true]) func receiptsOfNothing(inSession: Bool) async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        if inSession { _ = try await raw.join() }
        let before = await bob.node.storeWork
        for outcome in [MessageReceipt.Outcome.noted, .read, .delivered, .refused, .inboxFull] {
            for _ in 0..<20 { try await raw.send(self.receipts(outcome)) }
        }
        try await raw.roundTrip()
        #expect(await bob.node.storeWork == before)
        #expect(await bob.node.core.gatheringNotes == 0)
        #expect(await bob.node.core.unnotedCount == 0)
        await raw.close()
        await bob.stop()
    }

    /// A late confirmation of a message is stored once, however often its receiver repeats it.
    @Test func aLateConfirmationIsKeptOnce() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.outboxAge = .seconds(5)
            $0.timers = Timers(on: loop)
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await raw.join()
        let sent = try await bob.node.send(
            to: .peers([raw.id.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), queue: true)
        _ = try await raw.next { if case .message(let message) = $0, message.id == sent.id { () } else { nil } }
        await loop.advanceTime(by: .seconds(5))
        try await bob.event { kind -> Void? in
            if case .messageStatus(sent.id, let recipient) = kind, recipient.status == .unconfirmed { () } else { nil }
        }
        let before = await bob.node.storeWork
        let late = Frame.messageReceipts(Array(repeating: MessageReceipt(id: sent.id, outcome: .delivered), count: 1000))
        for _ in 0..<3 { try await raw.send(late) }
        try await raw.roundTrip()
        #expect(await bob.node.storeWork == before + 1)
        await raw.close()
        await bob.stop()
    }

    /// When all work of a peer is done, nothing is charged to it.
    @Test func whatIsChargedIsGivenBack() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        for sequence in 1...100 { try await raw.send(raw.message("x", in: session, sequence: UInt64(sequence))) }
        for number in 0..<100 {
            let offer = raw.offer("x\(number)", size: 10, in: session)
            guard case .resource(.offer(let words)) = offer else { continue }
            try await raw.send(
                offer, .resource(.cancel(ResourceRefuse(id: words.id, refusal: Refusal(code: .cancelled, explanation: "")))))
        }
        try await raw.roundTrip()
        try await eventually("nothing is owed") { await bob.node.transport.accounts.bytes == 0 }
        #expect(try await bob.inbox().count == 100)
        await raw.close()
        try await eventually("nor remembered") { await bob.node.transport.accounts.count == 0 }
        await bob.stop()
    }

    /// Timers do not run while a machine is suspended, but deadlines pass. Expired messages are not sent.
    @Test func nothingGoesOutPastItsDeadline() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let suspended = Atomic(0)
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.timers = Timers(on: loop) { .milliseconds(suspended.load(ordering: .relaxed)) }
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        await raw.close()
        try await eventually("bob has noticed") { await bob.node.connection(to: raw.id) == nil }
        async let sent = bob.node.send(
            to: [raw.id.description], contentType: "text/plain", body: ByteBuffer(string: "too late"), timeout: .milliseconds(50))
        try await eventually("it waits") { await bob.node.core.outbox(of: raw.id)?.isEmpty == false }
        suspended.store(50, ordering: .relaxed)
        let again = try await raw.back(to: bob, in: session)
        #expect(try await sent.recipients.map(\.error) == [.notSent])
        try await again.send(.sessionResume(.random()))
        var came: [Frame] = []
        while let frame = await again.next() {
            if case .sessionEnd = frame { break }
            came.append(frame)
        }
        #expect(!came.contains { if case .message = $0 { true } else { false } })
        await again.close()
        await bob.stop()
        await loop.end()
    }
}
