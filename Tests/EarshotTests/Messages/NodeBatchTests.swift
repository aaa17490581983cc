import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import Earshot

/// Messages that are submitted together, and callers that stop waiting.
@Suite(.timeLimit(.minutes(1))) struct NodeBatchTests {
    private func draft(_ text: String, to names: [String] = ["bob"], id: MessageID? = nil, queue: Bool = false) -> MessageDraft {
        MessageDraft(
            to: .peers(names), contentType: "text/plain", body: ByteBuffer(string: text), id: id, queue: queue, timeout: .seconds(50))
    }

    private func statuses(_ outcomes: [MessageBatch.Outcome]) -> [String] {
        outcomes.map { outcome in
            switch outcome {
            case .success(let sent): sent.recipients.map(\.status.rawValue).joined(separator: " ")
            case .failure(let error): error.code.rawValue
            }
        }
    }

    @Test func aBatchArrivesInOrderAndEachIsAnswered() async throws {
        let (alice, bob) = try await pair()
        let id = MessageID.random()
        let batch = await alice.node.submit([
            self.draft("0"), self.draft("1", id: id), self.draft("x", to: ["nobody"]), self.draft("2", queue: true),
            self.draft("1", id: id), self.draft("another", id: id), self.draft("3", to: ["bob", bob.node.id.description]),
            MessageDraft(to: .all, contentType: "", body: ByteBuffer()),
        ])
        #expect(
            self.statuses(await batch.outcomes())
                == ["delivered", "delivered", "unknown-peer", "queued", "delivered", "conflict", "delivered", "invalid-parameter"])
        try await eventually("all are there") { try await bob.inbox().count == 4 }
        #expect(try await bob.inbox().sorted() == ["0", "1", "2", "3"])
        #expect(try await bob.inbox().filter { $0 != "2" } == ["0", "1", "3"])
        // A repeated call returns the same outcomes.
        #expect(await batch.outcomes().count == 8)
        #expect(await alice.node.submit([]).outcomes().isEmpty)
        await alice.stop()
        await bob.stop()
    }

    @Test func manyBatchesAtOnceKeepTheOrderInWhichTheyWereHandedOver() async throws {
        let (alice, bob) = try await pair()
        var batches: [MessageBatch] = []
        for start in stride(from: 0, to: 900, by: 30) {
            batches.append(await alice.node.submit((start..<start + 30).map { self.draft("\($0)") }))
        }
        for batch in batches { #expect(self.statuses(await batch.outcomes()).allSatisfy { $0 == "delivered" }) }
        #expect(try await bob.inbox() == (0..<900).map(String.init))
        await alice.stop()
        await bob.stop()
    }

    @Test func whatIsUnderWayWhenTheNodeStopsIsDecided() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let batch = await alice.node.submit((0..<10).map { self.draft("\($0)") })
        await alice.stop()
        #expect(self.statuses(await batch.outcomes()).count == 10)
        #expect(self.statuses(await alice.node.submit([self.draft("late")]).outcomes()) == ["unavailable"])
    }

    @Test func idsOfOursSortByTime() {
        let ids = (0..<50).map { MessageID.timeOrdered(ticks: (1_700_000_000_000 + $0) * MessageID.ticksPerMillisecond, random: .max) }
        #expect(ids.map(\.description) == ids.map(\.description).sorted())
        for id in ids {
            #expect(Array(id.description)[14] == "7")
            #expect("89ab".contains(Array(id.description)[19]))
            #expect(MessageID(id.description) == id)
        }
        // The example of RFC 9562: 2022-02-22T19:22:22Z.
        let example = MessageID.timeOrdered(ticks: 1_645_557_742_000 * MessageID.ticksPerMillisecond, random: 0)
        #expect(example.description.hasPrefix("017f22e2-79b0-7"))
        for odd in [Int64.min, -1, 0, .max] { _ = MessageID.timeOrdered(ticks: odd, random: .max) }
    }

    @Test func readersTakeEventsInBatches() async throws {
        let log = EventLog(epoch: "x")
        log.append(.messageStatus(.random(), .init(peerID: peerID(1), status: .sent)), at: Date())
        var late = log.subscribe(since: 0)
        var reader = log.subscribe()
        let kinds = (0..<5).map { _ in NodeEvent.Kind.messageStatus(.random(), .init(peerID: peerID(1), status: .delivered)) }
        log.append(kinds, at: Date(), cost: { _ in 1 }, isLive: true)
        log.append(kinds, at: Date(), cost: { _ in 1 })
        #expect(await reader.next(upTo: 3).map(\.sequence) == [2, 3, 4])
        #expect(reader.more(upTo: 100).map(\.sequence) == [5, 6, 7, 8, 9, 10, 11])
        #expect(reader.more(upTo: 100).isEmpty)
        #expect(await late.next(upTo: 100).map(\.sequence) == Array(1...11))
        var missing = log.subscribe(since: 0)
        _ = await missing.next()
        log.finish()
        #expect(await missing.next(upTo: 100).map(\.sequence) == [6, 7, 8, 9, 10, 11])
        #expect(await missing.next(upTo: 100).isEmpty)
    }

    @Test func aCancelledCallerWaitsNoMore() async throws {
        let (alice, bob) = try await pair()
        await bob.stop()
        let sending = Task { try await alice.send("hello", to: bob, timeout: .seconds(3600)) }
        sending.cancel()
        await #expect { try await sending.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        await alice.stop()
    }

    @Test func anInvitationOutlivesTheWaitForItsAnswer() async throws {
        let (alice, bob) = try await pair(inSession: false)
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
        let waiting = Task { try await alice.node.outcome(of: sent.id) }
        waiting.cancel()
        await #expect { try await waiting.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
        _ = try await bob.node.respond(to: try await bob.invitation().id, .accept, always: false)
        #expect(try await alice.node.outcome(of: sent.id).state == .accepted)
        await alice.stop()
        await bob.stop()
    }
}
