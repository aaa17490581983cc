import EarshotWire
import Foundation
import NIOCore
import OrderedCollections
import Testing

@testable import Earshot

@Suite(.timeLimit(.minutes(1))) struct NodeMessageLimitTests {
    private func status(_ sent: SentMessage) -> [Message.Status] { sent.recipients.map(\.status) }

    /// Returns the whole inbox, in order, which may be more than one page of the API.
    private func inbox(_ node: TestNode) async throws -> [String] {
        try await node.node.store.messages(state: nil, from: nil, limit: 10_000).map {
            String(buffer: $0.body)
        }
    }

    @Test func aBodyAboveTheLimitIsTooLarge() async throws {
        let (alice, bob) = try await pair()
        let body = ByteBuffer(repeating: 7, count: WireLimits.messageBody)
        let sent = try await alice.node.send(
            to: ["bob"], contentType: "a/b", body: body, timeout: .seconds(60))
        #expect(self.status(sent) == [.delivered])
        #expect(try await bob.node.messages(state: nil, from: nil, limit: 1).first?.body == body)
        let error = await #expect(throws: EarshotError.self) {
            try await alice.node.send(
                to: ["bob"], contentType: "a/b",
                body: ByteBuffer(repeating: 7, count: WireLimits.messageBody + 1))
        }
        #expect(error?.code == .tooLarge)
        await alice.stop()
        await bob.stop()
    }

    @Test func aContentTypeOutsideTheRulesIsRefused() async throws {
        let (alice, bob) = try await pair()
        for type in [
            "x", String(repeating: "x", count: WireLimits.contentType), "text/plain; a=\"~ \"",
        ] {
            let sent = try await alice.node.send(
                to: ["bob"], contentType: type, body: ByteBuffer(), timeout: .seconds(60))
            #expect(self.status(sent) == [.delivered])
        }
        for type in [
            "", String(repeating: "x", count: WireLimits.contentType + 1), "a\nb", "é", "a\u{7F}",
        ] {
            let error = await #expect(throws: EarshotError.self) {
                try await alice.node.send(to: ["bob"], contentType: type, body: ByteBuffer())
            }
            #expect(error?.code == .invalidParameter)
        }
        await alice.stop()
        await bob.stop()
    }

    @Test func messageTimeoutLimitAndRecipients() async throws {
        let (alice, bob) = try await pair()
        for timeout in [
            Duration.zero, .seconds(-1), WireLimits.messageTimeout + .nanoseconds(1),
        ] {
            await #expect(throws: EarshotError.self) {
                try await alice.send("x", to: bob, timeout: timeout)
            }
        }
        #expect(
            try await self.status(alice.send("x", to: bob, timeout: WireLimits.messageTimeout))
                == [.delivered])
        let names = Array(repeating: "bob", count: EarshotLimits.recipients)
        let sent = try await alice.node.send(
            to: names, contentType: "x", body: ByteBuffer(string: "many"), timeout: .seconds(60))
        #expect(
            self.status(sent) == [.delivered], "one peer is one recipient, however often it is named")
        for names in [[], names + ["bob"]] {
            await #expect(throws: EarshotError.self) {
                try await alice.node.send(to: names, contentType: "x", body: ByteBuffer())
            }
        }
        await alice.stop()
        await bob.stop()
    }

    /// The default timeout.
    @Test func aMessageWaitsForTheDefaultTimeout() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let before = await alice.node.transport.timers.now
        let task = Task { try await alice.send("x", to: bob, timeout: nil) }
        try await eventually("it waits") { await alice.node.waitingSenders(for: bob.node.id) == 1 }
        let after = await alice.node.transport.timers.now
        let deadline = try #require(await alice.node.core.outgoingMessages.first).deadline
        #expect((before + EarshotLimits.messageTimeout...after + EarshotLimits.messageTimeout).contains(deadline))
        await alice.stop()
        _ = await task.result
    }

    /// No deadline is slept through for long, and a near one is met.
    @Test func aDeadlineIsLookedAtInBetween() {
        let now = MonotonicInstant(nanoseconds: 0)
        func look(_ left: Duration) -> Duration { EarshotLimits.look(at: now + left, from: now) }
        #expect(look(.seconds(-1)) == .zero && look(.zero) == .zero)
        #expect(look(.nanoseconds(1)) == .nanoseconds(1))
        #expect(look(.seconds(1)) == .seconds(1) && look(.seconds(60) - .nanoseconds(1)) == .seconds(1))
        #expect(look(.seconds(60)) == .seconds(30) && look(.seconds(86_400)) == .seconds(30))
    }

    @Test func aRetryAfterItsTimeIsDeliveredOnce() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        try await eventually("alice has noticed") { await alice.node.connection(to: bob.node.id) == nil }
        let id = MessageID.random()
        #expect(try await self.status(alice.send("once", to: bob, id: id, timeout: .milliseconds(50))) == [.failed])
        let again = try await TestNode("bob", in: bob.state)
        alice.sees(again)
        #expect(try await self.status(alice.send("once", to: again, id: id)) == [.delivered])
        #expect(try await self.status(alice.send("once", to: again, id: id)) == [.delivered])
        #expect(try await again.inbox() == ["once"])
        await alice.stop()
        await again.stop()
    }

    @Test func aFullInboxRefuses() async throws {
        let (alice, bob) = try await pair(configureBob: { $0.inboxLimit = 2 })
        for text in ["1", "2"] {
            #expect(try await self.status(alice.send(text, to: bob)) == [.delivered])
        }
        let id = MessageID.random()
        let refused = try await alice.send("3", to: bob, id: id)
        #expect(self.status(refused) == [.failed])
        #expect(refused.recipients.first?.error == .inboxFull)
        #expect(try await bob.inbox() == ["1", "2"])
        let first = try #require(try await bob.node.messages(state: .unread, from: nil, limit: 1).first)
        _ = try await bob.node.markRead(first.id, from: nil)
        #expect(try await self.status(alice.send("3", to: bob, id: id)) == [.delivered])
        await alice.stop()
        await bob.stop()
    }

    /// A peer that receives everything and acknowledges nothing.
    @Test func queuedMessageBytes() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        let session = try await raw.join()
        try await raw.send(.sessionResume(session))
        try await raw.roundTrip()
        let name = raw.id.description
        let body = ByteBuffer(repeating: 1, count: 512 * 1024)
        try await withThrowingTaskGroup(of: SentMessage.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await bob.node.send(to: [name], contentType: "x", body: body, timeout: .seconds(3600))
                }
            }
            try await eventually("senders wait") { await bob.node.waitingSenders(for: raw.id) >= 12 }
            #expect(
                await bob.node.queuedBytes(for: raw.id) < EarshotLimits.queuedMessageBytes
                    + WireLimits.messageBody)
            // A short deadline also ends a message that never gets room.
            let short = try await bob.node.send(
                to: [name], contentType: "x", body: body, timeout: .milliseconds(50))
            #expect(self.status(short) == [.failed])
            #expect(await bob.node.waitingSenders(for: raw.id) >= 12)
            // When the peer acknowledges messages, others are sent.
            var acknowledged = 0
            while acknowledged < 20 {
                let id = try await raw.next {
                    if case .message(let message) = $0 { message.id } else { nil }
                }
                try await raw.send(.messageReceipts([MessageReceipt(id: id, outcome: .delivered)]))
                acknowledged += 1
            }
            for try await sent in group { #expect(self.status(sent) == [.delivered]) }
        }
        #expect(await bob.node.queuedBytes(for: raw.id) == 0)
        await raw.close()
        await bob.stop()
    }

    @Test func stoppingReleasesSendersThatWaitForRoom() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let raw = try await RawPeer(to: bob)
        try await raw.prove()
        _ = try await raw.join()
        let name = raw.id.description
        let body = ByteBuffer(repeating: 1, count: WireLimits.messageBody)
        try await withThrowingTaskGroup(of: SentMessage.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    try await bob.node.send(to: [name], contentType: "x", body: body, timeout: .seconds(3600))
                }
            }
            try await eventually("senders wait") { await bob.node.waitingSenders(for: raw.id) >= 3 }
            await bob.stop()
            for try await sent in group { #expect(self.status(sent) == [.failed]) }
        }
        await raw.close()
    }

    /// Messages that were sent on a superseded connection are sent again on the new one.
    @Test func aSupersededConnectionTakesItsMessagesBack() async throws {
        let bob = try await TestNode("bob") { $0.fromUnknown = .accept }
        let first = try await RawPeer(to: bob)
        try await first.prove()
        let session = try await first.join()
        async let sent = bob.node.send(
            to: [first.id.description], contentType: "x", body: ByteBuffer(string: "once"),
            timeout: .seconds(50))
        let id = try await first.next { if case .message(let message) = $0 { message.id } else { nil } }
        let second = try await RawPeer(to: bob, as: first.identity)
        try await second.prove()
        try await second.send(.sessionResume(session))
        #expect(await first.refusal() == .superseded)
        #expect(
            try await second.next { if case .message(let message) = $0 { message.id } else { nil } } == id
        )
        try await second.send(.messageReceipts([MessageReceipt(id: id, outcome: .delivered)]))
        #expect(try await self.status(sent) == [.delivered])
        await second.close()
        await bob.stop()
    }

    /// Sends from `callers` concurrent callers, each one message after another; `during` runs in the middle.
    private func burst(
        from alice: TestNode, to bob: PeerID, callers: Int, each: Int,
        during: @escaping @Sendable () async throws -> Void = {}
    ) async throws {
        let finished = Box(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    for number in 0..<each {
                        let sent = try await alice.node.send(
                            to: [bob.description], contentType: "x",
                            body: ByteBuffer(string: "\(caller).\(number)"), timeout: .seconds(60))
                        #expect(self.status(sent) == [.delivered])
                        finished.withLock { $0 += 1 }
                    }
                }
            }
            group.addTask {
                try await eventually("half is done") { finished.value >= callers * each / 2 }
                try await during()
            }
            try await group.waitForAll()
        }
    }

    private func expectOnceAndInOrder(_ texts: [String], callers: Int, each: Int) {
        #expect(texts.count == callers * each)
        for caller in 0..<callers {
            let own = texts.filter { $0.hasPrefix("\(caller).") }
            #expect(own == (0..<each).map { "\(caller).\($0)" })
        }
    }

    @Test func aBurstArrivesOnceAndInEachCallersOrder() async throws {
        let (alice, bob) = try await pair()
        try await self.burst(from: alice, to: bob.node.id, callers: 100, each: 20)
        self.expectOnceAndInOrder(try await self.inbox(bob), callers: 100, each: 20)
        await alice.stop()
        await bob.stop()
    }

    @Test func aRestartInTheMiddleOfABurstLosesNothing() async throws {
        let (alice, bob) = try await pair()
        let restarted = Box<TestNode?>(nil)
        try await self.burst(from: alice, to: bob.node.id, callers: 50, each: 20) {
            await bob.stop()
            let again = try await TestNode("bob", in: bob.state)
            restarted.withLock { $0 = again }
            alice.sees(again)
            again.sees(alice)
        }
        let again = try #require(restarted.value)
        self.expectOnceAndInOrder(try await self.inbox(again), callers: 50, each: 20)
        await alice.stop()
        await again.stop()
    }
}

extension Node {
    func queuedBytes(for peer: PeerID) -> Int { self.core.outbox(of: peer)?.bytes ?? 0 }
    func waitingSenders(for peer: PeerID) -> Int { self.core.outbox(of: peer)?.waitingIDs.count ?? 0 }
}
