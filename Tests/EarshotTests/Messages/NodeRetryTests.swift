import EarshotWire
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// The times at which a queued message is retried after its receiver had no room; the test moves the time.
@Suite(.timeLimit(.minutes(1))) struct NodeRetryTests {
    private let loop = NIOAsyncTestingEventLoop()

    /// Creates a peer with frames from the test, a node, and a message that is queued for the peer and was sent to it once.
    private func queued() async throws -> (RawPeer, TestNode, MessageID) {
        let bob = try await TestNode("bob") {
            $0.fromUnknown = .accept
            $0.timers = Timers(on: self.loop)
        }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await raw.join()
        let sent = try await bob.node.send(
            to: .peers([raw.id.description]), contentType: "text/plain", body: ByteBuffer(string: "x"), queue: true)
        _ = try await raw.next { if case .message(let message) = $0, message.id == sent.id { () } else { nil } }
        return (raw, bob, sent.id)
    }

    private func refuse(_ id: MessageID, _ raw: RawPeer) async throws {
        try await raw.send(.messageReceipts([MessageReceipt(id: id, outcome: .inboxFull)]))
        // Waits until the node has handled the refusal before time passes. A ping would be answered without the node.
        #expect(try await !self.comes(id, raw))
    }

    /// Simulates that the peer's user reads another message.
    private func read(_ raw: RawPeer) async throws {
        try await raw.send(.messageReceipts([MessageReceipt(id: .random(), outcome: .read)]))
    }

    /// Returns whether the message has been retried.
    private func comes(_ id: MessageID, _ raw: RawPeer) async throws -> Bool {
        var comes = false
        // The first answer shows that the node has decided, and the second that the decision is carried out.
        for _ in 0..<2 {
            let unknown = SessionID.random()
            try await raw.send(.sessionResume(unknown))
            while true {
                let frame = try #require(await raw.next())
                if frame == .sessionEnd(unknown) { break }
                if case .message(let message) = frame, message.id == id { comes = true }
            }
        }
        return comes
    }

    /// Waits until the message is retried, after it is read from the disk.
    private func awaitTry(of id: MessageID, _ raw: RawPeer) async throws {
        try await raw.next { if case .message(let message) = $0, message.id == id { () } else { nil } }
    }

    /// Refuses the message repeatedly. Each pause has the listed length, and the last one repeats.
    private func refuseThroughAllDelays(_ id: MessageID, _ raw: RawPeer) async throws {
        for delay in EarshotLimits.refusedDelays + EarshotLimits.refusedDelays.suffix(1) {
            try await self.refuse(id, raw)
            await self.loop.advanceTime(by: TimeAmount(delay) - .nanoseconds(1))
            #expect(try await !self.comes(id, raw), "\(delay)")
            await self.loop.advanceTime(by: .nanoseconds(1))
            try await self.awaitTry(of: id, raw)
        }
    }

    @Test func aRefusedMessageIsRetriedAfterEachDelay() async throws {
        let (raw, bob, id) = try await self.queued()
        try await self.refuseThroughAllDelays(id, raw)
        // After a delivered message, the pauses start again.
        try await raw.send(.messageReceipts([MessageReceipt(id: id, outcome: .delivered)]))
        try await eventually("it is delivered") { try await bob.node.message(id, from: nil).recipients.map(\.status) == [.delivered] }
        await raw.close()
        await bob.stop()
        await self.loop.end()
    }

    @Test func readsRetryARefusedMessageOncePerInterval() async throws {
        let (raw, bob, id) = try await self.queued()
        let interval = TimeAmount(EarshotLimits.resumeInterval)
        // Until the next pause is much longer.
        try await self.refuseThroughAllDelays(id, raw)
        try await self.refuse(id, raw)
        try await self.read(raw)
        // There may be room, so the message is retried immediately.
        try await self.awaitTry(of: id, raw)
        for _ in 0..<3 {
            try await self.refuse(id, raw)
            // However many are read now.
            for _ in 0..<3 { try await self.read(raw) }
            #expect(try await !self.comes(id, raw))
            await self.loop.advanceTime(by: interval - .nanoseconds(1))
            #expect(try await !self.comes(id, raw))
            await self.loop.advanceTime(by: .nanoseconds(1))
            // Once per interval.
            try await self.awaitTry(of: id, raw)
        }
        try await self.refuse(id, raw)
        await self.loop.advanceTime(by: interval)
        try await self.read(raw)
        // And immediately, if it was not tried for that long.
        try await self.awaitTry(of: id, raw)
        await raw.close()
        await bob.stop()
        await self.loop.end()
    }
}
