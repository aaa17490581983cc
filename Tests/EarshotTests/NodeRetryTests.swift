import EarshotWire
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// When a queued message that its receiver had no room for is tried again, each time at its edge; time is moved by hand.
@Suite(.timeLimit(.minutes(1))) struct NodeRetryTests {
    private let loop = NIOAsyncTestingEventLoop()

    /// A peer by hand, a node, and a message that is queued there for the peer and has come to it once.
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
        // Time does not pass before the node has heard it; a ping is answered without the node.
        #expect(try await !self.comes(id, raw))
    }

    /// A person there reads some other message.
    private func read(_ raw: RawPeer) async throws {
        try await raw.send(.messageReceipts([MessageReceipt(id: .random(), outcome: .read)]))
    }

    /// Whether the message is tried again by now.
    private func comes(_ id: MessageID, _ raw: RawPeer) async throws -> Bool {
        var comes = false
        // The first answer says that the node has decided, the second that what it decided is done.
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

    /// Waits until the message is tried again: it is read from the disk first.
    private func awaitTry(of id: MessageID, _ raw: RawPeer) async throws {
        try await raw.next { if case .message(let message) = $0, message.id == id { () } else { nil } }
    }

    /// It is refused again and again, and each pause is as long as the list says; the last one stands.
    private func refuseThroughAllDelays(_ id: MessageID, _ raw: RawPeer) async throws {
        for delay in EarshotLimits.refusedDelays + EarshotLimits.refusedDelays.suffix(1) {
            try await self.refuse(id, raw)
            await self.loop.advanceTime(by: TimeAmount(delay) - .nanoseconds(1))
            #expect(try await !self.comes(id, raw), "\(delay)")
            await self.loop.advanceTime(by: .nanoseconds(1))
            try await self.awaitTry(of: id, raw)
        }
    }

    @Test func refusedDelays() async throws {
        let (raw, bob, id) = try await self.queued()
        try await self.refuseThroughAllDelays(id, raw)
        // What is taken at last begins anew.
        try await raw.send(.messageReceipts([MessageReceipt(id: id, outcome: .delivered)]))
        try await eventually("it is delivered") { try await bob.node.message(id, from: nil).recipients.map(\.status) == [.delivered] }
        await raw.close()
        await bob.stop()
        await self.loop.end()
    }

    @Test func resumeInterval() async throws {
        let (raw, bob, id) = try await self.queued()
        let interval = TimeAmount(EarshotLimits.resumeInterval)
        // Until it would wait for much longer by itself.
        try await self.refuseThroughAllDelays(id, raw)
        try await self.refuse(id, raw)
        try await self.read(raw)
        // There may be room: at once.
        try await self.awaitTry(of: id, raw)
        for _ in 0..<3 {
            try await self.refuse(id, raw)
            // However many are read now.
            for _ in 0..<3 { try await self.read(raw) }
            #expect(try await !self.comes(id, raw))
            await self.loop.advanceTime(by: interval - .nanoseconds(1))
            #expect(try await !self.comes(id, raw))
            await self.loop.advanceTime(by: .nanoseconds(1))
            // Once an interval.
            try await self.awaitTry(of: id, raw)
        }
        try await self.refuse(id, raw)
        await self.loop.advanceTime(by: interval)
        try await self.read(raw)
        // And at once where it was not tried for so long.
        try await self.awaitTry(of: id, raw)
        await raw.close()
        await bob.stop()
        await self.loop.end()
    }
}
